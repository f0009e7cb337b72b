//! libhdf5, loaded when the program runs: the few functions that a reader needs.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::path::Path;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};

type Hid = i64;

macro_rules! functions {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        #[allow(non_snake_case)]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn load(handle: &Handle) -> Result<Self, libloading::Error> {
                // SAFETY: each name has this type in every release since 1.10.
                unsafe { Ok(Functions { $($name: *handle.get(concat!(stringify!($name), "\0").as_bytes())?,)* }) }
            }
        }
    };
}

functions! {
    H5open() -> c_int;
    H5get_libversion(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;
    H5Eset_auto2(Hid, *const c_void, *const c_void) -> c_int;
    H5Ewalk2(Hid, c_int, extern "C" fn(c_uint, *const ErrorEntry, *mut c_void) -> c_int, *mut c_void) -> c_int;
    H5Pcreate(Hid) -> Hid;
    H5Pset_metadata_read_attempts(Hid, c_uint) -> c_int;
    H5Fopen(*const c_char, c_uint, Hid) -> Hid;
    H5Fclose(Hid) -> c_int;
    H5Gopen2(Hid, *const c_char, Hid) -> Hid;
    H5Grefresh(Hid) -> c_int;
    H5Gclose(Hid) -> c_int;
    H5Lexists(Hid, *const c_char, Hid) -> c_int;
    H5Dopen2(Hid, *const c_char, Hid) -> Hid;
    H5Drefresh(Hid) -> c_int;
    H5Dget_space(Hid) -> Hid;
    H5Dread(Hid, Hid, Hid, Hid, Hid, *mut c_void) -> c_int;
    H5Dset_extent(Hid, *const u64) -> c_int;
    H5Dwrite(Hid, Hid, Hid, Hid, Hid, *const c_void) -> c_int;
    H5Dflush(Hid) -> c_int;
    H5Dclose(Hid) -> c_int;
    H5Screate_simple(c_int, *const u64, *const u64) -> Hid;
    H5Sget_simple_extent_ndims(Hid) -> c_int;
    H5Sget_simple_extent_dims(Hid, *mut u64, *mut u64) -> c_int;
    H5Sselect_hyperslab(Hid, c_int, *const u64, *const u64, *const u64, *const u64) -> c_int;
    H5Sclose(Hid) -> c_int;
    H5Aexists(Hid, *const c_char) -> c_int;
    H5Aopen(Hid, *const c_char, Hid) -> Hid;
    H5Aread(Hid, Hid, *mut c_void) -> c_int;
    H5Aclose(Hid) -> c_int;
}

/// As `H5E_error2_t`.
#[repr(C)]
struct ErrorEntry {
    _ids: [Hid; 3],
    _line: c_uint,
    _function: *const c_char,
    _file: *const c_char,
    text: *const c_char,
}

const DEFAULT: Hid = 0;
const READ: c_uint = 0;
const WRITE: c_uint = 1;
const WRITE_SWMR: c_uint = 0x20;
const READ_SWMR: c_uint = 0x40;
const SELECT_SET: c_int = 0;
const WALK_DOWNWARD: c_int = 1;

/// The access mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To be read while nobody writes it.
    Read,
    /// To be followed.
    SwmrRead,
    /// To be written alone.
    Write,
    /// To be written while others follow.
    SwmrWrite,
}

/// The library, with everything that is needed to open a file.
pub struct Library {
    functions: Functions,
    access: Hid,
    u64: Hid,
    version: String,
    _handle: Handle,
}

/// The error of a function of the library: its stack of errors.
#[derive(Debug, Clone)]
pub struct Libhdf5Error(String);

impl fmt::Display for Libhdf5Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Something open, which is closed when it is dropped.
pub struct OpenHandle<'l> {
    library: &'l Library,
    id: Hid,
    close: unsafe extern "C" fn(Hid) -> c_int,
    /// A refresh has failed, after which the library may have closed it.
    is_lost: Cell<bool>,
}

impl Drop for OpenHandle<'_> {
    fn drop(&mut self) {
        // SAFETY: the identifier is open, and of the kind that this function closes.
        if unsafe { (self.close)(self.id) } < 0 && !self.is_lost.get() {
            // Nobody is told of it otherwise.
            eprintln!("{}", self.library.error_of_call("close"));
        }
    }
}

extern "C" fn push_error_text(_: c_uint, entry: *const ErrorEntry, into: *mut c_void) -> c_int {
    // SAFETY: the library hands over an entry, and what `failure` gave it.
    unsafe {
        let into = &mut *into.cast::<Vec<String>>();
        if !(*entry).text.is_null() {
            into.push(CStr::from_ptr((*entry).text).to_string_lossy().into_owned());
        }
    }
    0
}

