//! Errors of the object store.

use std::io;
use std::path::PathBuf;

use h5live_model::{Error as ModelError, ForeignFileChange, StoreErrorKind};

use crate::layout::LayoutError;

/// What is wrong with a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HsdsError {
    /// An object does not say what it should.
    #[error("the object {key} is damaged: {source}")]
    DamagedObject {
        /// The object.
        key: String,
        /// What is wrong.
        source: LayoutError,
    },
    /// A chunk cannot be decoded.
    #[error("the chunk {key} is damaged: {source}")]
    DamagedChunk {
        /// The chunk.
        key: String,
        /// What is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The medium failed.
    #[error("{key}: {source}")]
    Io {
        /// The object.
        key: String,
        /// What the medium says.
        source: io::Error,
    },
    /// Nothing is at the location.
    #[error("no domain is at {0}")]
    NoDomain(String),
    /// A domain without objects: a folder.
    #[error("{0} is a folder of domains, without objects of its own")]
    IsFolder(String),
    /// A bucket has several domains, and none was named.
    #[error("the bucket {bucket} has several domains: name one with ?domain=; they are {}", domains.join(", "))]
    SeveralDomains {
        /// The bucket.
        bucket: String,
        /// The domains.
        domains: Vec<String>,
    },
    /// The folder of a new domain lies in a bucket within the bucket.
    #[error(
        "in {bucket:?} no domain is made here, because {inner:?} is a bucket of its own, whose domain would have the same \
         path: write to that one, hsds:{}, or take another path", inner.display()
    )]
    DomainInNestedBucket {
        /// The bucket of the new domain.
        bucket: PathBuf,
        /// The bucket in it.
        inner: PathBuf,
    },
    /// A path that is not that of a domain in a bucket.
    #[error("/{domain} is no path of a domain in a bucket: {why}")]
    InvalidDomainPath {
        /// The path.
        domain: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Something is at the location.
    #[error("{0} exists")]
    AlreadyExists(String),
    /// A folder that is to be deleted has domains or folders.
    #[error("{0} is a folder of domains that is not empty: delete its domains first")]
    FolderNotEmpty(String),
    /// A folder that is to be moved.
    #[error("{0} is a folder of domains: move its domains one by one")]
    FolderNotMovable(String),
    /// A native file whose chunks a dataset cannot have.
    #[error(
        "{0} is in another bucket than the domain, or is not a file: a dataset has chunks of files of its own bucket only"
    )]
    FileNotInBucket(String),
    /// A file is no native file.
    #[error("{0} is not an HDF5 file")]
    NotHdf5File(String),
    /// Something is wrong with the domain, so that nothing is deleted from it.
    #[error("nothing is deleted, because a check has {findings} findings; the first is: {first}")]
    ReclaimRefused {
        /// The number of findings.
        findings: usize,
        /// The first one.
        first: String,
    },
    /// A user lacks a right.
    #[error("the user {user} does not have the right {right} for {object}")]
    AccessDenied {
        /// The user.
        user: String,
        /// The right.
        right: &'static str,
        /// The domain, or the object.
        object: String,
    },
    /// Another process writes the domain.
    #[error("another process writes {0}")]
    InUse(String),
    /// Another process writes the domain, by its lease.
    #[error("{holder} writes {domain}; if it is dead, its lease ends by itself, or take=yes takes it away at once")]
    Leased {
        /// The domain.
        domain: String,
        /// Who has the lease.
        holder: String,
    },
    /// Another writer has the lease that this session had.
    #[error("{by} has taken over {domain}: this session writes nothing more")]
    Fenced {
        /// The domain.
        domain: String,
        /// Who has the lease.
        by: String,
    },
    /// A document is not as this session has read or written it, though the session has the lease.
    #[error(
        "{0} was changed by a program that does not have the lease of the domain: it is left as it is; open the domain again"
    )]
    DocumentChanged(String),
    /// The object that should be a lease is none.
    #[error("{0} is no lease of a writer; take=yes replaces it")]
    BadLease(String),
    /// The object store cannot exclude two writers.
    #[error(
        "{0} does not keep conditions of writes, so it cannot exclude two writers; unfenced=yes writes all the same"
    )]
    NoConditionalWrites(String),
}

impl From<HsdsError> for ModelError {
    fn from(error: HsdsError) -> Self {
        let kind = match &error {
            HsdsError::DamagedObject { source: LayoutError::Schema1Id(_), .. } => StoreErrorKind::NotThisFormat,
            HsdsError::DamagedObject { .. } | HsdsError::DamagedChunk { .. } | HsdsError::ReclaimRefused { .. } => {
                StoreErrorKind::Damaged
            }
            HsdsError::Io { source, .. } => source.into(),
            HsdsError::NoDomain(_) | HsdsError::FileNotInBucket(_) => StoreErrorKind::NotFound,
            HsdsError::IsFolder(_)
            | HsdsError::SeveralDomains { .. }
            | HsdsError::DomainInNestedBucket { .. }
            | HsdsError::InvalidDomainPath { .. }
            | HsdsError::NotHdf5File(_) => StoreErrorKind::NotThisFormat,
            HsdsError::FolderNotMovable(_) => StoreErrorKind::NotThisFormat,
            HsdsError::AlreadyExists(_) | HsdsError::FolderNotEmpty(_) => StoreErrorKind::AlreadyExists,
            HsdsError::AccessDenied { .. } => StoreErrorKind::PermissionDenied,
            HsdsError::InUse(_) | HsdsError::Leased { .. } => StoreErrorKind::InUse(Vec::new()),
            HsdsError::Fenced { .. } => StoreErrorKind::Fenced,
            HsdsError::DocumentChanged(_) => StoreErrorKind::Changed(ForeignFileChange::Replaced),
            HsdsError::BadLease(_) => StoreErrorKind::Damaged,
            HsdsError::NoConditionalWrites(_) => StoreErrorKind::Io,
        };
        ModelError::store(kind, error)
    }
}

/// Says which object is damaged.
pub fn damaged_object_error(key: &str) -> impl FnOnce(LayoutError) -> ModelError {
    let key = key.to_owned();
    move |source| HsdsError::DamagedObject { key, source }.into()
}

/// Says that a description does not fit the schema.
pub fn invalid_or_unsupported_error(error: LayoutError) -> ModelError {
    match error {
        LayoutError::Unsupported(what) => ModelError::Unsupported(what),
        other => ModelError::Invalid(other.to_string()),
    }
}
