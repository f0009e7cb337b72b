//! A location picks the store. No other file of this crate names one.

use std::path::Path;
use std::sync::Arc;

use h5live_model::Objects;
use h5live_swmr::{self as swmr, MemoryStorage, NativeFile, OpenOptions};

use crate::unfilter::Known;
use crate::{Locking, Mode, OpenError, Options, Profile};

/// Opens the store at a location.
pub(crate) fn open(location: &Path, options: &Options) -> Result<Arc<dyn Objects>, OpenError> {
    let file = NativeFile::open(location, &native(options)).map_err(|error| OpenError::Store(Box::new(error)))?;
    Ok(Arc::new(file))
}

/// Opens a file whose bytes are in memory.
pub(crate) fn image(bytes: Vec<u8>, options: &Options) -> Result<Arc<dyn Objects>, OpenError> {
    let storage = Arc::new(MemoryStorage::from(bytes));
    let file = NativeFile::on(storage, &native(options)).map_err(|error| OpenError::Store(Box::new(error)))?;
    Ok(Arc::new(file))
}

/// What state a file is in.
pub(crate) fn diagnose(location: &Path) -> Result<swmr::Diagnosis, OpenError> {
    swmr::diagnose(location).map_err(|error| OpenError::Store(Box::new(error)))
}

/// Brings a file into order.
pub(crate) fn repair(location: &Path, options: &Options) -> Result<swmr::Repair, OpenError> {
    swmr::repair(location, &native(options)).map_err(|error| OpenError::Store(Box::new(error)))
}

fn native(options: &Options) -> OpenOptions {
    OpenOptions {
        mode: mode(options.mode),
        locking: locking(options.locking),
        profile: profile(options.profile),
        root: options.root.clone(),
        user_block: options.user_block.clone(),
        grace: options.grace,
        reuse_unread: options.reuse_unread,
        headroom: options.headroom,
        space: options.file_space,
        mapped: options.mapped,
        offset_size: options.offset_size,
        max_allocation: options.max_allocation,
        unfilter: Arc::new(Known(options.filters.clone())),
        ..OpenOptions::default()
    }
}

fn mode(mode: Mode) -> swmr::Mode {
    match mode {
        Mode::Read => swmr::Mode::Read,
        Mode::SwmrRead => swmr::Mode::SwmrRead,
        Mode::Write => swmr::Mode::Write,
        Mode::SwmrWrite => swmr::Mode::SwmrWrite,
        Mode::Create => swmr::Mode::Create,
        Mode::CreateNew => swmr::Mode::CreateNew,
    }
}

fn profile(profile: Profile) -> swmr::Profile {
    match profile {
        Profile::Earliest => swmr::Profile::Earliest,
        Profile::V18 => swmr::Profile::V18,
        Profile::V110 => swmr::Profile::V110,
        Profile::V112 => swmr::Profile::V112,
        Profile::V114 => swmr::Profile::V114,
        Profile::V200 => swmr::Profile::V200,
    }
}

fn locking(locking: Locking) -> swmr::Locking {
    match locking {
        Locking::Environment | Locking::Always => swmr::Locking::On,
        Locking::BestEffort => swmr::Locking::BestEffort,
        Locking::Never => swmr::Locking::Off,
    }
}
