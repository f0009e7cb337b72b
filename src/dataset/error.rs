//! Errors inside a dataset.

use h5live_model::ChunkCoord;

use crate::Error;
use crate::error::ErrorKind;

/// An error inside a dataset, before it is known by which path the dataset was opened.
#[derive(Debug)]
pub(crate) struct DatasetError {
    chunk: Option<ChunkCoord>,
    kind: ErrorKind,
}

impl<E: Into<ErrorKind>> From<E> for DatasetError {
    fn from(error: E) -> Self {
        DatasetError { chunk: None, kind: error.into() }
    }
}

impl DatasetError {
    pub(crate) fn in_chunk(coord: &ChunkCoord, error: impl Into<ErrorKind>) -> Self {
        DatasetError { chunk: Some(coord.clone()), kind: error.into() }
    }

    /// Adds the chunk to the error, if it has none yet.
    pub(crate) fn with_chunk(mut self, coord: &ChunkCoord) -> Self {
        self.chunk.get_or_insert_with(|| coord.clone());
        self
    }

    /// Whether a chunk, or the variable-length data of its elements, was stored at a new place since it was looked up.
    pub(crate) fn is_moved(&self) -> bool {
        let error = match &self.kind {
            ErrorKind::Store(error) => Some(error),
            ErrorKind::Convert(error) => error.heap_error(),
            _ => None,
        };
        matches!(error, Some(h5live_model::Error::Moved))
    }

    /// Whether a file, or one of its sources, is in use in a way that excludes reading.
    pub(crate) fn is_in_use(&self) -> bool {
        self.kind.is_in_use()
    }

    /// Marks the error: the reader waited for the writer, and what the writer published is still incomplete.
    pub(crate) fn into_unfinished(self) -> Self {
        DatasetError { kind: ErrorKind::UnreadablePublishedChunk(Box::new(self.kind)), ..self }
    }

    pub(crate) fn with_path(self, file: &str, path: Option<&str>) -> Error {
        let error = Error::new(file, path, self.kind);
        match self.chunk {
            Some(chunk) => error.in_chunk(&chunk),
            None => error,
        }
    }
}
