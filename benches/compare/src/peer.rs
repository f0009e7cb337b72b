//! libhdf5's C interface, as far as the works need it. Handles close themselves; errors name the call.

use std::ffi::{CString, c_void};
use std::path::Path;

use hdf5_metno_sys::{h5, h5a, h5d, h5f, h5g, h5i, h5l, h5p, h5s, h5t, h5z};

use crate::Result;

pub type Id = h5i::hid_t;

/// The result of a call, or an error that names it.
macro_rules! call {
    ($module:ident :: $function:ident ( $($argument:expr),* $(,)? )) => {{
        // SAFETY: the arguments are live handles, and buffers of the lengths that their dataspaces say.
        let got = unsafe { $module::$function($($argument),*) };
        if got < 0 { Err(crate::Error::Call(stringify!($function))) } else { Ok(got) }
    }};
}

/// A handle of the library.
pub struct Handle(pub Id);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is counted once and given back once.
        unsafe { h5i::H5Idec_ref(self.0) };
    }
}

/// Starts the library, so that the handles of its types have values.
pub fn start() -> Result<()> {
    call!(h5::H5open()).map(drop)
}

fn c(text: &str) -> CString {
    CString::new(text).expect("names have no zeros")
}

fn list(class: Id) -> Result<Handle> {
    call!(h5p::H5Pcreate(class)).map(Handle)
}

/// Loads a filter, so that no work's time has that in it.
pub fn load_filter(id: u16) -> Result<()> {
    match call!(h5z::H5Zfilter_avail(i32::from(id)))? {
        0 => Err(crate::Error::Call("loading a filter")),
        _ => Ok(()),
    }
}

/// An element type in memory or in the file.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    U8,
    I16,
    I32,
    U64,
    F32,
    F64,
    F32Be,
}

impl Type {
    pub fn id(self) -> Id {
        match self {
            Type::U8 => *h5t::H5T_STD_U8LE,
            Type::I16 => *h5t::H5T_STD_I16LE,
            Type::I32 => *h5t::H5T_STD_I32LE,
            Type::U64 => *h5t::H5T_STD_U64LE,
            Type::F32 => *h5t::H5T_IEEE_F32LE,
            Type::F64 => *h5t::H5T_IEEE_F64LE,
            Type::F32Be => *h5t::H5T_IEEE_F32BE,
        }
    }
}

/// A compound type of `(name, offset, type)` fields.
pub fn compound(size: usize, fields: &[(&str, usize, Type)]) -> Result<Handle> {
    let class = h5t::H5T_class_t::H5T_COMPOUND;
    let made = Handle(call!(h5t::H5Tcreate(class, size))?);
    for (name, offset, field) in fields {
        call!(h5t::H5Tinsert(made.0, c(name).as_ptr(), *offset, field.id()))?;
    }
    Ok(made)
}

/// How a dataset is made.
#[derive(Debug, Clone, Default)]
pub struct Make<'a> {
    pub dims: &'a [u64],
    /// As `dims` if empty.
    pub max: &'a [u64],
    /// Contiguous if empty.
    pub chunk: &'a [u64],
    /// Filters by number, with their parameters.
    pub filters: &'a [(i32, &'a [u32])],
    pub compact: bool,
    /// Bytes of the chunk cache; the library's own choice if zero.
    pub cache: usize,
}

pub struct File(Handle);

impl File {
    fn access() -> Result<Handle> {
        let access = list(*h5p::H5P_CLS_FILE_ACCESS)?;
        let bound = h5f::H5F_LIBVER_V110;
        call!(h5p::H5Pset_libver_bounds(access.0, bound, bound))?;
        Ok(access)
    }

    pub fn create(path: &Path) -> Result<Self> {
        let (name, access) = (c(&path.to_string_lossy()), Self::access()?);
        let flags = h5f::H5F_ACC_TRUNC;
        call!(h5f::H5Fcreate(name.as_ptr(), flags, h5p::H5P_DEFAULT, access.0)).map(|id| File(Handle(id)))
    }

