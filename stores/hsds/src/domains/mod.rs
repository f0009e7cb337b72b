//! Domains as a whole: those below a folder, and what deletes and moves one.

mod listing;
mod moving;
mod removal;

use h5live_model::{Location, Mode, OpenError};

use crate::connector::{options_of, place_of};
#[cfg(feature = "clouds")]
use crate::engine::BucketEngine;
use crate::engine::{FolderEngine, ObjectEngine};
use crate::error::HsdsError;
use crate::layout::check_domain_path;
use crate::options::Hsds;
use crate::place::DomainPlace;

pub use listing::{DomainEntry, DomainEntryKind, DomainFolder, StoredSize};
pub use moving::move_domain;
pub use removal::{RemovedDomain, remove_domain_or_empty_folder};

/// What is done with domains ends like this.
type Result<T, E = h5live_model::Error> = std::result::Result<T, E>;

/// The objects at a location, with the domain and the options that it names.
///
/// # Errors
/// [`OpenError::InvalidLocation`], [`OpenError::Store`].
pub(crate) fn open_engine(at: &Location, mode: Mode) -> Result<(Box<dyn ObjectEngine>, String, Hsds), OpenError> {
    #[cfg(feature = "clouds")]
    if is_on_cloud(at) {
        let options = crate::cloud_connector::options_of(at);
        let (place, engine) = crate::cloud_connector::open_engine(at, &options, mode)?;
        return Ok((Box::new(engine), place.domain, options.schema));
    }
    let options = options_of(at);
    let place = place_of(at, &options)?;
    let engine = FolderEngine::open(&place.bucket, &place.domain, mode)?;
    Ok((Box::new(engine), place.domain, options))
}

/// The objects of another domain in the bucket of a location.
///
/// # Errors
/// As [`open_engine`]; [`HsdsError::InvalidDomainPath`](crate::HsdsError::InvalidDomainPath),
/// [`HsdsError::DomainInNestedBucket`](crate::HsdsError::DomainInNestedBucket).
fn open_other(at: &Location, domain: &str, mode: Mode) -> Result<Box<dyn ObjectEngine>, OpenError> {
    let wrong = |why| OpenError::Store(HsdsError::InvalidDomainPath { domain: domain.to_owned(), why }.into());
    check_domain_path(domain).map_err(wrong)?;
    if domain.is_empty() {
        return Err(wrong("it is empty"));
    }
    #[cfg(feature = "clouds")]
    if is_on_cloud(at) {
        let options = crate::cloud_connector::options_of(at);
        let (place, client) = crate::cloud_connector::place_and_client(at, &options)?;
        let engine = BucketEngine::open(&client, &place.bucket, domain, mode, &options.request())?;
        return Ok(Box::new(engine));
    }
    let bucket = place_of(at, &options_of(at))?.bucket;
    let place = DomainPlace { bucket, domain: domain.to_owned() };
    place.check_no_nested_bucket()?;
    Ok(Box::new(FolderEngine::open(&place.bucket, domain, mode)?))
}

/// Whether a location is one in a bucket.
#[cfg(feature = "clouds")]
fn is_on_cloud(at: &Location) -> bool {
    matches!(at, Location::Url(url) if url.scheme() != crate::session::CONNECTOR)
}
