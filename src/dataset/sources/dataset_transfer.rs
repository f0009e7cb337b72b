//! Elements of virtual datasets, read from their sources and written to them (format specification 4.0, III.J "Virtual
//! Dataset").

use std::sync::Arc;

use h5live_model::{BoundSelection, Layout, VirtualSource};

use super::depth_guard::VirtualDepthGuard;
use super::source_parts::{
    ElementRuns, SourcePart, for_each_part, for_each_piece, has_shared_elements, target_between,
};
use crate::convert::{ElementPlan, blank_elements};
use crate::dataset::Dataset;
use crate::dataset::error::DatasetError;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::transfer::{ElementSink, RawSink, RawSource, check_length};
use crate::dataset::write::write_selection;
use crate::error::ErrorKind;
use crate::{File, Result, Select};

impl Dataset {
    /// Reads the elements of a selection from the sources; the fill value where there is none.
    pub(crate) fn read_sources<S: ElementSink>(
        &self,
        sources: &[VirtualSource],
        view: &SpecSnapshot,
        selected: &BoundSelection,
        mut sink: S,
    ) -> Result<(), DatasetError> {
        let Some((lo, hi)) = selected.bounds() else { return Ok(()) };
        let _layer = VirtualDepthGuard::enter()?;
        let elements =
            usize::try_from(selected.element_count()).map_err(|_| ErrorKind::OutOfMemory(selected.element_count()))?;
        sink.fill_with(0..elements, &view.spec.fill_value_or_zeros(), self.file.context())?;
        let bounds = (lo.as_slice(), hi.as_slice());
        let places = self.places_of_sources(view, bounds);
        for_each_piece((sources, &places), bounds, |piece| {
            let Some(target) = target_between(piece, view, bounds) else { return Ok(()) };
            let source = match self.open_source(&piece.file, &piece.dataset) {
                Ok(Some(source)) => source,
                // The boxes around the elements meet, and the elements may not.
                _ if !has_shared_elements(selected, &target, bounds) => return Ok(()),
                Ok(None) => return Ok(self.note_missing_source(&piece.file, &piece.dataset)?),
                Err(failure) => return Err(failure),
            };
            let source_view = source.resolved_snapshot().map_err(|failure| source.to_other_file_error(failure))?;
            let plan = ElementPlan::new(&source_view.spec.datatype, &view.spec.datatype)?;
            if S::KEEPS_HEAP_IDS && view.spec.datatype.has_vlen_or_references() && !source.file.is_same_file(&self.file)
            {
                return Err(ErrorKind::Unsupported("raw variable-length data of a virtual dataset's other file").into());
            }
            for_each_part((piece, &target), (&source, &source_view), bounds, view.size, |part| {
                let _reading = source.core.blobs.begin_read(&source_view.spec.datatype);
                let elements = self.read_converted(part, (&plan, view.size))?;
                let context = source.file.context();
                let mut result = Ok(());
                selected.for_each_shared(part.elements, |place, at, len| {
                    if result.is_ok() {
                        let bytes = at as usize * view.size..(at + len) as usize * view.size;
                        result = sink.put_elements(place as usize..(place + len) as usize, &elements[bytes], context);
                    }
                });
                Ok(result?)
            })
        })
    }

    /// The places of the sources that may have elements between `lo` and `hi`.
    fn places_of_sources(&self, view: &SpecSnapshot, (lo, hi): (&[u64], &[u64])) -> Vec<usize> {
        self.core.sources.as_ref().map_or_else(Vec::new, |sources| sources.index.between(view, (lo, hi)))
    }

    /// Elements of a source, as `plan` makes elements of `size` bytes of them.
    fn read_converted(
        &self,
        part: &SourcePart<'_>,
        (plan, size): (&ElementPlan, usize),
    ) -> Result<Vec<u8>, DatasetError> {
        let SourcePart { source, source_view, source_elements, .. } = part;
        let bytes = source_elements.element_count().saturating_mul(source_view.size as u64);
        let mut elements = self.core.max_allocation.zeroed(bytes)?;
        let raw = RawSink { bytes: &mut elements, size: source_view.size };
        source.read_to(source_view, source_elements, raw).map_err(|failure| source.to_other_file_error(failure))?;
        if plan.is_copy() {
            return Ok(elements);
        }
        let n = elements.len() / plan.input_size();
        let mut converted = self.core.max_allocation.zeroed((n as u64).saturating_mul(size as u64))?;
        plan.convert_elements(&elements, &mut converted, source.file.context().with_conversion(self.conversion))?;
        Ok(converted)
    }

    pub(super) fn to_other_file_error(&self, failure: DatasetError) -> ErrorKind {
        ErrorKind::OtherFile(Box::new(failure.with_path(self.file.name(), Some(&self.path))))
    }

    /// Flushes the files in which elements of a virtual dataset were written.
    pub(crate) fn flush_sources(&self, flush: impl Fn(&File) -> Result<()>) -> Result<()> {
        if self.is_virtual() { self.file.shared().flush_written_files(flush) } else { Ok(()) }
    }

    /// The description of a virtual dataset that is to be written; `None` if the dataset is not virtual.
    pub(crate) fn virtual_view(&self) -> Result<Option<SpecSnapshot>, DatasetError> {
        if !self.is_virtual() {
            return Ok(None);
        }
        self.file.writer()?;
        Ok(Some(self.resolved_snapshot()?))
    }

