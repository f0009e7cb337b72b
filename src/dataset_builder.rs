//! Descriptions of datasets to be made.

use h5live_filters::FilterTarget;
use h5live_model::{
    AllocationTime, DatasetSpec, Dataspace, Datatype, ExternalPiece, Fill, FillTime, FillValue, FilterSpec, Layout,
    LinkOrAttributeStorageSpec, LinkTarget, NewObject, ObjectId, ObjectKindSpec, ObjectSpec, Shape, UNLIMITED,
    VirtualSource,
};

use crate::chunk_guess::guess_chunk;
use crate::dims::CoreDims;
use crate::error::ErrorKind;
use crate::path::{self, NewLinkPath};
use crate::value::EncodePlan;
use crate::{ConvertError, Dataset, File, Group, H5Type, H5Write, NamedType, Result, Value};

/// Registered numbers of the filters that have methods of their own.
mod filter {
    pub(super) const DEFLATE: u16 = 1;
    pub(super) const SHUFFLE: u16 = 2;
    pub(super) const FLETCHER32: u16 = 3;
}

/// Bytes of elements that may be written in vain.
const MAX_DISCARDED_BYTES: usize = 64 << 10;

/// A dataset to be made, by [`Group::new_dataset`].
///
/// ```
/// use h5live::File;
///
/// let file = File::in_memory();
/// let spectra = file
///     .new_dataset::<f32>()
///     .shape(&[100, 1024])
///     .chunk_shape(&[10, 1024])
///     .shuffle()
///     .deflate(6)
///     .fill(f32::NAN)
///     .create("run/spectra")?;
/// assert!(spectra.read::<f32>()?.iter().all(|x| x.is_nan()));
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a dataset is made by `create`"]
pub struct DatasetBuilder {
    group: Group,
    datatype: Datatype,
    dims: Option<CoreDims>,
    max: Option<CoreDims>,
    null: bool,
    layout: LayoutChoice,
    filters: Vec<FilterSpec>,
    fill: Result<Fill, ConvertError>,
    unfiltered_partial_chunks: bool,
    committed: Option<ObjectId>,
    attributes: LinkOrAttributeStorageSpec,
    times: bool,
}

#[derive(Debug, Clone)]
enum LayoutChoice {
    Automatic,
    Compact,
    Contiguous,
    Chunked(Vec<u64>),
    Virtual(Vec<VirtualSource>),
    External(Vec<ExternalPiece>),
}

impl DatasetBuilder {
    pub(crate) fn new(group: Group, datatype: Datatype) -> Self {
        let datatype = group.file().stored_type(&datatype);
        DatasetBuilder {
            group,
            datatype,
            dims: None,
            max: None,
            null: false,
            layout: LayoutChoice::Automatic,
            filters: Vec::new(),
            fill: Ok(Fill::default()),
            unfiltered_partial_chunks: false,
            committed: None,
            attributes: LinkOrAttributeStorageSpec::default(),
            times: false,
        }
    }

    /// The dimensions (`[rank]`, elements). Without any, and without data, the dataset is one element.
    pub fn shape(mut self, dims: &[u64]) -> Self {
        self.dims = Some(dims.into());
        self
    }

    /// The maximum dimensions (`[rank]`, elements; [`UNLIMITED`] for no limit). Without any, the dataset cannot grow.
    pub fn max_shape(mut self, max: &[u64]) -> Self {
        self.max = Some(max.into());
        self
    }

    /// Every dimension grows without limit.
    pub fn resizable(mut self) -> Self {
        self.max = Some(CoreDims::from_elem(UNLIMITED, self.dims.as_ref().map_or(0, |dims| dims.len())));
        self
    }

    /// No rows yet, and any number of them later, each of these dimensions (`[rank - 1]`, elements).
    pub fn unlimited_rows(mut self, row_dims: &[u64]) -> Self {
        self.dims = Some([&[0], row_dims].concat().into());
        self.max = Some([&[UNLIMITED], row_dims].concat().into());
        self
    }

