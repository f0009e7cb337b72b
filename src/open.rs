//! A location picks the store. No other file of this crate names one.

use std::path::Path;
use std::sync::Arc;

use h5live_model::Objects;
use h5live_swmr::{self as swmr, MemoryStorage, NativeFile, OpenOptions};

use crate::unfilter::RegistryFilters;
use crate::{Locking, OpenError, Options};

/// Opens the store at a location.
pub(crate) fn open(location: &Path, options: &Options) -> Result<Arc<dyn Objects>, OpenError> {
    let file = NativeFile::open(location, &native_options(options)).map_err(store_error)?;
    Ok(Arc::new(file))
}

/// Opens a file whose bytes are in memory.
pub(crate) fn image(bytes: Vec<u8>, options: &Options) -> Result<Arc<dyn Objects>, OpenError> {
    let storage = Arc::new(MemoryStorage::from(bytes));
    let file = NativeFile::open_storage(storage, &native_options(options)).map_err(store_error)?;
    Ok(Arc::new(file))
}

/// What state a file is in.
pub(crate) fn diagnose(location: &Path) -> Result<swmr::Diagnosis, OpenError> {
    swmr::diagnose(location).map_err(store_error)
}

/// Brings a file into order.
pub(crate) fn repair(location: &Path, options: &Options) -> Result<swmr::Repair, OpenError> {
    swmr::repair(location, &native_options(options)).map_err(store_error)
}

fn store_error(error: swmr::Error) -> OpenError {
    OpenError::Store(error.into())
}

fn native_options(options: &Options) -> OpenOptions {
    OpenOptions {
        mode: options.mode,
        locking: native_locking(options.locking),
        profile: options.libver,
        root: options.root.clone(),
        user_block: options.user_block.clone(),
        grace: options.grace,
        reuse_unread: options.reuse_unread,
        headroom: options.headroom,
        space: options.file_space,
        mapped: options.mapped,
        offset_size: options.offset_size,
        max_allocation: options.max_allocation,
        unfilter: Arc::new(RegistryFilters(options.filters.clone())),
        ..OpenOptions::default()
    }
}

fn native_locking(locking: Locking) -> swmr::LockPolicy {
    match locking {
        Locking::Environment | Locking::Always => swmr::LockPolicy::On,
        Locking::BestEffort => swmr::LockPolicy::BestEffort,
        Locking::Never => swmr::LockPolicy::Off,
    }
}
