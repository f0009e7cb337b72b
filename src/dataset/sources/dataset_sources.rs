//! What a dataset offers that has sources: how far it reaches, which they are, and in which state.

use std::sync::Arc;

use h5live_model::{self as model, Hyperslab, Layout, Name, Selection, VirtualSource};

use super::block_names::{
    MAX_BLOCKS, expand_block_name, is_numbered, nth_block, numbered_sources, unlimited_dimension,
};
use super::depth_guard::VirtualDepthGuard;
use super::source_state::SourceState;
use super::virtual_extent::{SourcesState, VirtualExtent};
use crate::dataset::Dataset;
use crate::dataset::error::DatasetError;
use crate::dims::CoreDims;
use crate::error::ErrorKind;
use crate::linked_files::{self, OpenFor};
use crate::missing_sources::{MissingSource, MissingSourcePolicy};
use crate::{Error, File, Result};

impl Dataset {
    /// The file of a source; `None` if there is none.
    fn open_source_file(&self, file: &Name, open_for: OpenFor) -> Result<Option<File>, ErrorKind> {
        if file.as_bytes() == b"." {
            return Ok(Some(self.file.clone()));
        }
        let folder = self.core.sources.as_ref().and_then(|sources| sources.folder.lock().clone());
        if let Some(folder) = folder
            && let Some(found) = linked_files::open_linked(&self.file, &name_below(&folder, file), open_for)?
        {
            return Ok(Some(found));
        }
        linked_files::open_linked(&self.file, file, open_for)
    }

    /// Whether the elements are those of other datasets.
    pub fn is_virtual(&self) -> bool {
        self.core.sources.is_some()
    }

    /// Looks for the files of the sources of a virtual dataset in a folder first, from the next read on. This holds for all
    /// handles on the dataset as long as the file is open; an empty name takes it back.
    pub fn set_source_folder(&self, folder: &str) {
        if let Some(sources) = &self.core.sources {
            *sources.folder.lock() = Some(folder).filter(|folder| !folder.is_empty()).map(Arc::from);
        }
    }

    /// The source of a piece, to be read; `None` if its file or the dataset is not there.
    ///
    /// # Errors
    /// As [`Options::open`](crate::Options::open), for its file. Fill values would hide that there is something that
    /// cannot be read.
    pub(super) fn open_source(&self, file: &Name, path: &Name) -> Result<Option<Dataset>, DatasetError> {
        source_in(self.open_source_file(file, OpenFor::ReadSource)?, path)
    }

    /// Tells that elements are fill values because a source is not there, if it need not be there.
    ///
    /// # Errors
    /// [`ErrorKind::MissingSource`].
    pub(super) fn note_missing_source(&self, file: &Name, path: &Name) -> Result<(), ErrorKind> {
        let options = &self.file.shared().options;
        let (source_file, source_path) = (file.to_string(), path.to_string());
        if options.missing_sources == MissingSourcePolicy::Error {
            return Err(ErrorKind::MissingSource { file: source_file, dataset: source_path });
        }
        if let Some(hook) = &options.on_missing_source {
            let (file, path) = (self.file.name().to_owned(), self.path.clone());
            (hook.0)(&MissingSource {
                virtual_dataset_file: file,
                virtual_dataset_path: path,
                source_file,
                source_path,
            });
        }
        Ok(())
    }

    /// The source of a piece, to be written; `None` if its file or the dataset is not there.
    ///
    /// # Errors
    /// As [`Options::open`](crate::Options::open), for its file.
    pub(super) fn open_written_source(&self, file: &Name, path: &Name) -> Result<Option<Dataset>, DatasetError> {
        source_in(self.open_source_file(file, OpenFor::WriteSource)?, path)
    }

    /// Reads what was published in the sources of a virtual dataset since the last refresh.
    pub(crate) fn refresh_sources(&self) -> Result<(), DatasetError> {
        let spec = self.core.chunks.spec()?;
        let Layout::Virtual(sources) = &spec.layout else { return Ok(()) };
        let _layer = VirtualDepthGuard::enter()?;
        for source in sources {
            for (file, path) in numbered_sources(source) {
                let found = match self.open_source(&file, &path) {
                    Ok(Some(found)) => found,
                    Ok(None) => break,
                    // Nobody has read of it what could be new. Reading it now is an error.
                    Err(failure) if failure.is_in_use() => break,
                    Err(failure) => return Err(failure),
                };
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
            live |= matches!(state, SourceState::Live | SourceState::InExclusiveUse);
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
                let counts = n == 0 || is_there || state == SourceState::InExclusiveUse;
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
            Err(ErrorKind::OtherFile(error)) if error.is_in_use() => return Ok((SourceState::InExclusiveUse, false)),
            Err(_) => return Ok((SourceState::Unreadable, false)),
        };
        match path.as_str().map(|path| other.dataset(path)) {
            Some(Ok(dataset)) if dataset.is_live()? => Ok((SourceState::Live, true)),
            Some(Ok(_)) => Ok((SourceState::AtRest, true)),
            // It may come yet.
            _ if other.is_live()? => Ok((SourceState::Live, false)),
            Some(Err(error)) if !leads_to_nothing(&error) => Ok((SourceState::Unreadable, false)),
            Some(Err(_)) => Ok((SourceState::Missing, false)),
            None => Ok((SourceState::Unreadable, false)),
        }
    }

    /// Finds out how far a virtual dataset reaches, unless it is known; `None` if that is its stored extent.
    pub(crate) fn resolve_virtual_extent(&self, sources: &SourcesState) -> Result<Option<CoreDims>, DatasetError> {
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
        for (n, max) in extent.iter_mut().zip(spec.dataspace.max_dims()) {
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

/// Whether an error says that a path in a file leads to nothing: a name on the way is not there, or a file to which a link
/// on the way leads.
fn leads_to_nothing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Store(model::Error::NotFound(_)) | ErrorKind::MissingLinkedFile(_))
}

/// The dataset of a source in its file; `None` if one of them is not there.
fn source_in(file: Option<File>, path: &Name) -> Result<Option<Dataset>, DatasetError> {
    let Some(file) = file else { return Ok(None) };
    let Some(path) = path.as_str() else {
        return Err(ErrorKind::Unsupported("a source of a virtual dataset whose path is not UTF-8").into());
    };
    match file.dataset(path) {
        Ok(dataset) => Ok(Some(dataset)),
        Err(error) if leads_to_nothing(&error) => Ok(None),
        Err(error) => Err(ErrorKind::OtherFile(Box::new(error)).into()),
    }
}

/// The name of a source below a folder.
fn name_below(folder: &str, file: &Name) -> Name {
    let file = file.as_bytes().strip_prefix(b"/").unwrap_or(file.as_bytes());
    [folder.trim_end_matches('/').as_bytes(), file].join(&b'/').into()
}