    /// The dataspace: shape and maximum.
    pub fn dataspace(mut self, dataspace: Dataspace) -> Self {
        (self.dims, self.max, self.null) = match dataspace {
            Dataspace::Null => (None, None, true),
            Dataspace::Scalar => (None, None, false),
            Dataspace::Simple(shape) => {
                (Some(shape.dims().into()), shape.states_max_dims().then(|| shape.max_dims().into()), false)
            }
        };
        self
    }

    /// No elements and no dimensions at all.
    pub fn null(mut self) -> Self {
        self.null = true;
        self
    }

    /// Stores elements in chunks of these dimensions (`[rank]`, elements).
    ///
    /// If nothing is said, they are guessed from the shape. Rows that only grow in number are kept whole: some rows, about
    /// 64 KiB of them, or one row, or, above 1 MiB, equal parts of one. Everything else is guessed as h5py does. A flush
    /// writes each chunk anew that it has changed, and filters it as a whole.
    ///
    /// Chunks of 4 GiB and more need [`LibVer::V200`](crate::LibVer::V200). The first element in a chunk without
    /// filters takes the space of the whole chunk. If the fill value is zero, this is a hole of the file; otherwise
    /// fill values are written, in pieces. A chunk with filters is in memory as a whole while it is read or written, so
    /// [`Options::max_allocation`](crate::Options::max_allocation) bounds its size.
    pub fn chunk_shape(mut self, dims: &[u64]) -> Self {
        self.layout = LayoutChoice::Chunked(dims.into());
        self
    }

    /// Elements are stored with the description of the dataset (at most 64 KiB).
    pub fn compact(mut self) -> Self {
        self.layout = LayoutChoice::Compact;
        self
    }

    /// Elements are stored in one run.
    pub fn contiguous(mut self) -> Self {
        self.layout = LayoutChoice::Contiguous;
        self
    }

    /// Elements stand in other datasets, piece by piece; where pieces overlap, the later one counts.
    pub fn virtual_sources(mut self, sources: Vec<VirtualSource>) -> Self {
        self.layout = LayoutChoice::Virtual(sources);
        self
    }

    /// Stores elements in a raw file beside this one, from `offset` on (bytes), `size` bytes of them. [`UNLIMITED`]
    /// takes all bytes that follow. Several calls use several files, one after the other.
    pub fn external(mut self, file: &str, offset: u64, size: u64) -> Self {
        let piece = ExternalPiece { name: file.into(), offset, size };
        match &mut self.layout {
            LayoutChoice::External(pieces) => pieces.push(piece),
            layout => *layout = LayoutChoice::External(vec![piece]),
        }
        self
    }

    /// The type is a committed one of the same file.
    pub fn committed_datatype(mut self, datatype: &NamedType) -> Self {
        self.datatype = datatype.datatype().clone();
        self.committed = Some(datatype.id());
        self
    }

    /// How attributes are kept: whether the order in which they are set is, and how many of them in the header.
    pub fn attribute_storage(mut self, storage: LinkOrAttributeStorageSpec) -> Self {
        self.attributes = storage;
        self
    }

    /// It is kept when the dataset was touched.
    pub fn track_times(mut self) -> Self {
        self.times = true;
        self
    }

    /// Chunks are compressed: from 0, not at all, to 9, as much as can be.
    pub fn deflate(self, level: u32) -> Self {
        self.filter(FilterSpec { id: filter::DEFLATE, optional: true, name: None, params: vec![level] })
    }

    /// Bytes of the same weight are put together, which makes numbers compress better. Comes before compression.
    pub fn shuffle(self) -> Self {
        self.filter(FilterSpec { id: filter::SHUFFLE, optional: true, name: None, params: Vec::new() })
    }

    /// Chunks have a checksum, which is verified on reading.
    pub fn fletcher32(self) -> Self {
        self.filter(FilterSpec { id: filter::FLETCHER32, optional: false, name: None, params: Vec::new() })
    }

