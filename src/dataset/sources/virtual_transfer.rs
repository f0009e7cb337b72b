//! Elements of virtual datasets, read from their sources and written to them (format specification 4.0, III.J "Virtual
//! Dataset").

use std::sync::Arc;

use h5live_model::{BoundSelection, Layout, Selection, UNLIMITED, VirtualSource};

use super::virtual_sources::{VirtualDepthGuard, expand_block_name, is_numbered, nth_block, unlimited_dimension};
use crate::convert::{ElementPlan, blank_elements};
use crate::dataset::Dataset;
use crate::dataset::error::DatasetError;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::transfer::{ElementSink, RawSink, RawSource};
use crate::dims::CoreDims;
use crate::error::ErrorKind;
use crate::{File, Result, Select};

/// Elements of a source that are read or written at a time (bytes).
const MAX_SOURCE_BATCH_BYTES: u64 = 16 << 20;

/// Why a source cannot be read whose elements cannot be told from each other.
const UNEQUAL_MAPPING: &str = "the virtual dataset maps another number of elements than the source has in this place";

/// Elements of the target of a piece that are compared one by one with those that are selected.
const MAX_COMPARED_ELEMENTS: u64 = 16 << 20;

/// Elements of a virtual dataset that are elements of a source, in the same order.
struct SourcePart<'a> {
    source: &'a Dataset,
    source_view: &'a SpecSnapshot,
    /// Which elements of the source they are.
    source_elements: &'a BoundSelection,
    /// Which elements of the virtual dataset they are.
    elements: &'a BoundSelection,
}

/// Calls `each` with those of `sources` that are at `places`; of one with numbers in its name, with each of its blocks that
/// may have elements between `lo` and `hi`.
fn for_each_piece(
    (sources, places): (&[VirtualSource], &[usize]),
    (lo, hi): (&[u64], &[u64]),
    mut each: impl FnMut(&VirtualSource) -> Result<(), DatasetError>,
) -> Result<(), DatasetError> {
    for source in places.iter().map(|at| &sources[*at]) {
        let numbers = is_numbered(&source.file) || is_numbered(&source.dataset);
        let numbered = |n: u64, target: Selection| VirtualSource {
            file: expand_block_name(&source.file, n),
            dataset: expand_block_name(&source.dataset, n),
            source: source.source.clone(),
            target,
        };
        match (&source.target, unlimited_dimension(&source.target)) {
            (Selection::Hyperslab(slab), Some(dim)) if numbers && dim < lo.len() => {
                let stride = slab.stride[dim].max(1);
                let block = |index: u64| index.saturating_sub(slab.start[dim]) / stride;
                for n in block(lo[dim])..=block(hi[dim].saturating_sub(1)) {
                    let Some(target) = nth_block(slab, dim, n) else { break };
                    each(&numbered(n, Selection::Hyperslab(target)))?;
                }
            }
            _ => each(&numbered(0, source.target.clone()))?,
        }
    }
    Ok(())
}

/// The elements of a piece within the extent, if some of them may lie between `lo` and `hi`.
fn target_between(piece: &VirtualSource, view: &SpecSnapshot, (lo, hi): (&[u64], &[u64])) -> Option<BoundSelection> {
    // Elements outside of the extent do not exist.
    let target = clip_to_extent(&piece.target, &view.extent).bind(&view.extent).ok()?;
    let (from, to) = target.bounds()?;
    let is_apart = from.iter().zip(hi).any(|(from, hi)| from >= hi) || to.iter().zip(lo).any(|(to, lo)| to <= lo);
    (!is_apart).then_some(target)
}

/// Whether some selected elements are in the target of a piece, as far as that can be found out in reasonable time. `lo` and
/// `hi` are the bounds of what is selected.
fn has_shared_elements(selected: &BoundSelection, target: &BoundSelection, (lo, hi): (&[u64], &[u64])) -> bool {
    let within = target.restrict(target, lo, hi).map(|(within, _)| within);
    let target = within.as_ref().unwrap_or(target);
    let is_block = lo.iter().zip(hi).try_fold(1u64, |n, (lo, hi)| n.checked_mul(hi - lo)) == Some(selected.elements());
    if target.elements() == 0 || is_block && within.is_some() || target.elements() > MAX_COMPARED_ELEMENTS {
        return target.elements() > 0;
    }
    let mut is_shared = false;
    selected.for_each_shared(target, |_, _, _| is_shared = true);
    is_shared
}

