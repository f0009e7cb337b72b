//! What a dataset offers to those who write and append elements. Each write begins here.

use std::ops::Range;

use h5live_model::{ChunkBatch, ChunkCoord, ChunkWrite, Datatype, StoredChunk};

use super::append::{RowAppend, elements_per_row, try_append_next_rows};
use super::extent::resize_extent;
use super::selection::{overwrite_selection, write_selection};
use crate::convert::{ElementPlan, KeyTable};
use crate::dataset::Dataset;
use crate::dataset::error::DatasetError;
use crate::dataset::scratch::{filled_buffer, zeroed_buffer};
use crate::dataset::transfer::{
    ElementSource, RawSink, RawSource, TypedSource, ValueSource, check_length, raw_element_count,
};
use crate::value::EncodePlan;
use crate::{H5Type, H5Write, Result, Select, Value};

/// Blocks of a chunk that are copied or left out (bytes).
const BLOCK: usize = 64 << 10;

/// The ranges of blocks that must be written. Neighbouring blocks are one range.
fn runs_to_write(bytes: &[u8], fill: &[u8], is_wanted: impl Fn(usize, &[u8], &[u8]) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (n, (bytes, fill)) in bytes.chunks(BLOCK).zip(fill.chunks(BLOCK)).enumerate() {
        if !is_wanted(n, bytes, fill) {
            continue;
        }
        let block = n * BLOCK..n * BLOCK + bytes.len();
        match runs.last_mut().filter(|run| run.end == block.start) {
            Some(run) => run.end = block.end,
            None => runs.push(block),
        }
    }
    runs
}