    /// Adds a filter after the present ones. Parameters that follow from the dataset are filled in.
    pub fn filter(mut self, filter: FilterSpec) -> Self {
        self.filters.push(filter);
        self
    }

    /// Chunks that reach over the extent are stored without filters.
    pub fn unfiltered_partial_chunks(mut self) -> Self {
        self.unfiltered_partial_chunks = true;
        self
    }

    /// Sets the value of elements that were never written (default: zero). Set the type before.
    pub fn fill<T: H5Write>(self, value: T) -> Self {
        let encode = || {
            let mut bytes = crate::convert::blank_elements(1, self.datatype.size() as usize)?;
            value.encode_element(&T::Element::encoder(&self.datatype)?, &mut bytes, self.group.file().context())?;
            Ok(bytes)
        };
        let encoded = encode();
        self.fill_bytes(encoded)
    }

    /// Sets the value of elements that were never written, for any type.
    pub fn fill_value(self, value: &Value) -> Self {
        let context = self.group.file().context();
        let encoded =
            EncodePlan::new(&self.datatype).and_then(|plan| plan.encode_all(std::slice::from_ref(value), context));
        self.fill_bytes(encoded)
    }

    /// The fill value: an element in the file's type, without conversion.
    pub fn fill_raw(self, element: &[u8]) -> Self {
        self.fill_bytes(Ok(element.to_vec()))
    }

    /// Leaves the value of elements that were never written undefined.
    pub fn fill_undefined(mut self) -> Self {
        self.fill = self.fill.map(|fill| Fill { value: FillValue::Undefined, ..fill });
        self
    }

    fn fill_bytes(mut self, encoded: Result<Vec<u8>, ConvertError>) -> Self {
        self.fill = self.fill.and_then(|fill| Ok(Fill { value: FillValue::Value(encoded?), ..fill }));
        self
    }

    /// When storage is allocated.
    pub fn alloc_time(mut self, allocation: AllocationTime) -> Self {
        self.fill = self.fill.map(|fill| Fill { allocation, ..fill });
        self
    }

    /// When fill values are written.
    pub fn fill_time(mut self, time: FillTime) -> Self {
        self.fill = self.fill.map(|fill| Fill { time, ..fill });
        self
    }

    /// Makes the dataset, and the groups above it that are not there.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the name is taken or the store cannot hold such a dataset, [`ErrorKind::InvalidSpec`]
    /// if the description contradicts itself, [`ErrorKind::Filter`] if a filter does not fit it.
    pub fn create(mut self, path: &str) -> Result<Dataset> {
        let shown = path::join_path(self.group.path(), path);
        let mut make = || -> Result<_, ErrorKind> {
            let place = NewLinkPath::resolve(self.group.file(), self.group.id(), path)?;
            let id = place.create_object(&self.object_spec()?)?;
            Ok((place.file, id))
        };
        match make() {
            Ok((file, id)) => Dataset::open_new(file, id, shown),
            Err(kind) => Err(self.group.file().error(Some(&shown), kind)),
        }
    }

    /// Makes the dataset without a link that leads to it: [`Group::link_hard`] is to add one before the file is closed.
    ///
    /// # Errors
    /// As [`DatasetBuilder::create`].
    pub fn create_unlinked(mut self) -> Result<Dataset> {
        let file = self.group.file().clone();
        let mut make = || -> Result<_, ErrorKind> {
            let writer = file.writer()?;
            Ok(writer.create(&NewObject::unlinked(&self.object_spec()?))?)
        };
        let id = make().map_err(|kind| file.error(None, kind))?;
        Dataset::open(file, id, id.to_string())
    }

