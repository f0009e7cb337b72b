//! Chunks that stay where they are: `h5live copy --link`.

use h5live::model;
use h5live::{DatasetInCopy, Location, OpenError};
use h5live_hsds::{HsdsStore, LastOpenedStore, NativeChunkFile};

use crate::counted::counted;
use crate::error::{Error, Result};
use crate::open;

/// A domain that is to be made, whose datasets have their chunks in a native file.
#[derive(Debug)]
pub struct ChunkLinkPlan {
    location: Location,
    file_uri: String,
    opened: LastOpenedStore,
}

/// The datasets of a copy, as far as their chunks are linked.
#[derive(Debug)]
pub struct ChunkLinker {
    store: HsdsStore,
    file: NativeChunkFile,
    linked: u64,
    /// Paths of datasets that are copied all the same, and why.
    copied: Vec<(String, &'static str)>,
}

impl ChunkLinkPlan {
    /// A domain at `to`, by sessions of which `opened` keeps the last one, with chunks of the file at `from`.
    ///
    /// # Errors
    /// [`Error::OpenFailed`] if one of them is something else, or they are in two buckets.
    pub fn new(from: &Location, to: &Location, opened: Option<&LastOpenedStore>) -> Result<Self> {
        let file = open::native_file_path(from)?.map_or_else(|| from.clone(), Location::Path);
        let file_uri = open::with_hsds_location(to, |domain| Ok(h5live_hsds::native_file_uri(domain, &file)?))?;
        Ok(ChunkLinkPlan { location: to.clone(), file_uri, opened: opened.cloned().unwrap_or_default() })
    }

    /// The links of the domain, which was made by such a session.
    ///
    /// # Errors
    /// [`Error::OpenFailed`] if the domain cannot read the file.
    pub fn into_chunk_linker(self) -> Result<ChunkLinker> {
        let location = self.location.to_string();
        let failed = |source: OpenError| Error::OpenFailed { location, source: Box::new(source) };
        let store = self.opened.last().ok_or(OpenError::InvalidLocation("this is no domain".to_owned()));
        let found = store.and_then(|store| Ok((store.probe_native_file(&self.file_uri)?, store)));
        let (file, store) = found.map_err(failed)?;
        Ok(ChunkLinker { store, file, linked: 0, copied: Vec::new() })
    }
}

impl ChunkLinker {
    /// Links the chunks of a dataset; `false` if it has to be copied.
    ///
    /// # Errors
    /// Those of the object store.
    pub fn link_chunks(&mut self, dataset: &DatasetInCopy<'_>) -> model::Result<bool> {
        match self.store.link_chunks(dataset.copy, dataset.spec, &self.file, dataset.chunks) {
            Ok(()) => {
                self.linked += 1;
                Ok(true)
            }
            Err(model::Error::Unsupported(cause)) => {
                self.copied.push((dataset.path.to_owned(), cause));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Says which datasets were copied, and why.
    pub fn eprint_summary(&self) {
        self.copied
            .iter()
            .for_each(|(path, cause)| crate::output::eprint_line(format_args!("copied, not linked: {path}: {cause}")));
        eprintln!("linked: {} in {}", counted(self.linked, "dataset"), self.file.uri());
    }
}
