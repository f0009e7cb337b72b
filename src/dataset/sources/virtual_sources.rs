//! Virtual datasets: elements that stand in other datasets (format specification 4.0, III.J "Virtual Dataset").

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use h5live_model::{self as model, Hyperslab, Layout, Name, Selection, UNLIMITED, VirtualSource};

use crate::dataset::Dataset;
use crate::dataset::error::DatasetError;
use crate::error::ErrorKind;
use crate::linked_files::{self, OpenFor};
use crate::missing_sources::{MissingSource, MissingSources};
use crate::{Error, File, MAX_LINKS, Result};

/// Blocks of one source name with a number in it that are looked for.
pub(super) const MAX_BLOCKS: u64 = 1 << 20;

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
    /// Somebody has its file open in such a way that it cannot be read: reading its elements is an error until then, for
    /// which a follower waits.
    InUse,
    /// Its file, or the dataset in it, is not there: its elements are fill values ([`MissingSources`]).
    Missing,
    /// Its file, or the dataset in it, cannot be read for another reason: reading its elements is an error.
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

/// Whether an error says that a path in a file leads to nothing: a name on the way is not there, or a file to which a link
/// on the way leads.
fn leads_to_nothing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Store(model::Error::NotFound(_)) | ErrorKind::NoExternalFile(_))
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
    /// [`ErrorKind::NoSource`].
    pub(super) fn note_missing_source(&self, file: &Name, path: &Name) -> Result<(), ErrorKind> {
        let options = &self.file.shared().options;
        let (source_file, source_path) = (file.to_string(), path.to_string());
        if options.missing_sources == MissingSources::Error {
            return Err(ErrorKind::NoSource { file: source_file, dataset: source_path });
        }
        if let Some(hook) = &options.on_missing_source {
            let (file, path) = (self.file.name().to_owned(), self.path.clone());
            (hook.0)(&MissingSource { file, path, source_file, source_path });
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
            Some(Err(error)) if !leads_to_nothing(&error) => Ok((SourceState::Unreadable, false)),
            Some(Err(_)) => Ok((SourceState::Missing, false)),
            None => Ok((SourceState::Unreadable, false)),
        }
    }
}
