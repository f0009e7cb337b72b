//! Datasets: arrays of elements.

mod core;
mod error;
mod exactness;
mod foreign_types;
#[cfg(test)]
mod model_tests;
mod publish;
mod read;
mod refresh;
mod scratch;
mod shape;
mod sources;
mod spec_snapshot;
mod stage;
mod store;
#[cfg(test)]
mod strided_tests;
#[cfg(test)]
mod tests;
mod transfer;
mod write;

use std::fmt;
use std::sync::Arc;

use h5live_model::{BoundSelection, DatasetSpec, Datatype, Layout, ObjectId};

pub(crate) use self::core::{DatasetCore, StagedDatasets};
pub(crate) use self::error::DatasetError;
pub(crate) use self::read::ChunkCache;
pub use self::read::ChunkIter;
pub use self::read::DatasetFollower;
use self::read::DatasetReader;
use self::scratch::{filled_buffer, zeroed_buffer};
pub use self::sources::SourceState;
use self::spec_snapshot::SpecSnapshot;
use self::store::DatasetWriter;
use self::transfer::{
    ConvertedSink, ElementSink, ElementSource, RawSink, RawSource, TypedSink, TypedSource, ValueSink, ValueSource,
    check_length, raw_element_count,
};
use crate::convert::{Conversion, ElementPlan};
use crate::dims::CoreDims;
use crate::error::ErrorKind;
use crate::select::{ResolvedSelection, kept_dims};
use crate::value::{DecodePlan, EncodePlan, ValueMemory};
use crate::{File, H5Type, H5Write, Result, Select, Value, attribute};

/// An array of elements in a file. Clones of a handle, and other handles on the same dataset, share the staged
/// elements.
///
/// Elements are converted between their type in the file and the type of the caller. A value that the other type does
/// not have is an error ([`Conversion`]). Other processes see appended and written elements after a flush.
#[derive(Clone)]
pub struct Dataset {
    file: File,
    core: Arc<DatasetCore>,
    id: ObjectId,
    path: String,
    conversion: Conversion,
    /// Whether sources whose writers let nobody read them yet count as not there.
    awaits_sources: bool,
}

impl Dataset {
    pub(crate) fn open(file: File, id: ObjectId, path: String) -> Result<Dataset> {
        match file.core(id) {
            Ok(core) => {
                let conversion = file.shared().options.conversion;
                let dataset = Dataset { file, core, id, path, conversion, awaits_sources: false };
                // Sources that cannot be read are an error when they are read.
                dataset.forget_virtual_extent();
                Ok(dataset)
            }
            Err(kind) => Err(file.error(Some(&path), kind)),
        }
    }

    /// As [`Dataset::open`], of a dataset that has just been made.
    pub(crate) fn open_new(file: File, id: ObjectId, path: String) -> Result<Dataset> {
        let dataset = Dataset::open(file, id, path)?;
        dataset.file.shared().dataset_cache().mark_newest_created(id);
        Ok(dataset)
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The identity of the dataset in its file.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// The path by which the dataset was opened.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn with_error_path<T>(&self, action: impl FnOnce() -> Result<T, DatasetError>) -> Result<T> {
        action().map_err(|failure| failure.with_path(self.file.name(), Some(&self.path)))
    }

