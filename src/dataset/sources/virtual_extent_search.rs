//! How far a virtual dataset reaches: as far as its sources do.

use h5live_model::{Hyperslab, Layout, Name, Selection, VirtualSource};

use super::virtual_extent::{SourcesState, VirtualExtent};
use super::virtual_sources::{
    MAX_BLOCKS, VirtualDepthGuard, expand_block_name, is_numbered, nth_block, unlimited_dimension,
};
use crate::dataset::Dataset;
use crate::dataset::error::DatasetError;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dims::CoreDims;

/// What the sources of a virtual dataset say of its extent.
#[derive(Debug, Default)]
struct ExtentSearch {
    missing: Vec<(Name, Name)>,
    awaits_writers: bool,
}

/// One past the last index of the first `elements` indices that a pattern selects along a dimension.
fn end_of_elements(slab: &Hyperslab, dim: usize, elements: u64) -> Option<u64> {
    let (start, stride, block) = (*slab.start.get(dim)?, *slab.stride.get(dim)?, *slab.block.get(dim)?);
    let last = elements.checked_sub(1)?;
    if block == h5live_model::UNLIMITED {
        return start.checked_add(elements);
    }
    let blocks = last.checked_div(block)?.checked_mul(stride)?;
    start.checked_add(blocks)?.checked_add(last % block)?.checked_add(1)
}

impl Dataset {
    /// The dataset as an operation sees it that needs its elements or its extent.
    ///
    /// # Errors
    /// If the extent follows from sources that cannot be read, or are not there and must be.
    pub(crate) fn resolved_snapshot(&self) -> Result<SpecSnapshot, DatasetError> {
        // What is known may be forgotten at any time.
        let extent = match &self.core.sources {
            Some(sources) => self.resolve_virtual_extent(sources)?,
            None => None,
        };
        let snapshot = self.core.spec_snapshot()?;
        Ok(match extent {
            Some(extent) => SpecSnapshot { extent, ..snapshot },
            None => snapshot,
        })
    }

    /// Finds out how far a virtual dataset reaches, unless it is known; `None` if that is its stored extent.
    fn resolve_virtual_extent(&self, sources: &SourcesState) -> Result<Option<CoreDims>, DatasetError> {
        let known = sources.extent.lock().clone();
        let found = match known {
            VirtualExtent::Stored => return Ok(None),
            VirtualExtent::FromSources { awaits_writers, .. } if !awaits_writers || self.awaits_sources => known,
            _ => {
                let found = self.find_virtual_extent()?;
                *sources.extent.lock() = found.clone();
                found
            }
        };
        let VirtualExtent::FromSources { extent, missing, .. } = found else { return Ok(None) };
        missing.iter().try_for_each(|(file, path)| self.note_missing_source(file, path))?;
        Ok(Some(extent))
    }

    /// Forgets the extent that followed from the sources.
    pub(crate) fn forget_virtual_extent(&self) {
        if let Some(sources) = &self.core.sources {
            *sources.extent.lock() = VirtualExtent::Unknown;
        }
    }

    fn find_virtual_extent(&self) -> Result<VirtualExtent, DatasetError> {
        let spec = self.core.chunks.spec()?;
        let Layout::Virtual(sources) = &spec.layout else { return Ok(VirtualExtent::Stored) };
        if !sources.iter().any(|source| unlimited_dimension(&source.target).is_some()) {
            return Ok(VirtualExtent::Stored);
        }
        let _layer = VirtualDepthGuard::enter()?;
        let mut search = ExtentSearch::default();
        let mut extent: CoreDims = spec.dataspace.dims().into();
        let open = |dim: usize| sources.iter().any(|source| unlimited_dimension(&source.target) == Some(dim));
        for dim in (0..extent.len()).filter(|dim| open(*dim)) {
            extent[dim] = 0;
        }
        for source in sources {
            let Selection::Hyperslab(slab) = &source.target else { continue };
            match unlimited_dimension(&source.target) {
                Some(dim) if dim < extent.len() => {
                    let end = self.extent_given_by_source(source, slab, dim, &mut search)?;
                    extent[dim] = extent[dim].max(end.unwrap_or(0));
                }
                Some(_) => {}
                None => {
                    for dim in (0..extent.len()).filter(|dim| open(*dim)) {
                        let blocks = slab.count.get(dim).zip(slab.block.get(dim));
                        let elements = blocks.and_then(|(count, block)| count.checked_mul(*block));
                        let end = elements.and_then(|elements| end_of_elements(slab, dim, elements));
                        extent[dim] = extent[dim].max(end.unwrap_or(0));
                    }
                }
            }
        }
        for (n, max) in extent.iter_mut().zip(spec.dataspace.max()) {
            *n = (*n).min(*max);
        }
        let ExtentSearch { missing, awaits_writers } = search;
        Ok(VirtualExtent::FromSources { extent, missing: missing.into(), awaits_writers })
    }

    /// How far the elements of a source reach along the dimension without limit.
    fn extent_given_by_source(
        &self,
        source: &VirtualSource,
        slab: &Hyperslab,
        dim: usize,
        search: &mut ExtentSearch,
    ) -> Result<Option<u64>, DatasetError> {
        if is_numbered(&source.file) || is_numbered(&source.dataset) {
            let mut blocks = 0;
            while blocks < MAX_BLOCKS && self.block_for_extent(source, blocks, search)?.is_some() {
                blocks += 1;
            }
            let last = blocks.checked_sub(1).and_then(|last| nth_block(slab, dim, last));
            return Ok(last.and_then(|last| end_of_elements(&last, dim, *last.block.get(dim)?)));
        }
        let awaited_before = std::mem::take(&mut search.awaits_writers);
        let found = self.block_for_extent(source, 0, search)?;
        if found.is_none() && !search.awaits_writers {
            search.missing.push((expand_block_name(&source.file, 0), expand_block_name(&source.dataset, 0)));
        }
        search.awaits_writers |= awaited_before;
        let (Some(found), Some(along)) = (found, unlimited_dimension(&source.source)) else { return Ok(None) };
        let view = found.resolved_snapshot().map_err(|failure| found.to_other_file_error(failure))?;
        let there = source.source.bind(&view.extent)?;
        Ok(there.dims().get(along).and_then(|elements| end_of_elements(slab, dim, *elements)))
    }

    /// A block of a source that says how far the dataset reaches; `None` if it is not there, or a follower waits for it.
    fn block_for_extent(
        &self,
        source: &VirtualSource,
        block: u64,
        search: &mut ExtentSearch,
    ) -> Result<Option<Dataset>, DatasetError> {
        match self.open_source(&expand_block_name(&source.file, block), &expand_block_name(&source.dataset, block)) {
            Err(failure) if self.awaits_sources && failure.is_in_use() => {
                search.awaits_writers = true;
                Ok(None)
            }
            opened => opened,
        }
    }
}