    /// Writes the elements of a selection of a virtual dataset to its sources: `encode` gets the memory for them, in the
    /// type of the virtual dataset.
    ///
    /// # Errors
    /// As [`Dataset::write_slice`].
    pub(crate) fn write_virtual(
        &self,
        view: &SpecSnapshot,
        selection: &impl Select,
        values: usize,
        encode: impl FnOnce(&BoundSelection, &mut [u8]) -> Result<(), DatasetError>,
    ) -> Result<(), DatasetError> {
        let selected = self.select(view, selection)?;
        check_length(&selected, values)?;
        let Layout::Virtual(sources) = &view.spec.layout else { return Ok(()) };
        if view.spec.datatype.has_vlen_or_references() && sources.iter().any(|source| source.file.as_bytes() != b".") {
            return Err(
                ErrorKind::Unsupported("writing variable-length data of a virtual dataset to other files").into()
            );
        }
        let mut bytes = blank_elements(values, view.size)?;
        encode(&selected, &mut bytes)?;
        self.write_sources(view, &selected, &bytes)
    }

    /// Writes `bytes`, the elements of a selection in the type of the virtual dataset, to its sources. Nothing is
    /// written unless each element has a source that is there.
    ///
    /// # Errors
    /// [`ErrorKind::UnmappedVirtualElements`], [`ErrorKind::MissingSource`], or [`ErrorKind::OtherFile`] if a source cannot be written.
    pub(super) fn write_sources(
        &self,
        view: &SpecSnapshot,
        selected: &BoundSelection,
        bytes: &[u8],
    ) -> Result<(), DatasetError> {
        // Sources may overlap.
        let mut is_mapped = vec![false; bytes.len() / view.size];
        self.for_each_written_part(view, selected, |part| {
            selected.for_each_shared(part.elements, |place, _, len| {
                is_mapped[place as usize..(place + len) as usize].fill(true);
            });
            Ok(())
        })?;
        let elements = is_mapped.iter().filter(|is_mapped| !**is_mapped).count() as u64;
        if elements > 0 {
            return Err(ErrorKind::UnmappedVirtualElements { elements }.into());
        }
        self.for_each_written_part(view, selected, |part| self.write_part_of(view, selected, bytes, part))
    }

    fn for_each_written_part(
        &self,
        view: &SpecSnapshot,
        selected: &BoundSelection,
        mut each: impl FnMut(&SourcePart<'_>) -> Result<(), DatasetError>,
    ) -> Result<(), DatasetError> {
        let Layout::Virtual(sources) = &view.spec.layout else { return Ok(()) };
        let Some((lo, hi)) = selected.bounds() else { return Ok(()) };
        let _layer = VirtualDepthGuard::enter()?;
        let bounds = (lo.as_slice(), hi.as_slice());
        let places = self.places_of_sources(view, bounds);
        for_each_piece((sources, &places), bounds, |piece| {
            let Some(target) = target_between(piece, view, bounds) else { return Ok(()) };
            if !has_shared_elements(selected, &target, bounds) {
                return Ok(());
            }
            let Some(source) = self.open_written_source(&piece.file, &piece.dataset)? else {
                let (file, dataset) = (piece.file.to_string(), piece.dataset.to_string());
                return Err(ErrorKind::MissingSource { file, dataset }.into());
            };
            let source_view = source.resolved_snapshot().map_err(|failure| source.to_other_file_error(failure))?;
            for_each_part((piece, &target), (&source, &source_view), bounds, view.size, &mut each)
        })
    }

    /// Writes those of the selected elements that are in a part of a source.
    fn write_part_of(
        &self,
        view: &SpecSnapshot,
        selected: &BoundSelection,
        bytes: &[u8],
        part: &SourcePart<'_>,
    ) -> Result<(), DatasetError> {
        let SourcePart { source, source_view, source_elements, elements } = part;
        let (mut runs, mut written) = (Vec::new(), Vec::new());
        selected.for_each_shared(elements, |place, at, len| {
            written.extend_from_slice(&bytes[place as usize * view.size..(place + len) as usize * view.size]);
            runs.push((at as usize, len as usize));
        });
        if runs.is_empty() {
            return Ok(());
        }
        let plan = ElementPlan::new(&view.spec.datatype, &source_view.spec.datatype)?;
        if !plan.is_copy() {
            let n = written.len() / view.size;
            let mut converted = self.core.max_allocation.zeroed((n as u64).saturating_mul(source_view.size as u64))?;
            plan.convert_elements(&written, &mut converted, source.file.context().with_conversion(self.conversion))?;
            written = converted;
        }
        if !source.file.is_same_file(&self.file) {
            self.file.shared().add_written_file(source.file.shared());
        }
        let overwrite = ElementRuns { runs: &runs, bytes: &written, size: source_view.size };
        source
            .write_changed_elements(source_view, source_elements, &overwrite)
            .map_err(|failure| source.to_other_file_error(failure).into())
    }

    /// Writes runs of the elements of a selection; the others stay.
    fn write_changed_elements(
        &self,
        view: &SpecSnapshot,
        selected: &BoundSelection,
        overwrite: &ElementRuns<'_>,
    ) -> Result<(), DatasetError> {
        let size = view.size;
        let bytes = self.core.max_allocation.zeroed(selected.element_count().saturating_mul(size as u64));
        let mut bytes = bytes?;
        let is_whole = overwrite.bytes.len() == bytes.len();
        if self.is_virtual() {
            if !is_whole {
                self.read_to(view, selected, RawSink { bytes: &mut bytes, size })?;
            }
            overwrite.copy_to(&mut bytes);
            return self.write_sources(view, selected, &bytes);
        }
        let writer = self.writer()?;
        if !is_whole {
            self.reader(view).read(selected, RawSink { bytes: &mut bytes, size })?;
        }
        overwrite.copy_to(&mut bytes);
        write_selection(&writer, selected, &RawSource { bytes: &bytes, size })
    }
}

impl File {
    fn is_same_file(&self, other: &File) -> bool {
        Arc::ptr_eq(self.shared(), other.shared())
    }
}