impl Library {
    /// Loads it, from a path or by its name. A structure that does not check is read `attempts` times.
    ///
    /// # Errors
    /// If it cannot be loaded, or is none of release 1.10 or later.
    pub fn load(path: &Path, attempts: u32) -> Result<Self, libloading::Error> {
        // SAFETY: libhdf5 may be loaded by any program.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }?;
        let functions = Functions::load(&handle)?;
        // SAFETY: H5open comes first; both names are variables of type hid_t, set by it.
        unsafe {
            (functions.H5open)();
            let access_class = **handle.get::<*const Hid>(b"H5P_CLS_FILE_ACCESS_ID_g\0")?;
            let u64 = **handle.get::<*const Hid>(b"H5T_NATIVE_UINT64_g\0")?;
            let access = (functions.H5Pcreate)(access_class);
            (functions.H5Pset_metadata_read_attempts)(access, attempts);
            let (mut major, mut minor, mut release) = (0, 0, 0);
            (functions.H5get_libversion)(&mut major, &mut minor, &mut release);
            let version = format!("{major}.{minor}.{release}");
            Ok(Library { functions, access, u64, version, _handle: handle })
        }
    }

    /// Its release.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Keeps the library from printing the errors of this thread: each is returned, and most are expected. (A library
    /// for many threads has this setting for each of them, and a file is the first that a thread opens.)
    fn print_no_errors(&self) {
        // SAFETY: no function and no data is what the library takes for silence.
        unsafe { (self.functions.H5Eset_auto2)(DEFAULT, std::ptr::null(), std::ptr::null()) };
    }

    fn error_of_call(&self, call: &str) -> Libhdf5Error {
        let mut texts: Vec<String> = Vec::new();
        // SAFETY: `push_error_text` takes what it is given here, and nobody else has it meanwhile.
        unsafe { (self.functions.H5Ewalk2)(DEFAULT, WALK_DOWNWARD, push_error_text, (&raw mut texts).cast()) };
        Libhdf5Error(format!("{call}: {}", texts.join(": ")))
    }

    fn check_result(&self, call: &str, result: c_int) -> Result<c_int, Libhdf5Error> {
        if result < 0 { Err(self.error_of_call(call)) } else { Ok(result) }
    }

    fn handle_for(
        &self,
        call: &str,
        id: Hid,
        close: unsafe extern "C" fn(Hid) -> c_int,
    ) -> Result<OpenHandle<'_>, Libhdf5Error> {
        if id < 0 {
            Err(self.error_of_call(call))
        } else {
            Ok(OpenHandle { library: self, id, close, is_lost: Cell::new(false) })
        }
    }

    /// Opens a file that may be followed.
    ///
    /// # Errors
    /// The library's.
    pub fn open_to_follow(&self, path: &CStr) -> Result<OpenHandle<'_>, Libhdf5Error> {
        self.open_file(path, Access::SwmrRead)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// The library's.
    pub fn open_file(&self, path: &CStr, access: Access) -> Result<OpenHandle<'_>, Libhdf5Error> {
        self.print_no_errors();
        let flags = match access {
            Access::Read => READ,
            Access::SwmrRead => READ_SWMR,
            Access::Write => WRITE,
            Access::SwmrWrite => WRITE | WRITE_SWMR,
        };
        // SAFETY: the path ends with a zero, and the property list is open.
        let id = unsafe { (self.functions.H5Fopen)(path.as_ptr(), flags, self.access) };
        self.handle_for("H5Fopen", id, self.functions.H5Fclose)
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Operations on a file, group, dataset or attribute.
///
/// # Errors
/// Errors of the library.
impl<'l> OpenHandle<'l> {
    // SAFETY (of all calls below): identifiers are open as long as `OpenHandle` lives, names end with a zero, and what
    // is written into is as large as it was said to be.