    /// Takes the description of the dataset.
    fn object_spec(&mut self) -> Result<ObjectSpec, ErrorKind> {
        let (attributes, times) = (self.attributes, self.times);
        let spec = self.spec()?;
        if let Layout::Chunked(chunk) = &spec.layout {
            // libhdf5's rule for new datasets. Copies keep what there is.
            let sides = chunk.iter().zip(spec.dataspace.dims()).zip(spec.dataspace.max_dims());
            if sides.into_iter().any(|((chunk, dim), max)| *dim > 0 && chunk > max) {
                return Err(ErrorKind::InvalidSpec("chunks must not be larger than the dataset can become"));
            }
        }
        Ok(ObjectSpec { attribute_storage: attributes, track_times: times, ..spec.into() })
    }

    /// Makes the dataset and writes its elements: the link is there only once they are. Without a shape it has one
    /// dimension, as long as there are values. If rows are unlimited and there are none yet
    /// ([`DatasetBuilder::unlimited_rows`]), it has as many rows as the values make.
    ///
    /// # Errors
    /// As [`DatasetBuilder::create`] and [`Dataset::write`].
    pub fn create_with_data<T: H5Write>(mut self, path: &str, values: &[T]) -> Result<Dataset> {
        self.dims.get_or_insert_with(|| CoreDims::from_elem(values.len() as u64, 1));
        self.fit_rows_to(values.len() as u64);
        let shown = path::join_path(self.group.path(), path);
        let origin = self.group.file().clone();
        let failed = |kind: ErrorKind| origin.error(Some(&shown), kind);
        let place = NewLinkPath::resolve(&origin, self.group.id(), path).map_err(failed)?;
        // That the name is taken is found at the end, which costs little if the elements are few.
        if size_of_val(values) > MAX_DISCARDED_BYTES {
            place.check_absent().map_err(failed)?;
        }
        let file = place.file.clone();
        let mut make = || -> Result<_, ErrorKind> {
            let spec = self.object_spec()?;
            Ok(match compact_elements(&file, &spec, values)? {
                Some(elements) => (place.create_compact_dataset(&spec, &elements)?, true),
                None if place.supports_unlinked() => (file.writer()?.create(&NewObject::unlinked(&spec))?, false),
                None => (place.create_object(&spec)?, false),
            })
        };
        let (id, is_whole) = make().map_err(|kind| file.error(Some(&shown), kind))?;
        if is_whole {
            return Dataset::open_new(file, id, shown);
        }
        let dataset = Dataset::open(file, id, shown.clone())?;
        let fill = || {
            dataset.write(values)?;
            dataset.write_out()?;
            if place.supports_unlinked() { place.add_link(&LinkTarget::Hard(id)).map_err(failed) } else { Ok(()) }
        };
        fill().inspect_err(|_| drop(place.file.writer().and_then(|writer| writer.discard(id))))?;
        Ok(dataset)
    }

    /// Gives a dataset of unlimited rows that has none the rows that so many elements make, if they make whole rows.
    fn fit_rows_to(&mut self, elements: u64) {
        if let (Some([rows @ 0, row @ ..]), Some([UNLIMITED, ..])) = (self.dims.as_deref_mut(), self.max.as_deref()) {
            let row_elements = row.iter().fold(1, |product: u64, n| product.saturating_mul(*n));
            if row_elements > 0 && elements.is_multiple_of(row_elements) {
                *rows = elements / row_elements;
            }
        }
    }

    #[cfg(feature = "ndarray")]
    pub(crate) fn default_shape(mut self, dims: &[u64]) -> Self {
        self.dims.get_or_insert_with(|| dims.into());
        self.fit_rows_to(dims.iter().fold(1, |product: u64, n| product.saturating_mul(*n)));
        self
    }

    fn space(&self) -> Result<Dataspace, ErrorKind> {
        Ok(match (&self.dims, &self.max) {
            _ if self.null => Dataspace::Null,
            (None, None) => Dataspace::Scalar,
            (Some(dims), None) if dims.is_empty() => Dataspace::Scalar,
            (Some(dims), None) => Dataspace::Simple(Shape::fixed(dims)),
            (Some(dims), Some(max)) => {
                let shape = Shape::with_max(dims, max);
                Dataspace::Simple(
                    shape.ok_or_else(|| ErrorKind::InvalidExtent { dims: dims.to_vec(), max: max.to_vec() })?,
                )
            }
            (None, Some(_)) => return Err(ErrorKind::InvalidSpec("there is a maximum, and no shape")),
        })
    }

