//! Errors, and where they happened.

use std::fmt;
use std::ops::Range;

use h5live_filters as filters;
use h5live_model::{
    self as model, ChunkCoord, ForeignFileChange, Name, OpenError, SelectionError, StoreErrorKind, SwmrInvariant,
    UNLIMITED,
};

use crate::convert::ConvertError;
#[cfg(feature = "serde")]
use crate::serde_value::DeserializeError;

/// A result of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: the file, the object and the chunk that it is about, and the cause.
///
/// Shown as `run.h5: /detector/frames: chunk [3, 0, 0]: filter 1 (deflate): the data ends too early`. What the system said,
/// and other causes, are in [`source`](std::error::Error::source); `{error:#}` shows all of them in one line.
///
/// ```
/// let error = h5live::File::open("nowhere/run.h5").unwrap_err();
/// assert_eq!(error.to_string(), "nowhere/run.h5: cannot open the file");
/// assert!(format!("{error:#}").starts_with("nowhere/run.h5: cannot open the file: No such file"), "{error:#}");
/// ```
pub struct Error(Box<ErrorContext>);

struct ErrorContext {
    file: String,
    object: Option<String>,
    chunk: Option<ChunkCoord>,
    kind: ErrorKind,
    unpublished: Vec<UnpublishedRows>,
}

/// Rows of a dataset that other processes cannot see, because the store failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpublishedRows {
    /// The path under which the dataset was written.
    pub dataset: String,
    /// The numbers of the rows. The dataset holds rows before them for good.
    pub rows: Range<u64>,
}

/// Most datasets whose unpublished rows are shown in the text of an error.
const MAX_SHOWN_DATASETS: usize = 3;