/// Calls `each` with the parts of a source that lie between `lo` and `hi`, each of bounded size.
fn for_each_part(
    (piece, target): (&VirtualSource, &BoundSelection),
    (source, source_view): (&Dataset, &SpecSnapshot),
    (lo, hi): (&[u64], &[u64]),
    element_bytes: usize,
    mut each: impl FnMut(&SourcePart<'_>) -> Result<(), DatasetError>,
) -> Result<(), DatasetError> {
    let extent = &source_view.extent;
    let stands_for = clip_to_extent(&piece.source, extent).bind(extent);
    let stands_for = stands_for.map_err(|error| source.to_other_file_error(error.into()))?;
    let mut boxes: Vec<(CoreDims, CoreDims)> = vec![(lo.into(), hi.into())];
    while let Some((lo, hi)) = boxes.pop() {
        let restricted = target.restrict(&stands_for, &lo, &hi);
        let is_whole = restricted.is_none();
        let (elements, source_elements) = match restricted {
            Some(pair) => pair,
            None if target.elements() == stands_for.elements() => (target.clone(), stands_for.clone()),
            None => return Err(source.to_other_file_error(ErrorKind::InvalidSpec(UNEQUAL_MAPPING).into()).into()),
        };
        let bytes = elements.elements().saturating_mul(source_view.size.max(element_bytes) as u64);
        let split = (0..lo.len()).find(|dim| hi[*dim] - lo[*dim] > 1 && elements.dims().get(*dim) > Some(&1));
        if let (Some(dim), true) = (split, bytes > MAX_SOURCE_BATCH_BYTES) {
            let middle = lo[dim] + (hi[dim] - lo[dim]) / 2;
            let (mut below, mut above) = (hi.clone(), lo.clone());
            (below[dim], above[dim]) = (middle, middle);
            boxes.extend([(above, hi), (lo, below)]);
            continue;
        }
        if elements.elements() > 0 {
            each(&SourcePart { source, source_view, source_elements: &source_elements, elements: &elements })?;
        }
        if is_whole {
            break;
        }
    }
    Ok(())
}

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
        let elements = usize::try_from(selected.elements()).map_err(|_| ErrorKind::TooLarge(selected.elements()))?;
        sink.fill_with(0..elements, &view.spec.fill_element(), self.file.heap())?;
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
            if S::KEEPS_HEAP_IDS && view.spec.datatype.is_indirect() && !source.file.is_same_file(&self.file) {
                return Err(ErrorKind::Unsupported("raw variable-length data of a virtual dataset's other file").into());
            }
            for_each_part((piece, &target), (&source, &source_view), bounds, view.size, |part| {
                let _reading = source.core.blobs.begin_read(&source_view.spec.datatype);
                let elements = self.read_converted(part, (&plan, view.size))?;
                let heap = source.file.heap();
                let mut result = Ok(());
                selected.for_each_shared(part.elements, |place, at, len| {
                    if result.is_ok() {
                        let bytes = at as usize * view.size..(at + len) as usize * view.size;
                        result = sink.put_elements(place as usize..(place + len) as usize, &elements[bytes], heap);
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
        let bytes = source_elements.elements().saturating_mul(source_view.size as u64);
        let mut elements = self.core.max_allocation.zeroed(bytes)?;
        let raw = RawSink { bytes: &mut elements, size: source_view.size };
        source.read_to(source_view, source_elements, raw).map_err(|failure| source.to_other_file_error(failure))?;
        if plan.is_copy() {
            return Ok(elements);
        }
        let n = elements.len() / plan.input_size();
        let mut converted = self.core.max_allocation.zeroed((n as u64).saturating_mul(size as u64))?;
        plan.convert_elements(&elements, &mut converted, source.file.heap().with_conversion(self.conversion))?;
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
        crate::dataset::transfer::check_length(&selected, values)?;
        let Layout::Virtual(sources) = &view.spec.layout else { return Ok(()) };
        if view.spec.datatype.is_indirect() && sources.iter().any(|source| source.file.as_bytes() != b".") {
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
    /// [`ErrorKind::NotMapped`], [`ErrorKind::NoSource`], or [`ErrorKind::OtherFile`] if a source cannot be written.
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
            return Err(ErrorKind::NotMapped { elements }.into());
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
                return Err(ErrorKind::NoSource { file, dataset }.into());
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
            plan.convert_elements(&written, &mut converted, source.file.heap().with_conversion(self.conversion))?;
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
        let bytes = self.core.max_allocation.zeroed(selected.elements().saturating_mul(size as u64));
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
        writer.write_selection(selected, &RawSource { bytes: &bytes, size })
    }
}

/// New elements of some places among others.
struct ElementRuns<'a> {
    /// The first place and the number of elements of each run.
    runs: &'a [(usize, usize)],
    /// The elements of all runs, one after another.
    bytes: &'a [u8],
    /// Bytes of an element.
    size: usize,
}

impl ElementRuns<'_> {
    fn copy_to(&self, elements: &mut [u8]) {
        let mut rest = self.bytes;
        for (first, len) in self.runs {
            let (run, after) = rest.split_at(len * self.size);
            elements[first * self.size..(first + len) * self.size].copy_from_slice(run);
            rest = after;
        }
    }
}

/// A hyperslab cut to an extent, as far as its counts and blocks allow.
fn clip_to_extent(selection: &Selection, extent: &[u64]) -> Selection {
    let Selection::Hyperslab(slab) = selection else { return selection.clone() };
    let mut slab = slab.clone();
    if slab.start.len() != extent.len() {
        return selection.clone();
    }
    for (dim, extent) in extent.iter().enumerate() {
        let (start, stride, block) = (slab.start[dim], slab.stride[dim].max(1), slab.block[dim]);
        let Some(room) = extent.checked_sub(start).filter(|room| *room > 0) else {
            slab.count[dim] = 0;
            continue;
        };
        if block == UNLIMITED {
            continue;
        }
        if slab.count[dim] == 1 {
            slab.block[dim] = block.min(room);
        } else if (room - 1) % stride + 1 >= block {
            // No block reaches over the end.
            slab.count[dim] = slab.count[dim].min((room - 1) / stride + 1);
        }
    }
    Selection::Hyperslab(slab)
}

impl File {
    fn is_same_file(&self, other: &File) -> bool {
        Arc::ptr_eq(self.shared(), other.shared())
    }
}