    /// A writer of elements and of the extent, if the file can be written.
    fn writer(&self) -> Result<DatasetWriter<'_>, DatasetError> {
        self.file.writer()?;
        self.core.note_path(&self.path);
        let writer = self.core.writer(self.file.store(), &self.file.shared().cache)?;
        Ok(self.core.check_accepts_elements().map(|()| writer)?)
    }

    /// Type, shape, layout, filters and fill value. The shape is as of the last refresh.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the description cannot be read; [`ErrorKind::OtherFile`] if the shape follows from sources
    /// of a virtual dataset, and one of them is there and cannot be read.
    pub fn spec(&self) -> Result<Arc<DatasetSpec>> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let mut spec = view.spec;
            if *spec.dataspace.dims() != *view.extent {
                let mut grown = DatasetSpec::clone(&spec);
                if let h5live_model::Dataspace::Simple(shape) = &mut grown.dataspace {
                    shape.resize(&view.extent);
                }
                spec = grown.into();
            }
            Ok(spec)
        })
    }

    /// The type of an element in the file.
    ///
    /// # Errors
    /// As [`Dataset::spec`].
    pub fn datatype(&self) -> Result<Datatype> {
        Ok(self.spec()?.datatype.clone())
    }

    fn reader<'a>(&'a self, view: &'a SpecSnapshot) -> DatasetReader<'a> {
        DatasetReader { core: &self.core, view, store: self.file.store(), cache: &self.file.shared().cache }
    }

    fn select(&self, view: &SpecSnapshot, selection: &impl Select) -> Result<BoundSelection, DatasetError> {
        self.bind_selection(view, selection.resolve(&view.extent)?)
    }

    /// The selection, checked against the extent.
    #[inline]
    fn bind_selection(&self, view: &SpecSnapshot, resolved: ResolvedSelection) -> Result<BoundSelection, DatasetError> {
        let selected = resolved.into_bound(&view.extent)?;
        self.core.check_allocation(view.size)?;
        // A null dataspace has no elements, unlike a scalar one, and the same rank.
        if matches!(view.spec.dataspace, h5live_model::Dataspace::Null) {
            return Ok(h5live_model::Selection::None.bind(&[])?);
        }
        Ok(selected)
    }

    /// All elements, in row-major order.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read<T: H5Type>(&self) -> Result<Vec<T>> {
        self.read_slice(h5live_model::Selection::All)
    }

    /// The element of a dataset that has just one.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_scalar<T: H5Type>(&self) -> Result<T> {
        let mut value = [T::placeholder()];
        self.read_into(h5live_model::Selection::All, &mut value)?;
        let [value] = value;
        Ok(value)
    }

    /// The elements of a selection: in row-major order, or in the order of its points.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_slice<T: H5Type>(&self, selection: impl Select) -> Result<Vec<T>> {
        Ok(self.read_with_dims(&selection)?.0)
    }

    /// The elements of a selection, and its shape without the dimensions that single indices drop.
    pub(crate) fn read_with_dims<T: H5Type>(&self, selection: &impl Select) -> Result<(Vec<T>, CoreDims)> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let resolved = selection.resolve(&view.extent)?;
            let dropped = resolved.dropped();
            let selected = self.bind_selection(&view, resolved)?;
            let elements = selected.elements();
            let values = usize::try_from(elements).ok().and_then(T::buffer);
            let mut values = values.ok_or(ErrorKind::TooLarge(elements.saturating_mul(size_of::<T>() as u64)))?;
            self.read_typed(&view, &selected, &mut values)?;
            Ok((values, kept_dims(selected.dims(), dropped)))
        })
    }

    /// The shape of a selection: without the dimensions that single indices drop, and with them.
    #[cfg(feature = "ndarray")]
    pub(crate) fn selected_dims(&self, selection: &impl Select) -> Result<[CoreDims; 2]> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let resolved = selection.resolve(&view.extent)?;
            let dropped = resolved.dropped();
            let selected = self.bind_selection(&view, resolved)?;
            Ok([kept_dims(selected.dims(), dropped), selected.dims()])
        })
    }

    /// Reads the elements of a selection into a buffer that has a place for each.
    ///
    /// # Errors
    /// [`ErrorKind::Selection`] if the selection does not fit, [`ErrorKind::Length`] if the buffer does not,
    /// [`ErrorKind::Convert`] if elements cannot be of type `T`, [`ErrorKind::Filter`] or [`ErrorKind::Store`] if
    /// they cannot be read.
    pub fn read_into<T: H5Type>(&self, selection: impl Select, values: &mut [T]) -> Result<()> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let selected = self.select(&view, &selection)?;
            check_length(&selected, values.len())?;
            self.read_typed(&view, &selected, values)
        })
    }

    fn read_typed<T: H5Type>(
        &self,
        view: &SpecSnapshot,
        selected: &BoundSelection,
        values: &mut [T],
    ) -> Result<(), DatasetError> {
        let decoder = T::decoder(&view.spec.datatype)?;
        let sink = TypedSink { values, decoder: &decoder, size: view.size, conversion: self.conversion, first: 0 };
        self.read_to(view, selected, sink)
    }

    fn read_to<S: ElementSink>(
        &self,
        view: &SpecSnapshot,
        selected: &BoundSelection,
        sink: S,
    ) -> Result<(), DatasetError> {
        match &view.spec.layout {
            Layout::Virtual(sources) => self.read_sources(sources, view, selected, sink),
            Layout::External(_) if !self.file.shared().options.raw_files => Err(ErrorKind::RawFilesRefused.into()),
            _ => self.reader(view).read(selected, sink),
        }
    }

    /// The elements of a selection as the file has them, without conversion.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_raw(&self, selection: impl Select) -> Result<Vec<u8>> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let selected = self.select(&view, &selection)?;
            let bytes = selected.elements().saturating_mul(view.size as u64);
            let mut bytes = zeroed_buffer(usize::try_from(bytes).map_err(|_| ErrorKind::TooLarge(bytes))?)?;
            self.read_to(&view, &selected, RawSink { bytes: &mut bytes, size: view.size })?;
            Ok(bytes)
        })
    }

    /// The elements of a selection as dynamic values. What lies within them (lists, members, texts, bytes) may have
    /// [`Options::max_allocation`](crate::Options::max_allocation) bytes of memory in all.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_values(&self, selection: impl Select) -> Result<Vec<Value>> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let selected = self.select(&view, &selection)?;
            let plan = DecodePlan::new(&view.spec.datatype)?;
            let bytes = selected.elements().saturating_mul(size_of::<Value>() as u64);
            let mut values = Vec::new();
            let reserved = usize::try_from(selected.elements()).map(|elements| values.try_reserve_exact(elements));
            if !matches!(reserved, Ok(Ok(()))) {
                return Err(ErrorKind::TooLarge(bytes).into());
            }
            values.resize(selected.elements() as usize, Value::default());
            let memory = ValueMemory::new(self.core.max_allocation);
            self.read_to(&view, &selected, ValueSink { values: &mut values, plan: &plan, memory: &memory })?;
            Ok(values)
        })
    }

    /// The elements of a selection as bytes of another datatype: numbers, enums by the names of their values, strings,
    /// compounds by the names of their members (what the file lacks is zero), arrays and complex numbers. What would
    /// change is an error ([`Conversion`]). Variable-length data stays in the heap of the file, except strings that
    /// become fixed.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_as(&self, selection: impl Select, datatype: &Datatype) -> Result<Vec<u8>> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let selected = self.select(&view, &selection)?;
            let plan = ElementPlan::new(&view.spec.datatype, datatype)?;
            let bytes = selected.elements().saturating_mul(plan.output_size() as u64);
            let mut bytes = zeroed_buffer(usize::try_from(bytes).map_err(|_| ErrorKind::TooLarge(bytes))?)?;
            let sink = ConvertedSink { bytes: &mut bytes, plan: &plan, conversion: self.conversion };
            self.read_to(&view, &selected, sink)?;
            Ok(bytes)
        })
    }

    /// Reads the elements of a selection as the file has them into a buffer of just their size.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_raw_into(&self, selection: impl Select, bytes: &mut [u8]) -> Result<()> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let selected = self.select(&view, &selection)?;
            check_length(&selected, raw_element_count(bytes, view.size)?)?;
            self.read_to(&view, &selected, RawSink { bytes, size: view.size })
        })
    }

    /// Writes all elements, in row-major order.
    ///
    /// # Errors
    /// As [`Dataset::write_slice`].
    pub fn write<T: H5Write>(&self, values: &[T]) -> Result<()> {
        self.write_slice(h5live_model::Selection::All, values)
    }

    /// Writes the element of a dataset that has just one.
    ///
    /// ```
    /// use h5live::File;
    ///
    /// let file = File::in_memory();
    /// let pressure = file.new_dataset::<f64>().create("pressure")?;
    /// pressure.write_scalar(&1013.25)?;
    /// assert_eq!(pressure.read_scalar::<f32>()?, 1013.25);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dataset::write_slice`].
    pub fn write_scalar<T: H5Write>(&self, value: &T) -> Result<()> {
        self.write(std::slice::from_ref(value))
    }

    /// Writes the elements of a selection: in row-major order, or in the order of its points.
    ///
    /// Elements of a virtual dataset are written to its sources, also in other files. [`File::flush`] of this file flushes
    /// them, too.
    ///
    /// # Errors
    /// [`ErrorKind::Selection`] if the selection does not fit, [`ErrorKind::Length`] if there are more or fewer
    /// values, [`ErrorKind::Convert`] if the file's type cannot hold them, [`ErrorKind::Filter`] or
    /// [`ErrorKind::Store`] if they cannot be written.
    pub fn write_slice<T: H5Write>(&self, selection: impl Select, values: &[T]) -> Result<()> {
        self.with_error_path(|| {
            if let Some(view) = self.virtual_view()? {
                return self.write_virtual(&view, &selection, values.len(), |selected, bytes| {
                    let encoder = T::Element::encoder(&view.spec.datatype)?;
                    if T::Element::is_partial(&encoder) {
                        self.read_to(&view, selected, RawSink { bytes, size: view.size })?;
                    }
                    Ok(T::encode_elements(&encoder, values, bytes, view.size, self.heap())?)
                });
            }
            let writer = self.writer()?;
            let view = writer.spec_snapshot();
            let selected = self.select(view, &selection)?;
            check_length(&selected, values.len())?;
            let encoder = T::Element::encoder(&view.spec.datatype)?;
            let input = TypedSource { values, encoder: &encoder, size: view.size, heap: self.heap() };
            if !T::Element::is_partial(&encoder) {
                return writer.overwrite_selection(&selected, &input);
            }
            let mut bytes = zeroed_buffer(values.len().saturating_mul(view.size))?;
            self.reader(view).read(&selected, RawSink { bytes: &mut bytes, size: view.size })?;
            let mut old = writer.blobs_in(&bytes);
            T::encode_elements(&encoder, values, &mut bytes, view.size, self.heap())?;
            writer.write_selection(&selected, &RawSource { bytes: &bytes, size: view.size })?;
            writer.blobs_in(&bytes).iter().for_each(|kept| drop(old.take(kept)));
            writer.give_up(old)
        })
    }

    /// Writes dynamic values to the elements of a selection: values as [`Dataset::read_values`] returns them, or values
    /// that can be converted without loss (a list for a compound, the name of an enum's value as a text).
    ///
    /// ```
    /// use h5live::{File, Value};
    ///
    /// let file = File::in_memory();
    /// let data = file.new_dataset::<String>().shape(&[2]).create("names")?;
    /// data.write_values(1.., &[Value::Text("Ada".into())])?;
    /// assert_eq!(data.read::<String>()?, ["", "Ada"]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dataset::write_slice`].
    pub fn write_values(&self, selection: impl Select, values: &[Value]) -> Result<()> {
        self.with_error_path(|| {
            if let Some(view) = self.virtual_view()? {
                return self.write_virtual(&view, &selection, values.len(), |_, bytes| {
                    let plan = EncodePlan::new(&view.spec.datatype)?;
                    Ok(ValueSource { values, plan: &plan, heap: self.heap() }.get_elements(0..values.len(), bytes)?)
                });
            }
            let writer = self.writer()?;
            let selected = self.select(writer.spec_snapshot(), &selection)?;
            check_length(&selected, values.len())?;
            let plan = EncodePlan::new(&writer.spec_snapshot().spec.datatype)?;
            writer.overwrite_selection(&selected, &ValueSource { values, plan: &plan, heap: self.heap() })
        })
    }

    /// Writes the elements of a selection in the file's type, without conversion.
    ///
    /// # Errors
    /// As [`Dataset::write_slice`].
    pub fn write_raw(&self, selection: impl Select, bytes: &[u8]) -> Result<()> {
        self.with_error_path(|| {
            let size = self.core.stored_element_size()?;
            if let Some(view) = self.virtual_view()? {
                let elements = raw_element_count(bytes, view.size)?;
                return self.write_virtual(&view, &selection, elements, |_, into| {
                    into.copy_from_slice(bytes);
                    Ok(())
                });
            }
            let writer = self.writer()?;
            let selected = self.select(writer.spec_snapshot(), &selection)?;
            check_length(&selected, raw_element_count(bytes, size)?)?;
            writer.write_selection(&selected, &RawSource { bytes, size })
        })
    }

    /// Appends rows along the first dimension, or along the unlimited one if the first cannot grow. The values are
    /// whole rows, in row-major order.
    ///
    /// Other processes see them after the next flush, and never only in part.
    ///
    /// # Errors
    /// [`ErrorKind::CannotGrow`], [`ErrorKind::Rows`], [`ErrorKind::InvalidExtent`] if the maximum is reached, or as
    /// [`Dataset::write_slice`]. After an error the extent is as it was.
    pub fn append<T: H5Write>(&self, values: &[T]) -> Result<()> {
        self.file.shared().publisher.take_deferred_error()?;
        self.with_append_error(|| {
            if self.core.append_rows(|spec| T::stored_elements(&spec.datatype, values))? {
                return Ok(());
            }
            let mut writer = self.writer()?;
            let rows = writer.plan_row_append(values.len())?;
            let encoder = T::Element::encoder(&writer.spec_snapshot().spec.datatype)?;
            let size = writer.spec_snapshot().size;
            if !T::Element::is_partial(&encoder) {
                let input = TypedSource { values, encoder: &encoder, size, heap: self.heap() };
                return writer.append_rows(rows, &input);
            }
            let mut bytes = filled_buffer(writer.spec_snapshot(), values.len())?;
            T::encode_elements(&encoder, values, &mut bytes, size, self.heap())?;
            writer.append_rows(rows, &RawSource { bytes: &bytes, size })
        })?;
        self.count_rows(values.len() as u64)
    }

    /// Appends rows of dynamic values.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn append_values(&self, values: &[Value]) -> Result<()> {
        self.file.shared().publisher.take_deferred_error()?;
        self.with_append_error(|| {
            let mut writer = self.writer()?;
            let rows = writer.plan_row_append(values.len())?;
            let plan = EncodePlan::new(&writer.spec_snapshot().spec.datatype)?;
            writer.append_rows(rows, &ValueSource { values, plan: &plan, heap: self.heap() })
        })?;
        self.count_rows(values.len() as u64)
    }

    /// Appends rows of elements in the file's type, without conversion.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn append_raw(&self, bytes: &[u8]) -> Result<()> {
        self.file.shared().publisher.take_deferred_error()?;
        let size = self.with_error_path(|| Ok(self.core.stored_element_size()?))?;
        self.stage_rows(bytes)?;
        self.count_rows((bytes.len() / size) as u64)
    }

    /// Appends rows of elements in the file's type, and publishes nothing.
    pub(crate) fn stage_rows(&self, bytes: &[u8]) -> Result<()> {
        self.with_append_error(|| {
            if self.core.append_rows(|_| Some(bytes))? {
                return Ok(());
            }
            let mut writer = self.writer()?;
            let size = writer.spec_snapshot().size;
            let rows = writer.plan_row_append(raw_element_count(bytes, size)?)?;
            writer.append_rows(rows, &RawSource { bytes, size })
        })
    }

    /// Refuses elements that are no whole rows.
    pub(crate) fn check_rows(&self, bytes: &[u8]) -> Result<()> {
        self.with_error_path(|| {
            let writer = self.writer()?;
            Ok(writer.plan_row_append(raw_element_count(bytes, writer.spec_snapshot().size)?).map(drop)?)
        })
    }

    /// Converts values to elements in the file's type.
    pub(crate) fn encode_rows<T: H5Write>(&self, values: &[T]) -> Result<Vec<u8>> {
        self.with_error_path(|| {
            self.file.writer()?;
            let view = self.resolved_snapshot()?;
            let encoder = T::Element::encoder(&view.spec.datatype)?;
            self.core.check_allocation(view.size)?;
            let mut bytes = filled_buffer(&view, values.len())?;
            T::encode_elements(&encoder, values, &mut bytes, view.size, self.heap())?;
            Ok(bytes)
        })
    }

    /// Changes the dimensions (`[rank]`, elements). New elements have the fill value; those outside are gone.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidExtent`] above the maximum or of another rank, [`ErrorKind::Store`] if the layout cannot
    /// change.
    pub fn resize(&self, dims: &[u64]) -> Result<()> {
        self.with_error_path(|| {
            let mut writer = self.writer()?;
            self.core.write_out_earlier(self.file.shared())?;
            writer.resize_extent(dims)
        })
    }
}

attribute::attributes!(Dataset);

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset({}:{})", self.file.name(), self.path)
    }
}
