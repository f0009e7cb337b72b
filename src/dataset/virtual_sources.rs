//! Virtual datasets: elements that stand in other datasets (format specification 4.0, III.J "Virtual Dataset").

use std::cell::Cell;
use std::fmt;

use h5live_model::{Hyperslab, Layout, Name, Selection, UNLIMITED, VirtualSource};

use super::Dataset;
use super::error::DatasetError;
use crate::dims::CoreDims;
use crate::error::ErrorKind;
use crate::linked_files::{self, OpenFor};
use crate::{File, MAX_LINKS, Result};

/// Blocks of one source name with a number in it that are looked for.
const MAX_BLOCKS: u64 = 1 << 20;

thread_local! {
    /// Virtual datasets that this thread is reading, one inside the other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts a layer of virtual datasets as long as it lives.
pub(super) struct VirtualDepthGuard;

impl VirtualDepthGuard {
    pub(super) fn enter() -> Result<VirtualDepthGuard, ErrorKind> {
        let depth = DEPTH.get();
        if depth == MAX_LINKS {
            return Err(ErrorKind::TooManyLayers);
        }
        DEPTH.set(depth + 1);
        Ok(VirtualDepthGuard)
    }
}

impl Drop for VirtualDepthGuard {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// A name in which `%b` stands for the number of a block, and `%%` for a percent sign.
pub(super) fn expand_block_name(name: &Name, block: u64) -> Name {
    let mut out = Vec::new();
    let mut bytes = name.as_bytes().iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'%', Some(b'b')) => {
                bytes.next();
                out.extend(block.to_string().into_bytes());
            }
            (b'%', Some(b'%')) => {
                bytes.next();
                out.push(b'%');
            }
            _ => out.push(byte),
        }
    }
    out.into()
}

/// Whether a name has a number of a block in it.
pub(super) fn is_numbered(name: &Name) -> bool {
    expand_block_name(name, 0) != expand_block_name(name, 1)
}

/// The files and datasets that a source stands for: as many as there are numbers, if its names have one in them.
fn numbered_sources(source: &VirtualSource) -> impl Iterator<Item = (Name, Name)> {
    let blocks = if is_numbered(&source.file) || is_numbered(&source.dataset) { MAX_BLOCKS } else { 1 };
    (0..blocks).map(|block| (expand_block_name(&source.file, block), expand_block_name(&source.dataset, block)))
}

/// The state of a source of a virtual dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceState {
    /// It is there, and nobody writes its file.
    Closed,
    /// Its file is being written, and can be followed.
    Live,
    /// Somebody has its file open in such a way that it cannot be read: its elements are fill values until then.
    InUse,
    /// Its file, or the dataset in it, is not there: its elements are fill values.
    Missing,
    /// Its file, or the dataset in it, cannot be read for another reason.
    Unreadable,
}

impl fmt::Display for SourceState {
    /// In the words of `h5live ls`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SourceState::Closed => "closed",
            SourceState::Live => "being written",
            SourceState::InUse => "in use",
            SourceState::Missing => "missing",
            SourceState::Unreadable => "unreadable",
        })
    }
}

/// The dimension along which a selection has no limit.
pub(super) fn unlimited_dimension(selection: &Selection) -> Option<usize> {
    let Selection::Hyperslab(slab) = selection else { return None };
    slab.count.iter().zip(&slab.block).position(|(count, block)| *count == UNLIMITED || *block == UNLIMITED)
}

/// One block of a pattern that repeats along a dimension.
pub(super) fn nth_block(slab: &Hyperslab, dim: usize, block: u64) -> Option<Hyperslab> {
    let mut one = slab.clone();
    one.start[dim] = slab.stride.get(dim)?.checked_mul(block)?.checked_add(*slab.start.get(dim)?)?;
    one.count[dim] = 1;
    Some(one)
}