    fn open_with(path: &Path, flags: u32) -> Result<Self> {
        let (name, access) = (c(&path.to_string_lossy()), Self::access()?);
        call!(h5f::H5Fopen(name.as_ptr(), flags, access.0)).map(|id| File(Handle(id)))
    }

    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, h5f::H5F_ACC_RDONLY)
    }

    pub fn open_to_write(path: &Path) -> Result<Self> {
        Self::open_with(path, h5f::H5F_ACC_RDWR)
    }

    pub fn open_to_follow(path: &Path) -> Result<Self> {
        Self::open_with(path, h5f::H5F_ACC_RDONLY | h5f::H5F_ACC_SWMR_READ)
    }

    pub fn start_swmr(&self) -> Result<()> {
        call!(h5f::H5Fstart_swmr_write(self.0.0)).map(drop)
    }

    pub fn flush(&self) -> Result<()> {
        call!(h5f::H5Fflush(self.0.0, h5f::H5F_scope_t::H5F_SCOPE_GLOBAL)).map(drop)
    }

    pub fn group(&self, name: &str) -> Result<Handle> {
        call!(h5g::H5Gopen2(self.0.0, c(name).as_ptr(), h5p::H5P_DEFAULT)).map(Handle)
    }

    pub fn create_group(&self, name: &str) -> Result<Handle> {
        let default = h5p::H5P_DEFAULT;
        call!(h5g::H5Gcreate2(self.0.0, c(name).as_ptr(), default, default, default)).map(Handle)
    }

    pub fn create_dataset(&self, name: &str, type_: Type, make: &Make<'_>) -> Result<Dataset> {
        Dataset::create_in(self.0.0, name, type_.id(), make)
    }

    /// As [`File::create_dataset`], with the groups that a path names.
    pub fn create_dataset_and_groups(&self, path: &str, type_: Type, make: &Make<'_>) -> Result<Dataset> {
        let creation = list(*h5p::H5P_CLS_LINK_CREATE)?;
        call!(h5p::H5Pset_create_intermediate_group(creation.0, 1))?;
        Dataset::create_with(self.0.0, path, type_.id(), make, creation.0)
    }

    pub fn dataset(&self, name: &str, cache: usize) -> Result<Dataset> {
        Dataset::open_in(self.0.0, name, cache)
    }

    pub fn id(&self) -> Id {
        self.0.0
    }
}

pub struct Dataset(Handle);

/// So few bytes of chunk cache that no chunk fits. That is fastest where each is wanted once.
pub const NO_CACHE: usize = 1;

/// `once` says that a chunk is done with when all of it was read or written; that goes first then. With this, libhdf5
/// never lets go of chunks of which a part was read, whatever the size of its cache: where chunks are read again, the
/// manual wants less.
fn cache_list(cache: usize, chunk_bytes: usize, once: bool) -> Result<Option<Handle>> {
    if cache == 0 {
        return Ok(None);
    }
    let access = list(*h5p::H5P_CLS_DATASET_ACCESS)?;
    // As the manual advises: a hundred slots for each chunk that fits, rounded to an odd number.
    let slots = (cache / chunk_bytes.max(1)).max(1) * 100 + 1;
    call!(h5p::H5Pset_chunk_cache(access.0, slots, cache, if once { 1.0 } else { 0.75 }))?;
    Ok(Some(access))
}

impl Dataset {
    pub fn create_in(place: Id, name: &str, type_: Id, make: &Make<'_>) -> Result<Self> {
        Self::create_with(place, name, type_, make, h5p::H5P_DEFAULT)
    }

    fn create_with(place: Id, name: &str, type_: Id, make: &Make<'_>, link: Id) -> Result<Self> {
        let creation = list(*h5p::H5P_CLS_DATASET_CREATE)?;
        if !make.chunk.is_empty() {
            call!(h5p::H5Pset_chunk(creation.0, make.chunk.len() as i32, make.chunk.as_ptr()))?;
        }
        if make.compact {
            call!(h5p::H5Pset_layout(creation.0, h5d::H5D_layout_t::H5D_COMPACT))?;
        }
        for (filter, parameters) in make.filters {
            call!(h5p::H5Pset_filter(creation.0, *filter, 0, parameters.len(), parameters.as_ptr()))?;
        }
        let access = cache_list(make.cache, make.chunk.iter().product::<u64>() as usize * 8, true)?;
        let space = space(make.dims, make.max)?;
        let access = access.as_ref().map_or(h5p::H5P_DEFAULT, |list| list.0);
        let name = c(name);
        call!(h5d::H5Dcreate2(place, name.as_ptr(), type_, space.0, link, creation.0, access))
            .map(|id| Dataset(Handle(id)))
    }