    fn spec(&mut self) -> Result<DatasetSpec, ErrorKind> {
        let dataspace = self.space()?;
        let fill = std::mem::replace(&mut self.fill, Ok(Fill::default()))?;
        let layout = std::mem::replace(&mut self.layout, LayoutChoice::Automatic);
        let mut filters = std::mem::take(&mut self.filters);
        let datatype = std::mem::take(&mut self.datatype);
        let DatasetBuilder { ref group, unfiltered_partial_chunks, committed, .. } = *self;
        let chunked = !filters.is_empty() || dataspace.max_dims() != dataspace.dims();
        let layout = match layout {
            LayoutChoice::Chunked(dims) => Layout::Chunked(dims),
            LayoutChoice::Compact => Layout::Compact,
            LayoutChoice::Virtual(sources) => Layout::Virtual(sources),
            LayoutChoice::External(pieces) => Layout::External(pieces),
            LayoutChoice::Automatic if chunked && dataspace.rank() > 0 => {
                Layout::Chunked(guess_chunk(dataspace.dims(), dataspace.max_dims(), datatype.size().into()))
            }
            LayoutChoice::Automatic | LayoutChoice::Contiguous => Layout::Contiguous,
        };
        if let Layout::Chunked(chunk_dims) = &layout {
            let registry = &group.file().shared().options.filters;
            let target = FilterTarget { datatype: &datatype, chunk_dims, fill: &fill.value };
            for filter in &mut filters {
                *filter = registry.complete_spec(filter, &target)?;
            }
        } else if !filters.is_empty() {
            return Err(ErrorKind::InvalidSpec("only a dataset with dimensions, in chunks, has filters"));
        }
        Ok(DatasetSpec {
            datatype,
            committed_datatype: committed,
            dataspace,
            layout,
            filters,
            fill,
            unfiltered_partial_chunks,
        })
    }
}

impl Group {
    /// A description of a new dataset of elements of type `T`.
    pub fn new_dataset<T: H5Type>(&self) -> DatasetBuilder {
        self.new_dataset_with_type(T::datatype())
    }

    /// A description of a new dataset of elements of this type.
    pub fn new_dataset_with_type(&self, datatype: Datatype) -> DatasetBuilder {
        DatasetBuilder::new(self.clone(), datatype)
    }
}

impl File {
    /// A description of a new dataset of elements of type `T`.
    pub fn new_dataset<T: H5Type>(&self) -> DatasetBuilder {
        self.new_dataset_with_type(T::datatype())
    }

    /// A description of a new dataset of elements of this type.
    pub fn new_dataset_with_type(&self, datatype: Datatype) -> DatasetBuilder {
        DatasetBuilder::new(self.root(), datatype)
    }
}

/// The encoded elements of a dataset, if they can be stored in its object header at once.
fn compact_elements<T: H5Write>(file: &File, spec: &ObjectSpec, values: &[T]) -> Result<Option<Vec<u8>>, ErrorKind> {
    let ObjectKindSpec::Dataset(spec) = &spec.body else { return Ok(None) };
    let is_all = !values.is_empty() && spec.dataspace.element_count() == Some(values.len() as u64);
    // ConversionContext data is written when there is an object that leads to it.
    if spec.layout != Layout::Compact || !is_all || spec.datatype.has_vlen_or_references() {
        return Ok(None);
    }
    let size = spec.datatype.size() as usize;
    let encoder = T::Element::encoder(&spec.datatype)?;
    let bytes = values.len().saturating_mul(size);
    if T::Element::leaves_bytes_unchanged(&encoder) || bytes > MAX_DISCARDED_BYTES {
        return Ok(None);
    }
    let mut elements = vec![0; bytes];
    T::encode_elements(&encoder, values, &mut elements, size, file.context())?;
    Ok(Some(elements))
}