/// The cause of an [`Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] model::Error),
    /// The file could not be opened or created.
    #[error(transparent)]
    Open(Box<OpenError>),
    /// A selection does not fit the dataset.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A value cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// An element cannot be a value of a type of `serde`.
    #[cfg(feature = "serde")]
    #[error("element {element}: {error}")]
    Deserialize {
        /// The number of the element in the selection (from 0).
        element: u64,
        /// Why.
        error: DeserializeError,
    },
    /// A chunk could not be taken through its filters.
    #[error(transparent)]
    Filter(#[from] filters::Error),
    /// A soft link leads through more than [`MAX_SYMBOLIC_LINKS_PER_PATH`](crate::MAX_SYMBOLIC_LINKS_PER_PATH) others: a loop.
    #[error("more than {} soft and external links in one path", crate::MAX_SYMBOLIC_LINKS_PER_PATH)]
    TooManySymbolicLinksInPath,
    /// A link of a class that cannot be followed.
    #[error("a link of user-defined class {0} cannot be followed")]
    UserDefinedLink(u8),
    /// The file that an external link leads to is not there.
    #[error("there is no file {0:?}, to which a link leads")]
    MissingLinkedFile(Name),
    /// Another file, to which a link or a virtual dataset leads, failed.
    #[error(transparent)]
    OtherFile(Box<Error>),
    /// A virtual dataset is made of itself, or of more than [`MAX_SYMBOLIC_LINKS_PER_PATH`](crate::MAX_SYMBOLIC_LINKS_PER_PATH) layers.
    #[error("a virtual dataset of more than {} layers of virtual datasets", crate::MAX_SYMBOLIC_LINKS_PER_PATH)]
    TooManyVirtualLayers,
    /// Elements of a virtual dataset that are elements of no other dataset, so that they cannot be written.
    #[error("{elements} of the elements of the virtual dataset have no source")]
    UnmappedVirtualElements {
        /// How many of the selected elements.
        elements: u64,
    },
    /// A source of a virtual dataset is not there, and must be: its elements are to be written, or
    /// [`MissingSourcePolicy::Error`](crate::MissingSourcePolicy::Error) was asked for.
    #[error("the source {dataset:?} in {file:?} is not there")]
    MissingSource {
        /// The file, as the virtual dataset names it.
        file: String,
        /// The path of the dataset in it.
        dataset: String,
    },
    /// A buffer has another number of elements than the selection.
    #[error("the selection has {expected} elements, the buffer {found}")]
    ElementCount {
        /// Elements of the selection.
        expected: u64,
        /// Elements of the buffer.
        found: u64,
    },
    /// Appended values are no whole number of rows.
    #[error("{values} values are no whole rows of {row} values each")]
    NotWholeRows {
        /// Values of a row.
        row: u64,
        /// Values given.
        values: u64,
    },
    /// An array has a shape that does not fit.
    #[error("an array of shape {array:?} does not fit {dataset:?}")]
    ArrayShape {
        /// The shape of the array.
        array: Vec<usize>,
        /// The shape of the dataset or the selection.
        dataset: Vec<usize>,
    },
    /// An array of another number of dimensions was asked for.
    #[error("an array of {array} dimensions cannot have the shape {selected:?}")]
    ArrayRank {
        /// Dimensions of the array.
        array: usize,
        /// The shape of the selection.
        selected: Vec<usize>,
    },
    /// The dataset has no dimension along which it could grow.
    #[error("the dataset has no dimension along which it can grow")]
    CannotGrow,
    /// The new dimensions do not fit the dataset.
    #[error("dimensions [{}] do not fit the maximum [{}]", dims_text(.dims), dims_text(.max))]
    InvalidExtent {
        /// The dimensions that were asked for.
        dims: Vec<u64>,
        /// The maximum.
        max: Vec<u64>,
    },
    /// More groups than may be followed at once.
    #[error("more than {0} groups to follow")]
    TooManyFollowedGroups(usize),
    /// Two datasets cannot be published one after the other.
    #[error("the order in which datasets are published: {0}")]
    InvalidPublishOrder(&'static str),
    /// A thread that publishes in the background could not be started.
    #[error("cannot start a thread that publishes: {0}")]
    PublishThreadSpawn(#[source] std::io::Error),
    /// A dataset was described in a way that contradicts itself.
    #[error("{0}")]
    InvalidSpec(&'static str),
    /// There is no memory for this many bytes.
    #[error("{0} bytes are more than this machine's memory")]
    OutOfMemory(u64),
    /// There is no memory for a length that the file or a description states.
    #[error(transparent)]
    Allocation(#[from] model::AllocationError),
    /// A chunk in the file is of the wrong length.
    #[error("the chunk has {found} bytes instead of {expected}")]
    StoredChunkLength {
        /// Bytes of a chunk.
        expected: u64,
        /// Bytes stored.
        found: u64,
    },
    /// A chunk below the extent that a writer has published cannot be read, nor could it after waiting for the writer.
    #[error("what its writer has published is not there (not met: {promise}): {0}", promise = SwmrInvariant::FinalElementsBelowExtent)]
    UnreadablePublishedChunk(#[source] Box<ErrorKind>),
    /// The elements cannot be seen where they are in the file.
    #[error("the dataset cannot be viewed in the file: {0}")]
    NotViewable(&'static str),
    /// Elements are in raw files, which [`Options::raw_files`](crate::Options::raw_files) does not let be read.
    #[error("its elements are in raw files, which are not read here")]
    RawFilesRefused,
    /// The store holds no maps.
    #[error("a store of the kind {store} holds no maps; these do: {}", .holders.join(", "))]
    MapsUnsupported {
        /// The kind of the store.
        store: &'static str,
        /// The kinds of stores that hold maps.
        holders: Vec<&'static str>,
    },
    /// An option was given that says how a store is opened, for a store that is open already.
    #[error("the option {0} has no meaning for a store that is open already")]
    UnusedOption(&'static str),
    /// A training set is damaged, or is none.
    #[cfg(feature = "archive")]
    #[error(transparent)]
    Archive(#[from] crate::archive::ArchiveFault),
    /// Something that the library does not do.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
}

/// Dimensions as text.
fn dims_text(dims: &[u64]) -> String {
    let dims: Vec<_> =
        dims.iter().map(|dim| if *dim == UNLIMITED { "unlimited".to_owned() } else { dim.to_string() }).collect();
    dims.join(", ")
}

impl Error {
    pub(crate) fn new(file: &str, object: Option<&str>, kind: impl Into<ErrorKind>) -> Self {
        Error(Box::new(ErrorContext {
            file: file.into(),
            object: object.map(Into::into),
            chunk: None,
            kind: kind.into(),
            unpublished: Vec::new(),
        }))
    }

    pub(crate) fn in_chunk(mut self, chunk: &ChunkCoord) -> Self {
        self.0.chunk.get_or_insert_with(|| chunk.clone());
        self
    }

    /// Adds the rows that are not published, if the store has failed.
    pub(crate) fn with_unpublished<R: IntoIterator<Item = UnpublishedRows>>(
        mut self,
        rows: impl FnOnce() -> R,
    ) -> Self {
        if self.store_error_kind().is_some() && self.0.unpublished.is_empty() {
            self.0.unpublished.extend(rows());
        }
        self
    }

    /// The rows that are not published, if a flush or an append failed in the store. They were accepted and are kept: a
    /// later flush writes them, if the cause is gone by then, as it is when a full disk has room again. They are lost if
    /// this process ends before.
    pub fn unpublished_rows(&self) -> &[UnpublishedRows] {
        &self.0.unpublished
    }

    /// The name under which the file was opened.
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// The path under which the object was opened.
    pub fn object(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// The chunk.
    pub fn chunk(&self) -> Option<&ChunkCoord> {
        self.0.chunk.as_ref()
    }

    /// The cause.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Whether a process (this one or another) has the file, or another one to which a link or a virtual dataset leads,
    /// open in a way that excludes this use.
    pub fn is_in_use(&self) -> bool {
        self.kind().is_in_use()
    }

    /// The kind of failure, if the store has failed.
    pub fn store_error_kind(&self) -> Option<&StoreErrorKind> {
        self.store_error().and_then(model::Error::store_error_kind)
    }

    fn store_error(&self) -> Option<&model::Error> {
        self.kind().store_error()
    }

    /// The promise that the writer of a live file has not kept, if that is known: only a writer that died in the middle
    /// of a write, or is none of h5live's, does not.
    pub fn broken_invariant(&self) -> Option<SwmrInvariant> {
        match self.kind() {
            ErrorKind::UnreadablePublishedChunk(_) => Some(SwmrInvariant::FinalElementsBelowExtent),
            _ => match self.store_error() {
                Some(model::Error::Store(error)) => error.broken_invariant,
                _ => None,
            },
        }
    }

    /// The change of the file by another program that caused this error: the file was deleted, replaced or truncated.
    /// Followers end with such an error. Flushes and [`File::close`](crate::File::close) of a writer return it.
    pub fn file_change(&self) -> Option<ForeignFileChange> {
        self.kind().file_change()
    }

    /// Whether more memory was needed than [`Options::max_allocation`](crate::Options::max_allocation) allows. Less may
    /// be read at a time.
    pub fn is_over_max_allocation(&self) -> bool {
        use model::AllocationError::OverLimit;
        matches!(
            self.kind(),
            ErrorKind::Allocation(OverLimit { .. }) | ErrorKind::Convert(ConvertError::Allocation(OverLimit { .. }))
        )
    }

    /// Whether a link, an attribute or an object is not there.
    pub fn is_not_found_in_file(&self) -> bool {
        matches!(self.kind(), ErrorKind::Store(model::Error::NotFound(_) | model::Error::NoObject(_)))
    }
}

impl Error {
    /// The text, with the causes that it does not show itself behind it.
    fn text_with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let detail = error.to_string();
            if !text.contains(&detail) {
                text = format!("{text}: {detail}");
            }
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return f.write_str(&self.text_with_causes());
        }
        write!(f, "{}: ", self.0.file)?;
        if let Some(object) = &self.0.object {
            write!(f, "{object}: ")?;
        }
        if let Some(chunk) = &self.0.chunk {
            write!(f, "chunk {:?}: ", chunk.scaled())?;
        }
        self.0.kind.fmt(f)?;
        let (shown, more) = self.0.unpublished.split_at(self.0.unpublished.len().min(MAX_SHOWN_DATASETS));
        for (n, UnpublishedRows { dataset, rows }) in shown.iter().enumerate() {
            f.write_str(if n == 0 { " (not written yet: " } else { ", " })?;
            write!(f, "rows {} to {} of {dataset}", rows.start, rows.end - 1)?;
        }
        match (shown.len(), more.len()) {
            (0, _) => Ok(()),
            (_, 0) => f.write_str(")"),
            (_, more) => write!(f, ", and rows of {more} more datasets)"),
        }
    }
}

/// As `{error:#}`, so that what `main` returns can be read; `{error:#?}` has the parts.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&self.text_with_causes());
        }
        let ErrorContext { file, object, chunk, kind, unpublished } = &*self.0;
        let mut out = f.debug_struct("Error");
        out.field("file", file).field("object", object).field("chunk", chunk).field("kind", kind);
        out.field("unpublished", unpublished).finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.kind.source()
    }
}

/// Whether a store cannot hold what it was given: all that a copy gives to it is sound where it comes from.
fn is_unsupported_by_store(error: &model::Error) -> bool {
    use model::AllocationError::OverLimit;
    matches!(
        error,
        model::Error::Unsupported(_) | model::Error::Invalid(_) | model::Error::Allocation(OverLimit { .. })
    )
}

impl From<OpenError> for ErrorKind {
    fn from(error: OpenError) -> Self {
        ErrorKind::Open(Box::new(error))
    }
}

impl ErrorKind {
    fn store_error(&self) -> Option<&model::Error> {
        match self {
            ErrorKind::Store(error) => Some(error),
            ErrorKind::Open(error) => match &**error {
                OpenError::Store(error) => Some(error),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn is_in_use(&self) -> bool {
        match self {
            ErrorKind::OtherFile(error) => error.is_in_use(),
            _ => matches!(self.store_error().and_then(model::Error::store_error_kind), Some(StoreErrorKind::InUse(_))),
        }
    }

    /// Whether what was asked for may well be sound, and the store cannot hold it, or this library not read it.
    pub(crate) fn is_unsupported(&self) -> bool {
        use model::AllocationError::OverLimit;
        match self {
            ErrorKind::Unsupported(_) | ErrorKind::UserDefinedLink(_) | ErrorKind::MapsUnsupported { .. } => true,
            ErrorKind::Allocation(error) | ErrorKind::Convert(ConvertError::Allocation(error)) => {
                matches!(error, OverLimit { .. })
            }
            ErrorKind::Filter(error) => {
                error.is_unsupported_data_or_oom() || matches!(error, filters::Error::Unavailable { .. })
            }
            ErrorKind::Convert(ConvertError::Layout { .. }) => true,
            ErrorKind::Convert(error) => error.heap_error().is_some_and(is_unsupported_by_store),
            ErrorKind::OtherFile(error) => error.kind().is_unsupported(),
            _ => self.store_error().is_some_and(is_unsupported_by_store),
        }
    }

    /// Whether structures or elements of a file contradict the format, or each other.
    pub(crate) fn is_damage(&self) -> bool {
        let of_store = |error: &model::Error| {
            matches!(error, model::Error::NoObject(_))
                || matches!(error.store_error_kind(), Some(StoreErrorKind::Damaged))
        };
        match self {
            ErrorKind::StoredChunkLength { .. }
            | ErrorKind::Convert(ConvertError::Truncated { .. } | ConvertError::Utf8(_)) => true,
            ErrorKind::Filter(error) => {
                use filters::Error::{Filter, WrongSize};
                !error.is_unsupported_data_or_oom() && matches!(error, Filter { .. } | WrongSize { .. })
            }
            ErrorKind::Convert(error) => error.heap_error().is_some_and(of_store),
            ErrorKind::OtherFile(error) => error.kind().is_damage(),
            _ => self.store_error().is_some_and(of_store),
        }
    }

    fn file_change(&self) -> Option<ForeignFileChange> {
        match self {
            ErrorKind::UnreadablePublishedChunk(kind) => kind.file_change(),
            ErrorKind::OtherFile(error) => error.file_change(),
            _ => match self.store_error()?.store_error_kind() {
                Some(StoreErrorKind::Changed(change)) => Some(*change),
                _ => None,
            },
        }
    }

    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self)
    }
}