/// One past the last index of the first `elements` indices that a pattern selects along a dimension.
fn end_of_elements(slab: &Hyperslab, dim: usize, elements: u64) -> Option<u64> {
    let (start, stride, block) = (*slab.start.get(dim)?, *slab.stride.get(dim)?, *slab.block.get(dim)?);
    let last = elements.checked_sub(1)?;
    if block == UNLIMITED {
        return start.checked_add(elements);
    }
    let blocks = last.checked_div(block)?.checked_mul(stride)?;
    start.checked_add(blocks)?.checked_add(last % block)?.checked_add(1)
}

/// The dataset of a source in its file; `None` if one of them is not there.
fn source_in(file: Option<File>, path: &Name) -> Result<Option<Dataset>, DatasetError> {
    let (Some(file), Some(path)) = (file, path.as_str()) else { return Ok(None) };
    match file.dataset(path) {
        Ok(dataset) => Ok(Some(dataset)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(ErrorKind::OtherFile(Box::new(error)).into()),
    }
}

impl Dataset {
    /// The file of a source; `None` if there is none.
    fn open_source_file(&self, file: &Name, open_for: OpenFor) -> Result<Option<File>, ErrorKind> {
        match file.as_bytes() {
            b"." => Ok(Some(self.file.clone())),
            _ => linked_files::open_linked(&self.file, file, open_for),
        }
    }

    /// The source of a piece, to be read; `None` if its file or the dataset is not there, or the file cannot be opened.
    pub(super) fn open_source(&self, file: &Name, path: &Name) -> Result<Option<Dataset>, DatasetError> {
        let other = match self.open_source_file(file, OpenFor::ReadSource) {
            // Fill values would hide that there is something that may not be read.
            Err(error) if linked_files::is_refusal(&error) => return Err(error.into()),
            other => other.unwrap_or(None),
        };
        source_in(other, path)
    }

    /// The source of a piece, to be written; `None` if its file or the dataset is not there.
    ///
    /// # Errors
    /// As [`Options::open`](crate::Options::open), for its file.
    pub(super) fn open_written_source(&self, file: &Name, path: &Name) -> Result<Option<Dataset>, DatasetError> {
        source_in(self.open_source_file(file, OpenFor::WriteSource)?, path)
    }

    /// Reads what was published in the sources of a virtual dataset since the last refresh.
    pub(super) fn refresh_sources(&self) -> Result<(), DatasetError> {
        let spec = self.core.chunks.spec()?;
        let Layout::Virtual(sources) = &spec.layout else { return Ok(()) };
        let _layer = VirtualDepthGuard::enter()?;
        for source in sources {
            for (file, path) in numbered_sources(source) {
                let Some(found) = self.open_source(&file, &path)? else { break };
                found.refresh().map_err(|error| ErrorKind::OtherFile(Box::new(error)))?;
            }
        }
        Ok(())
    }

    /// Whether another process may be writing the dataset: its file, or a file in which a virtual dataset has a source.
    /// A file that is not there yet does not count.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if that cannot be found out.
    pub fn is_live(&self) -> Result<bool> {
        if self.file.is_live()? {
            return Ok(true);
        }
        let mut live = false;
        self.for_each_source_state(|state| {
            live |= matches!(state, SourceState::Live | SourceState::InUse);
            !live
        })?;
        Ok(live)
    }

    /// The states of the sources of a virtual dataset, one for each source; of one with numbers in its name, for each
    /// that is there. None, if the dataset is not virtual.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the dataset cannot be read any more, or it cannot be found out whether a source is live.
    pub fn source_states(&self) -> Result<Vec<SourceState>> {
        let mut states = Vec::new();
        self.for_each_source_state(|state| {
            states.push(state);
            true
        })?;
        Ok(states)
    }

    /// Calls `each` with the state of each source, until it returns `false`.
    fn for_each_source_state(&self, mut each: impl FnMut(SourceState) -> bool) -> Result<()> {
        let spec = self.with_error_path(|| Ok(self.core.chunks.spec()?))?;
        let Layout::Virtual(sources) = &spec.layout else { return Ok(()) };
        let _layer = self.with_error_path(|| Ok(VirtualDepthGuard::enter()?))?;
        for source in sources {
            for (n, (file, path)) in numbered_sources(source).enumerate() {
                let (state, is_there) = self.source_state(&file, &path)?;
                let counts = n == 0 || is_there || state == SourceState::InUse;
                if counts && !each(state) {
                    return Ok(());
                }
                if !is_there {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The state of a source, and whether the dataset is there.
    fn source_state(&self, file: &Name, path: &Name) -> Result<(SourceState, bool)> {
        let other = match self.open_source_file(file, OpenFor::ReadSource) {
            Ok(Some(other)) => other,
            Ok(None) => return Ok((SourceState::Missing, false)),
            Err(ErrorKind::OtherFile(error)) if error.is_in_use() => return Ok((SourceState::InUse, false)),
            Err(_) => return Ok((SourceState::Unreadable, false)),
        };
        match path.as_str().map(|path| other.dataset(path)) {
            Some(Ok(dataset)) if dataset.is_live()? => Ok((SourceState::Live, true)),
            Some(Ok(_)) => Ok((SourceState::Closed, true)),
            // It may come yet.
            _ if other.is_live()? => Ok((SourceState::Live, false)),
            Some(Err(error)) if !error.is_not_found() => Ok((SourceState::Unreadable, false)),
            _ => Ok((SourceState::Missing, false)),
        }
    }

    /// Finds out how far a virtual dataset without limit reaches: as far as its sources do.
    pub(super) fn update_virtual_extent(&self) -> Result<(), DatasetError> {
        let spec = self.core.chunks.spec()?;
        let Layout::Virtual(sources) = &spec.layout else { return Ok(()) };
        if !sources.iter().any(|source| unlimited_dimension(&source.target).is_some()) {
            return Ok(());
        }
        let _layer = VirtualDepthGuard::enter()?;
        let mut extent: CoreDims = spec.dataspace.dims().into();
        let open = |dim: usize| sources.iter().any(|source| unlimited_dimension(&source.target) == Some(dim));
        for dim in (0..extent.len()).filter(|dim| open(*dim)) {
            extent[dim] = 0;
        }
        for source in sources {
            let Selection::Hyperslab(slab) = &source.target else { continue };
            match unlimited_dimension(&source.target) {
                Some(dim) if dim < extent.len() => {
                    extent[dim] = extent[dim].max(self.extent_given_by_source(source, slab, dim)?.unwrap_or(0));
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
        *self.core.virtual_extent.lock() = Some(extent);
        Ok(())
    }

    /// How far the elements of a source reach along the dimension without limit.
    fn extent_given_by_source(
        &self,
        source: &VirtualSource,
        slab: &Hyperslab,
        dim: usize,
    ) -> Result<Option<u64>, DatasetError> {
        if is_numbered(&source.file) || is_numbered(&source.dataset) {
            let mut blocks = 0;
            while blocks < MAX_BLOCKS
                && self
                    .open_source(&expand_block_name(&source.file, blocks), &expand_block_name(&source.dataset, blocks))?
                    .is_some()
            {
                blocks += 1;
            }
            let last = blocks.checked_sub(1).and_then(|last| nth_block(slab, dim, last));
            return Ok(last.and_then(|last| end_of_elements(&last, dim, *last.block.get(dim)?)));
        }
        let found = self.open_source(&expand_block_name(&source.file, 0), &expand_block_name(&source.dataset, 0))?;
        let (Some(found), Some(along)) = (found, unlimited_dimension(&source.source)) else { return Ok(None) };
        let there = source.source.bind(&found.core.spec_snapshot()?.extent)?;
        Ok(there.dims().get(along).and_then(|elements| end_of_elements(slab, dim, *elements)))
    }
}