    pub fn open_in(place: Id, name: &str, cache: usize) -> Result<Self> {
        let access = cache_list(cache, 64 << 10, false)?;
        let access = access.as_ref().map_or(h5p::H5P_DEFAULT, |list| list.0);
        call!(h5d::H5Dopen2(place, c(name).as_ptr(), access)).map(|id| Dataset(Handle(id)))
    }

    pub fn extend(&self, dims: &[u64]) -> Result<()> {
        call!(h5d::H5Dset_extent(self.0.0, dims.as_ptr())).map(drop)
    }

    /// Stores a whole chunk as it is.
    pub fn write_chunk(&self, at: &[u64], bytes: &[u8]) -> Result<()> {
        let default = h5p::H5P_DEFAULT;
        call!(h5d::H5Dwrite_chunk(self.0.0, default, 0, at.as_ptr(), bytes.len(), bytes.as_ptr().cast())).map(drop)
    }

    pub fn flush(&self) -> Result<()> {
        call!(h5d::H5Dflush(self.0.0)).map(drop)
    }

    pub fn refresh(&self) -> Result<()> {
        call!(h5d::H5Drefresh(self.0.0)).map(drop)
    }

    pub fn dims(&self) -> Result<Vec<u64>> {
        let space = Handle(call!(h5d::H5Dget_space(self.0.0))?);
        let mut dims = vec![0; 32];
        let rank = call!(h5s::H5Sget_simple_extent_dims(space.0, dims.as_mut_ptr(), std::ptr::null_mut()))?;
        dims.truncate(rank as usize);
        Ok(dims)
    }

    /// Writes the block at `start`; `values` are as many as `count` says.
    pub fn write_block<T>(&self, type_: Type, start: &[u64], count: &[u64], values: &[T]) -> Result<()> {
        let slab = Slab { start, stride: &[], count };
        let (file, memory) = (slab.of(self)?, space(count, &[])?);
        let values = values.as_ptr().cast::<c_void>();
        call!(h5d::H5Dwrite(self.0.0, type_.id(), memory.0, file.0, h5p::H5P_DEFAULT, values)).map(drop)
    }

    /// Writes blocks of one shape at many starts: the first element of `values` becomes the number of each. The
    /// dataspaces are made once.
    pub fn write_blocks<const RANK: usize>(
        &self,
        type_: Type,
        count: &[u64; RANK],
        numbered: impl Iterator<Item = (u64, [u64; RANK])>,
        values: &mut [u64],
    ) -> Result<()> {
        let (file, memory) = (Handle(call!(h5d::H5Dget_space(self.0.0))?), space(count, &[])?);
        let (select, none) = (h5s::H5S_seloper_t::H5S_SELECT_SET, std::ptr::null());
        for (number, start) in numbered {
            values[0] = number;
            call!(h5s::H5Sselect_hyperslab(file.0, select, start.as_ptr(), none, count.as_ptr(), none))?;
            let values = values.as_ptr().cast::<c_void>();
            call!(h5d::H5Dwrite(self.0.0, type_.id(), memory.0, file.0, h5p::H5P_DEFAULT, values))?;
        }
        Ok(())
    }

    /// Makes an attribute of the dataset.
    pub fn set_attribute<T>(&self, name: &str, type_: Type, values: &[T]) -> Result<()> {
        let (space, name, default) = (space(&[values.len() as u64], &[])?, c(name), h5p::H5P_DEFAULT);
        let made = Handle(call!(h5a::H5Acreate2(self.0.0, name.as_ptr(), type_.id(), space.0, default, default))?);
        call!(h5a::H5Awrite(made.0, type_.id(), values.as_ptr().cast::<c_void>())).map(drop)
    }

    pub fn write_all<T>(&self, type_: Id, values: &[T]) -> Result<()> {
        let (all, values) = (h5s::H5S_ALL, values.as_ptr().cast::<c_void>());
        call!(h5d::H5Dwrite(self.0.0, type_, all, all, h5p::H5P_DEFAULT, values)).map(drop)
    }

