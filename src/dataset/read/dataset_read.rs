//! What a dataset offers to those who read its elements. Each read begins here.

use bytemuck::Pod;
use h5live_model::{BoundSelection, ChunkCoord, DatasetView, Datatype, Layout, Selection};
#[cfg(feature = "serde")]
use serde::de::DeserializeOwned;

use super::chunk_reader::DatasetReader;
use super::follow::DatasetFollower;
use crate::convert::ElementPlan;
use crate::dataset::Dataset;
use crate::dataset::error::DatasetError;
use crate::dataset::scratch::zeroed_buffer;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::transfer::{
    ConvertedSink, ElementSink, RawSink, TypedSink, ValueSink, check_length, raw_element_count,
};
use crate::dims::CoreDims;
use crate::error::ErrorKind;
use crate::select::kept_dims;
#[cfg(feature = "serde")]
use crate::serde_value::ValueDeserializer;
use crate::value::{DecodePlan, ValueBudget};
use crate::{H5Type, Result, Select, Value};

impl Dataset {
    /// All elements, in row-major order.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read<T: H5Type>(&self) -> Result<Vec<T>> {
        self.read_slice(Selection::All)
    }

    /// The element of a dataset that has just one.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_scalar<T: H5Type>(&self) -> Result<T> {
        let mut value = [T::placeholder()];
        self.read_into(Selection::All, &mut value)?;
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
            let elements = selected.element_count();
            let values = usize::try_from(elements).ok().and_then(T::try_alloc_buffer);
            let mut values = values.ok_or(ErrorKind::OutOfMemory(elements.saturating_mul(size_of::<T>() as u64)))?;
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
    /// [`ErrorKind::Selection`] if the selection does not fit, [`ErrorKind::ElementCount`] if the buffer does not,
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

    /// The elements of a selection as the file has them, without conversion.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_raw(&self, selection: impl Select) -> Result<Vec<u8>> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let selected = self.select(&view, &selection)?;
            let bytes = selected.element_count().saturating_mul(view.size as u64);
            let mut bytes = zeroed_buffer(usize::try_from(bytes).map_err(|_| ErrorKind::OutOfMemory(bytes))?)?;
            self.read_to(&view, &selected, RawSink { bytes: &mut bytes, size: view.size })?;
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
            let bytes = selected.element_count().saturating_mul(size_of::<Value>() as u64);
            let mut values = Vec::new();
            let reserved = usize::try_from(selected.element_count()).map(|elements| values.try_reserve_exact(elements));
            if !matches!(reserved, Ok(Ok(()))) {
                return Err(ErrorKind::OutOfMemory(bytes).into());
            }
            values.resize(selected.element_count() as usize, Value::default());
            let memory = ValueBudget::new(self.core.max_allocation);
            self.read_to(&view, &selected, ValueSink { values: &mut values, plan: &plan, memory: &memory })?;
            Ok(values)
        })
    }

    #[cfg(feature = "serde")]
    /// The elements of a selection, in row-major order, as values of a type that derives `serde::Deserialize`.
    ///
    /// Compounds are structs or maps, arrays and sequences are `Vec`s, arrays or tuples, values of enums are texts or
    /// variants without data, complex numbers are `(real, imaginary)`. Fields are found by name, and what a member
    /// cannot be is an error. It is slower than [`derive(H5Type)`](macro@crate::H5Type), and knows all attributes of
    /// `serde`: fields that may be missing, other names, types of other crates.
    ///
    /// ```
    /// use h5live::{File, H5Type};
    /// use serde::Deserialize;
    ///
    /// #[derive(H5Type, Clone)]
    /// struct Sample {
    ///     time: f64,
    ///     counts: [u16; 2],
    /// }
    ///
    /// #[derive(Deserialize)]
    /// struct Row {
    ///     #[serde(rename = "time")]
    ///     seconds: f64,
    ///     counts: Vec<u32>,
    ///     #[serde(default)]
    ///     comment: String,
    /// }
    ///
    /// let file = File::in_memory();
    /// let log = file.new_dataset::<Sample>().unlimited_rows(&[]).create("log")?;
    /// log.append(&[Sample { time: 0.5, counts: [1, 2] }, Sample { time: 1.5, counts: [3, 4] }])?;
    /// let rows: Vec<Row> = log.read_rows(1..)?;
    /// assert_eq!((rows[0].seconds, &rows[0].counts[..], rows[0].comment.as_str()), (1.5, &[3, 4][..], ""));
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Deserialize`] with the number of the element in the selection, or as [`Dataset::read_values`].
    pub fn read_rows<T: DeserializeOwned>(&self, selection: impl Select) -> Result<Vec<T>> {
        let values = self.read_values(selection)?.into_iter().enumerate();
        let row = |(element, value)| {
            let failed = |error| ErrorKind::Deserialize { element: element as u64, error };
            T::deserialize(ValueDeserializer(value))
                .map_err(|error| self.file().error(Some(self.path()), failed(error)))
        };
        values.map(row).collect()
    }

    /// The elements of a selection as bytes of another datatype: numbers, enums by the names of their values, strings,
    /// compounds by the names of their members (what the file lacks is zero), arrays and complex numbers. What would
    /// change is an error ([`ConversionPolicy`](crate::ConversionPolicy)). Variable-length data stays in the heap of the file,
    /// except strings that become fixed.
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_as(&self, selection: impl Select, datatype: &Datatype) -> Result<Vec<u8>> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let selected = self.select(&view, &selection)?;
            let plan = ElementPlan::new(&view.spec.datatype, datatype)?;
            let bytes = selected.element_count().saturating_mul(plan.output_size() as u64);
            let mut bytes = zeroed_buffer(usize::try_from(bytes).map_err(|_| ErrorKind::OutOfMemory(bytes))?)?;
            let sink = ConvertedSink { bytes: &mut bytes, plan: &plan, conversion: self.conversion };
            self.read_to(&view, &selected, sink)?;
            Ok(bytes)
        })
    }

    /// Reads the elements of a selection into a buffer of just their size, as elements of another datatype
    /// ([`Dataset::read_as`]).
    ///
    /// ```
    /// use h5live::{ByteOrder, Datatype, File};
    ///
    /// let file = File::in_memory();
    /// let data = file.new_dataset::<u8>().shape(&[3]).create("data")?;
    /// data.write(&[1, 2, 3])?;
    /// let mut bytes = [0; 8];
    /// data.read_as_into(1.., &Datatype::float(4, ByteOrder::Little).unwrap(), &mut bytes)?;
    /// assert_eq!(bytes, [2_f32.to_le_bytes(), 3_f32.to_le_bytes()].concat()[..]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_as_into(&self, selection: impl Select, datatype: &Datatype, bytes: &mut [u8]) -> Result<()> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let selected = self.select(&view, &selection)?;
            let plan = ElementPlan::new(&view.spec.datatype, datatype)?;
            check_length(&selected, raw_element_count(bytes, plan.output_size())?)?;
            if plan.is_copy() {
                return self.read_to(&view, &selected, RawSink { bytes, size: view.size });
            }
            self.read_to(&view, &selected, ConvertedSink { bytes, plan: &plan, conversion: self.conversion })
        })
    }

    pub(crate) fn read_to<S: ElementSink>(
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

    pub(crate) fn reader<'a>(&'a self, view: &'a SpecSnapshot) -> DatasetReader<'a> {
        DatasetReader { core: &self.core, view, store: self.file.store(), cache: &self.file.shared().cache }
    }

    /// All elements without reading them into memory: a contiguous dataset, or one that is a single chunk without
    /// filters, whose elements are stored just as `T` is in memory, in a file that was opened to be read
    /// ([`File::open`]). h5live aligns those of 4 KiB and more to eight bytes, so that they can be seen so.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("run.h5");
    /// # let file = h5live::File::create(&path)?;
    /// # file.new_dataset::<f64>().shape(&[1000]).contiguous().create("data")?.write(&[2.5; 1000])?;
    /// # file.close()?;
    /// let file = h5live::File::open(&path)?;
    /// let view = file.dataset("data")?.view::<f64>()?;
    /// // SAFETY: nobody changes this file.
    /// assert_eq!(unsafe { view.as_slice() }[1], 2.5);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Who looks at the elements promises that nobody changes the file meanwhile: [`DatasetView::as_slice`] is unsafe.
    ///
    /// # Errors
    /// [`ErrorKind::NotViewable`] with the reason if the dataset cannot be seen so; [`ErrorKind::Convert`] if its
    /// elements cannot be of type `T` at all.
    ///
    /// [`File::open`]: crate::File::open
    pub fn view<T: H5Type + Pod>(&self) -> Result<DatasetView<T>> {
        self.with_error_path(|| {
            let view = self.core.spec_snapshot()?;
            let decoder = T::decoder(&view.spec.datatype)?;
            if T::as_stored_mut(&decoder, &mut [T::zeroed()]).is_none() {
                return Err(ErrorKind::NotViewable("its elements are stored in another form").into());
            }
            let Some((grid, len)) = view.grid()? else {
                return Err(ErrorKind::NotViewable("it has no elements").into());
            };
            let first = ChunkCoord::new(&vec![0; view.extent.len()]);
            if grid.chunk_exceeds_extent(&first, &view.extent)
                || grid.chunk_element_count() != Some(view.extent.iter().product())
            {
                return Err(ErrorKind::NotViewable("it is cut into chunks").into());
            }
            if !self.core.filters.is_empty() {
                return Err(ErrorKind::NotViewable("it has filters").into());
            }
            let stored = self.core.chunks.locate(&first)?.filter(|stored| stored.size >= len as u64);
            let stored = stored.ok_or(ErrorKind::NotViewable("nobody wrote its elements"))?;
            let bytes = self.core.chunks.map(&stored, len as u64)?;
            let bytes =
                bytes.ok_or(ErrorKind::NotViewable("the file is not open just to be read, or cannot be mapped"))?;
            let elements = bytes.into_elements();
            elements.ok_or_else(|| ErrorKind::NotViewable("its elements are not aligned in the file").into())
        })
    }

    /// Follows the dataset: an iterator over the rows that are there, and those that a writer publishes from now on.
    /// Rows run along the first dimension, or along the unlimited one if the first cannot grow.
    ///
    /// ```
    /// use h5live::File;
    /// # use h5live::model::memory::MemoryStore;
    /// # let store = MemoryStore::new();
    /// # let writer = File::with_store(std::sync::Arc::new(store.clone()), "run.h5", File::options())?;
    /// # let log = writer.new_dataset::<f64>().unlimited_rows(&[]).create("log")?;
    /// # writer.start_swmr()?;
    /// # let reader = File::with_store(std::sync::Arc::new(store.open_reader()), "run.h5", File::options())?;
    /// # log.append(&[1.0, 2.0, 3.0])?;
    /// # writer.close()?;
    /// for batch in reader.dataset("log")?.follow::<f64>() {
    ///     println!("{:?}", batch?);
    /// }
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn follow<T: H5Type>(&self) -> DatasetFollower<T> {
        DatasetFollower::new(self.clone().ignore_busy_sources_in_extent())
    }
}