impl Dataset {
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
    /// Elements of a virtual dataset are written to its sources, also in other files. [`File::flush`](crate::File::flush) of
    /// this file flushes them, too.
    ///
    /// # Errors
    /// [`ErrorKind::Selection`](crate::ErrorKind::Selection) if the selection does not fit,
    /// [`ErrorKind::ElementCount`](crate::ErrorKind::ElementCount) if there are more or fewer values,
    /// [`ErrorKind::Convert`](crate::ErrorKind::Convert) if the file's type cannot hold them,
    /// [`ErrorKind::Filter`](crate::ErrorKind::Filter) or [`ErrorKind::Store`](crate::ErrorKind::Store) if they cannot be
    /// written.
    pub fn write_slice<T: H5Write>(&self, selection: impl Select, values: &[T]) -> Result<()> {
        self.with_error_path(|| {
            if let Some(view) = self.virtual_view()? {
                return self.write_virtual(&view, &selection, values.len(), |selected, bytes| {
                    let encoder = T::Element::encoder(&view.spec.datatype)?;
                    if T::Element::leaves_bytes_unchanged(&encoder) {
                        self.read_to(&view, selected, RawSink { bytes, size: view.size })?;
                    }
                    Ok(T::encode_elements(&encoder, values, bytes, view.size, self.context())?)
                });
            }
            let writer = self.writer()?;
            let view = &writer.view;
            let selected = self.select(view, &selection)?;
            check_length(&selected, values.len())?;
            let encoder = T::Element::encoder(&view.spec.datatype)?;
            let input = TypedSource { values, encoder: &encoder, size: view.size, context: self.context() };
            if !T::Element::leaves_bytes_unchanged(&encoder) {
                return overwrite_selection(&writer, &selected, &input);
            }
            let mut bytes = zeroed_buffer(values.len().saturating_mul(view.size))?;
            self.reader(view).read(&selected, RawSink { bytes: &mut bytes, size: view.size })?;
            let mut old = writer.blobs_in(&bytes);
            T::encode_elements(&encoder, values, &mut bytes, view.size, self.context())?;
            write_selection(&writer, &selected, &RawSource { bytes: &bytes, size: view.size })?;
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
                    Ok(ValueSource { values, plan: &plan, context: self.context() }
                        .get_elements(0..values.len(), bytes)?)
                });
            }
            let writer = self.writer()?;
            let selected = self.select(&writer.view, &selection)?;
            check_length(&selected, values.len())?;
            let plan = EncodePlan::new(&writer.view.spec.datatype)?;
            overwrite_selection(&writer, &selected, &ValueSource { values, plan: &plan, context: self.context() })
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
            let selected = self.select(&writer.view, &selection)?;
            check_length(&selected, raw_element_count(bytes, size)?)?;
            write_selection(&writer, &selected, &RawSource { bytes, size })
        })
    }

    /// Writes the elements of a selection from elements of another datatype, which are converted as
    /// [`Dataset::read_as`] does it, the other way round. Members of a compound that `datatype` lacks keep their values.
    ///
    /// ```
    /// use h5live::{ByteOrder, Datatype, File};
    ///
    /// let file = File::in_memory();
    /// let data = file.new_dataset::<f32>().shape(&[3]).create("data")?;
    /// data.write_as(1.., &Datatype::integer(1, ByteOrder::Little, Default::default()), &[2, 3])?;
    /// assert_eq!(data.read::<f32>()?, [0.0, 2.0, 3.0]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dataset::write_slice`].
    pub fn write_as(&self, selection: impl Select, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
        let stored = self.datatype()?;
        if stored == *datatype {
            return self.write_raw(selection, bytes);
        }
        let converted = self.with_error_path(|| {
            let plan = ElementPlan::new(datatype, &stored)?;
            let elements = raw_element_count(bytes, plan.input_size())?;
            let mut converted = zeroed_buffer(elements.saturating_mul(plan.output_size()))?;
            if lacks_members(&stored, datatype) {
                let view = self.resolved_snapshot()?;
                let selected = self.select(&view, &selection)?;
                check_length(&selected, elements)?;
                self.read_to(&view, &selected, RawSink { bytes: &mut converted, size: view.size })?;
            }
            plan.convert_elements(bytes, &mut converted, self.context().keep_members())?;
            Ok(converted)
        })?;
        self.write_raw(selection, &converted)
    }

    /// Replaces a chunk by `bytes`, which are the output of its filters. Filters whose bit is set in the mask were not
    /// applied (bit `i`: filter `i`).
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the chunk is outside the maximum, or its length is wrong and there
    /// are no filters.
    pub fn write_chunk(&self, coord: &ChunkCoord, filter_mask: u32, bytes: &[u8]) -> Result<()> {
        self.write_chunks(&[ChunkWrite::Whole { coord, filter_mask, bytes }])
    }

    /// As [`Dataset::write_chunk`], for chunks that are written as wholes.
    pub(crate) fn write_chunks(&self, chunks: &[ChunkWrite<'_>]) -> Result<()> {
        self.with_error_path(|| self.writer()?.write_stored(chunks))
    }

    /// Writes what of a part of a chunk is not the fill value, if the chunk `is_filled`.
    pub(crate) fn write_copied_part(
        &self,
        chunk: &StoredChunk,
        (at, bytes): (u64, &[u8]),
        fill: &mut [u8],
        is_filled: bool,
    ) -> Result<()> {
        let spec = self.spec()?;
        let fill = &mut fill[..bytes.len()];
        if spec.nonzero_fill_value().is_some() {
            spec.fill_into(at, fill);
        }
        // The first block makes the chunk.
        let is_wanted = |n: usize, bytes: &[u8], fill: &[u8]| !is_filled || bytes != fill || at == 0 && n == 0;
        runs_to_write(bytes, fill, is_wanted).into_iter().try_for_each(|run| {
            self.with_error_path(|| {
                let at = at + run.start as u64;
                let write =
                    [ChunkWrite::ByteRange { coord: &chunk.coord, byte_offset: at, bytes: &bytes[run], unseen: true }];
                let written = self.core.chunks.write(&ChunkBatch { writes: &write, ..ChunkBatch::default() });
                written.map_err(|error| DatasetError::in_chunk(&chunk.coord, error))
            })
        })
    }

    /// Appends rows along the first dimension, or along the unlimited one if the first cannot grow. The values are
    /// whole rows, in row-major order.
    ///
    /// Other processes see them after the next flush, and never only in part.
    ///
    /// # Errors
    /// [`ErrorKind::CannotGrow`](crate::ErrorKind::CannotGrow), [`ErrorKind::NotWholeRows`](crate::ErrorKind::NotWholeRows),
    /// [`ErrorKind::InvalidExtent`](crate::ErrorKind::InvalidExtent) if the maximum is reached, or as
    /// [`Dataset::write_slice`]. After an error the extent is as it was.
    pub fn append<T: H5Write>(&self, values: &[T]) -> Result<()> {
        self.file.shared().publisher.take_deferred_error()?;
        self.with_append_error(|| {
            if try_append_next_rows(&self.core, |spec| T::as_stored_elements(&spec.datatype, values))? {
                return Ok(());
            }
            let mut writer = self.writer()?;
            let rows = RowAppend::plan(&writer.view, values.len())?;
            let encoder = T::Element::encoder(&writer.view.spec.datatype)?;
            let size = writer.view.size;
            if !T::Element::leaves_bytes_unchanged(&encoder) {
                let input = TypedSource { values, encoder: &encoder, size, context: self.context() };
                return rows.append(&mut writer, &input);
            }
            let mut bytes = filled_buffer(&writer.view, values.len())?;
            T::encode_elements(&encoder, values, &mut bytes, size, self.context())?;
            rows.append(&mut writer, &RawSource { bytes: &bytes, size })
        })?;
        self.flush_if_rows_due(values.len() as u64)
    }

    /// Appends rows of dynamic values.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn append_values(&self, values: &[Value]) -> Result<()> {
        self.file.shared().publisher.take_deferred_error()?;
        self.with_append_error(|| {
            let mut writer = self.writer()?;
            let rows = RowAppend::plan(&writer.view, values.len())?;
            let plan = EncodePlan::new(&writer.view.spec.datatype)?;
            rows.append(&mut writer, &ValueSource { values, plan: &plan, context: self.context() })
        })?;
        self.flush_if_rows_due(values.len() as u64)
    }

    /// Appends rows of elements in the file's type, without conversion.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn append_raw(&self, bytes: &[u8]) -> Result<()> {
        self.file.shared().publisher.take_deferred_error()?;
        let size = self.with_error_path(|| Ok(self.core.stored_element_size()?))?;
        self.append_unpublished_rows(bytes)?;
        self.flush_if_rows_due((bytes.len() / size) as u64)
    }

    /// Appends rows of elements of another datatype, which are converted as by [`Dataset::write_as`]. Members of a
    /// compound that `datatype` lacks have the fill value.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn append_as(&self, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
        if self.with_error_path(|| Ok(self.core.spec_snapshot()?.spec.datatype == *datatype))? {
            return self.append_raw(bytes);
        }
        let converted = self.with_error_path(|| -> Result<_, DatasetError> {
            let view = self.resolved_snapshot()?;
            let plan = ElementPlan::new(datatype, &view.spec.datatype)?;
            let elements = raw_element_count(bytes, plan.input_size())?;
            let mut converted = filled_buffer(&view, elements)?;
            plan.convert_elements(bytes, &mut converted, self.context().keep_members())?;
            Ok(converted)
        })?;
        self.append_raw(&converted)
    }

    /// Appends rows of elements in the file's type, and publishes nothing.
    pub(crate) fn append_unpublished_rows(&self, bytes: &[u8]) -> Result<()> {
        self.with_append_error(|| {
            if try_append_next_rows(&self.core, |_| Some(bytes))? {
                return Ok(());
            }
            let mut writer = self.writer()?;
            let size = writer.view.size;
            let rows = RowAppend::plan(&writer.view, raw_element_count(bytes, size)?)?;
            rows.append(&mut writer, &RawSource { bytes, size })
        })
    }

    /// Refuses elements that are no whole rows.
    pub(crate) fn check_rows(&self, bytes: &[u8]) -> Result<()> {
        self.with_error_path(|| {
            let writer = self.writer()?;
            Ok(RowAppend::plan(&writer.view, raw_element_count(bytes, writer.view.size)?).map(drop)?)
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
            T::encode_elements(&encoder, values, &mut bytes, view.size, self.context())?;
            Ok(bytes)
        })
    }

    /// Counts appended rows, and flushes when they are as many as the options say.
    pub(crate) fn flush_if_rows_due(&self, values: u64) -> Result<()> {
        let Some(max_rows) = self.file.shared().options.publish_rows else { return Ok(()) };
        let per_row = self.with_error_path(|| Ok(elements_per_row(&self.core.spec_snapshot()?)?))?;
        let rows = values / per_row.max(1);
        if self.core.publish.count_rows(rows) < max_rows {
            return Ok(());
        }
        self.flush()
    }

    /// Changes the dimensions (`[rank]`, elements). New elements have the fill value; those outside are gone.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidExtent`](crate::ErrorKind::InvalidExtent) above the maximum or of another rank,
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the layout cannot change.
    pub fn resize(&self, dims: &[u64]) -> Result<()> {
        self.with_error_path(|| {
            let mut writer = self.writer()?;
            self.core.write_out_earlier(self.file.shared())?;
            resize_extent(&mut writer, dims)
        })
    }
}

/// Whether a compound has members that another one has not, at any depth.
fn lacks_members(stored: &Datatype, given: &Datatype) -> bool {
    match (stored, given) {
        (Datatype::Compound(stored), Datatype::Compound(given)) => {
            let given: KeyTable<_, _> = given.members.iter().map(|member| (&member.name, &member.datatype)).collect();
            stored
                .members
                .iter()
                .any(|member| given.find(&member.name).is_none_or(|other| lacks_members(&member.datatype, other)))
        }
        (Datatype::Array(stored), Datatype::Array(given)) => lacks_members(&stored.base, &given.base),
        _ => false,
    }
}
