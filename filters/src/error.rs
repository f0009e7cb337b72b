//! Errors of filters and pipelines.

/// A result of a pipeline or a registry.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a chunk could not be taken through a pipeline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The registry has no filter of this number, and the chunk needs it.
    #[error("filter {id} ({name}) is not available")]
    Unavailable {
        /// The registered number of the filter.
        id: u16,
        /// The name that the file gives it, or "unnamed".
        name: String,
    },
    /// A filter failed.
    #[error("filter {id} ({name}): {fault}")]
    Filter {
        /// The registered number of the filter.
        id: u16,
        /// The filter's own name.
        name: String,
        /// The fault of the filter.
        #[source]
        fault: FilterFault,
    },
    /// The stored bytes decode to another number of bytes than a chunk has.
    #[error("the chunk has {expected} bytes, its stored form decodes to {found}")]
    WrongSize {
        /// Bytes of a chunk.
        expected: usize,
        /// Bytes decoded.
        found: usize,
    },
    /// A pipeline of more than [`MAX_FILTERS`](crate::MAX_FILTERS) filters.
    #[error("a pipeline of {0} filters is longer than a mask")]
    TooManyFilters(usize),
    /// There is no memory for a chunk.
    #[error("there is no memory for {0} bytes")]
    OutOfMemory(usize),
}

impl Error {
    /// Whether the bytes may well be sound, and this implementation cannot decode them: they have a form that it does not
    /// know, or there is no memory for them.
    pub fn is_unsupported_data_or_oom(&self) -> bool {
        match self {
            Error::Filter { fault, .. } => matches!(fault, FilterFault::Unsupported(_) | FilterFault::OutOfMemory(_)),
            Error::OutOfMemory(_) => true,
            _ => false,
        }
    }
}

/// The fault that a filter has found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterFault {
    /// The stored bytes end too early.
    #[error("the data ends too early")]
    Truncated,
    /// The result does not fit the space that it may take.
    #[error("the result is larger than {limit} bytes")]
    TooLarge {
        /// Bytes that the result may have.
        limit: usize,
    },
    /// A part of the stored bytes cannot be what the filter wrote.
    #[error("the {0} is damaged")]
    Corrupt(&'static str),
    /// A checksum does not match.
    #[error("the checksum is {computed:08x}, stored is {stored:08x}")]
    Checksum {
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
    /// A parameter is missing.
    #[error("parameter {index} is missing")]
    MissingParameter {
        /// Its position, from zero.
        index: usize,
    },
    /// A parameter has a value that it cannot have.
    #[error("parameter {index} cannot be {value}")]
    InvalidParameter {
        /// Its position, from zero.
        index: usize,
        /// Its value.
        value: u32,
    },
    /// Something the format allows and this implementation does not do.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// The filter does not fit the dataset.
    #[error("it applies to {0} only")]
    AppliesOnlyTo(&'static str),
    /// The filter makes the chunk no smaller, and is not optional.
    #[error("the chunk does not get smaller")]
    Incompressible,
    /// There is no memory for an intermediate result.
    #[error("there is no memory for {0} bytes")]
    OutOfMemory(usize),
    /// A filter or a codec from elsewhere failed; the source says how.
    #[error("{0}")]
    External(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl FilterFault {
    /// Wraps the error of a filter from elsewhere.
    pub fn external(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        FilterFault::External(Box::new(error))
    }
}