    pub fn read_all<T>(&self, type_: Id, values: &mut [T]) -> Result<()> {
        let (all, values) = (h5s::H5S_ALL, values.as_mut_ptr().cast::<c_void>());
        call!(h5d::H5Dread(self.0.0, type_, all, all, h5p::H5P_DEFAULT, values)).map(drop)
    }

    pub fn read_slab<T>(&self, type_: Type, slab: &Slab<'_>, values: &mut [T]) -> Result<()> {
        let (file, memory) = (slab.of(self)?, space(&[values.len() as u64], &[])?);
        let values = values.as_mut_ptr().cast::<c_void>();
        call!(h5d::H5Dread(self.0.0, type_.id(), memory.0, file.0, h5p::H5P_DEFAULT, values)).map(drop)
    }

    /// Reads single elements, whose coordinates follow each other in `points`.
    pub fn read_points<T>(&self, type_: Type, points: &[u64], values: &mut [T]) -> Result<()> {
        let file = Handle(call!(h5d::H5Dget_space(self.0.0))?);
        let select = h5s::H5S_seloper_t::H5S_SELECT_SET;
        call!(h5s::H5Sselect_elements(file.0, select, values.len(), points.as_ptr()))?;
        let memory = space(&[values.len() as u64], &[])?;
        let values = values.as_mut_ptr().cast::<c_void>();
        call!(h5d::H5Dread(self.0.0, type_.id(), memory.0, file.0, h5p::H5P_DEFAULT, values)).map(drop)
    }
}

/// A hyperslab of single elements.
#[derive(Debug, Clone, Copy)]
pub struct Slab<'a> {
    pub start: &'a [u64],
    /// One in each dimension if empty.
    pub stride: &'a [u64],
    pub count: &'a [u64],
}

impl Slab<'_> {
    fn of(&self, dataset: &Dataset) -> Result<Handle> {
        let file = Handle(call!(h5d::H5Dget_space(dataset.0.0))?);
        let stride = if self.stride.is_empty() { std::ptr::null() } else { self.stride.as_ptr() };
        let (start, count) = (self.start.as_ptr(), self.count.as_ptr());
        let select = h5s::H5S_seloper_t::H5S_SELECT_SET;
        call!(h5s::H5Sselect_hyperslab(file.0, select, start, stride, count, std::ptr::null()))?;
        Ok(file)
    }
}

pub fn space(dims: &[u64], max: &[u64]) -> Result<Handle> {
    let max = if max.is_empty() { std::ptr::null() } else { max.as_ptr() };
    call!(h5s::H5Screate_simple(dims.len() as i32, dims.as_ptr(), max)).map(Handle)
}

/// Makes soft links `link 0`, `link 1`, ... in a group.
pub fn soft_links(group: &Handle, number: u64) -> Result<()> {
    let target = c("/somewhere");
    for i in 0..number {
        let name = c(&format!("link {i}"));
        let default = h5p::H5P_DEFAULT;
        call!(h5l::H5Lcreate_soft(target.as_ptr(), group.0, name.as_ptr(), default, default))?;
    }
    Ok(())
}

unsafe extern "C" fn note_link(
    _: Id,
    name: *const std::ffi::c_char,
    info: *const h5l::H5L_info2_t,
    sum: *mut c_void,
) -> h5::herr_t {
    // SAFETY: the library gives a string and a description, and hands on the counter of `list_links`.
    unsafe {
        let sum = &mut *sum.cast::<u64>();
        let length = std::ffi::CStr::from_ptr(name).to_bytes().len() as u64;
        *sum += length * 8 + ((*info).type_ as i32 as u64 & 7);
    }
    0
}

/// Lists all links with their types, in the order of their names: a sum over them.
pub fn list_links(group: &Handle) -> Result<u64> {
    let (mut at, mut sum) = (0, 0u64);
    let (by, order) = (h5::H5_index_t::H5_INDEX_NAME, h5::H5_iter_order_t::H5_ITER_INC);
    let sum_at = (&raw mut sum).cast::<c_void>();
    call!(h5l::H5Literate2(group.0, by, order, &raw mut at, Some(note_link), sum_at))?;
    Ok(sum)
}