    /// The root group of a file.
    pub fn open_root(&self) -> Result<OpenHandle<'l>, Libhdf5Error> {
        let functions = &self.library.functions;
        let id = unsafe { (functions.H5Gopen2)(self.id, c"/".as_ptr(), DEFAULT) };
        self.library.handle_for("H5Gopen2", id, functions.H5Gclose)
    }

    /// Drops the cached state of a group.
    pub fn refresh_group(&self) -> Result<(), Libhdf5Error> {
        let done = unsafe { (self.library.functions.H5Grefresh)(self.id) };
        self.finish_refresh("H5Grefresh", done)
    }

    /// Whether a group has a link.
    pub fn has_link(&self, link: &str) -> Result<bool, Libhdf5Error> {
        let found = unsafe { (self.library.functions.H5Lexists)(self.id, c_string(link).as_ptr(), DEFAULT) };
        Ok(self.library.check_result("H5Lexists", found)? > 0)
    }

    /// A dataset.
    pub fn open_dataset(&self, path: &str) -> Result<OpenHandle<'l>, Libhdf5Error> {
        let functions = &self.library.functions;
        let id = unsafe { (functions.H5Dopen2)(self.id, c_string(path).as_ptr(), DEFAULT) };
        self.library.handle_for("H5Dopen2", id, functions.H5Dclose)
    }

    /// Drops the cached state of a dataset, and reads it again.
    pub fn refresh(&self) -> Result<(), Libhdf5Error> {
        let done = unsafe { (self.library.functions.H5Drefresh)(self.id) };
        self.finish_refresh("H5Drefresh", done)
    }

    fn finish_refresh(&self, call: &str, done: c_int) -> Result<(), Libhdf5Error> {
        self.is_lost.set(done < 0);
        self.library.check_result(call, done).map(|_| ())
    }

    fn dataspace(&self) -> Result<OpenHandle<'l>, Libhdf5Error> {
        let functions = &self.library.functions;
        let id = unsafe { (functions.H5Dget_space)(self.id) };
        self.library.handle_for("H5Dget_space", id, functions.H5Sclose)
    }

    /// The extent of a dataset, as \[rank\], in elements.
    pub fn extent(&self) -> Result<Vec<u64>, Libhdf5Error> {
        let (space, functions) = (self.dataspace()?, &self.library.functions);
        let rank = unsafe { (functions.H5Sget_simple_extent_ndims)(space.id) };
        let rank = self.library.check_result("H5Sget_simple_extent_ndims", rank)?;
        let mut extent = vec![0; usize::try_from(rank).unwrap_or(0)];
        let got = unsafe { (functions.H5Sget_simple_extent_dims)(space.id, extent.as_mut_ptr(), std::ptr::null_mut()) };
        self.library.check_result("H5Sget_simple_extent_dims", got)?;
        Ok(extent)
    }

    /// `count` rows from `first` on of a dataset with one number in each row.
    pub fn read_rows(&self, first: u64, count: u64) -> Result<Vec<u64>, Libhdf5Error> {
        let (library, functions) = (self.library, &self.library.functions);
        let rank = self.extent()?.len();
        let mut values = vec![0u64; usize::try_from(count).unwrap_or(0)];
        if count == 0 {
            return Ok(values);
        }
        let (memory, space) = self.select_rows(rank, first, count)?;
        let into = values.as_mut_ptr().cast();
        let done = unsafe { (functions.H5Dread)(self.id, library.u64, memory.id, space.id, DEFAULT, into) };
        library.check_result("H5Dread", done)?;
        Ok(values)
    }

    /// Appends a row to a dataset of one dimension, and flushes it.
    pub fn append_value(&self, value: u64) -> Result<(), Libhdf5Error> {
        let (library, functions) = (self.library, &self.library.functions);
        let rows = self.extent()?.first().copied().unwrap_or(0);
        let done = unsafe { (functions.H5Dset_extent)(self.id, &(rows + 1)) };
        library.check_result("H5Dset_extent", done)?;
        let (memory, space) = self.select_rows(1, rows, 1)?;
        let from = (&raw const value).cast();
        let done = unsafe { (functions.H5Dwrite)(self.id, library.u64, memory.id, space.id, DEFAULT, from) };
        library.check_result("H5Dwrite", done)?;
        let done = unsafe { (functions.H5Dflush)(self.id) };
        library.check_result("H5Dflush", done).map(drop)
    }

    /// Room for `count` rows, and where they are in the file.
    fn select_rows(
        &self,
        rank: usize,
        first: u64,
        count: u64,
    ) -> Result<(OpenHandle<'l>, OpenHandle<'l>), Libhdf5Error> {
        let (library, functions) = (self.library, &self.library.functions);
        let start: Vec<u64> = std::iter::once(first).chain(std::iter::repeat_n(0, rank.saturating_sub(1))).collect();
        let size: Vec<u64> = std::iter::once(count).chain(std::iter::repeat_n(1, rank.saturating_sub(1))).collect();
        let none = std::ptr::null();
        let space = self.dataspace()?;
        let selected =
            unsafe { (functions.H5Sselect_hyperslab)(space.id, SELECT_SET, start.as_ptr(), none, size.as_ptr(), none) };
        library.check_result("H5Sselect_hyperslab", selected)?;
        let memory = unsafe { (functions.H5Screate_simple)(1, &count, none) };
        let memory = library.handle_for("H5Screate_simple", memory, functions.H5Sclose)?;
        Ok((memory, space))
    }

    /// An attribute that is one number; `None` if there is none of that name.
    pub fn read_attribute(&self, attribute: &str) -> Result<Option<u64>, Libhdf5Error> {
        let (library, functions) = (self.library, &self.library.functions);
        let attribute = c_string(attribute);
        let found = unsafe { (functions.H5Aexists)(self.id, attribute.as_ptr()) };
        if library.check_result("H5Aexists", found)? == 0 {
            return Ok(None);
        }
        let id = unsafe { (functions.H5Aopen)(self.id, attribute.as_ptr(), DEFAULT) };
        let opened = library.handle_for("H5Aopen", id, functions.H5Aclose)?;
        let mut value = 0u64;
        let done = unsafe { (functions.H5Aread)(opened.id, library.u64, (&raw mut value).cast()) };
        library.check_result("H5Aread", done)?;
        Ok(Some(value))
    }
}
