//! What all parts of a session on a SlateDB store share.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use slatedb::admin::{Admin, AdminBuilder};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::db_cache::{DbCache, SplitCache};

use super::location::SlateLocation;
use super::options::SlateOptions;
use super::runtime::SlateRuntime;
use super::signal::CommitSignal;
use crate::engine::Result;

/// How long a caller waits at most for one piece of work. Requests of the object store end much earlier.
const WORK_LIMIT: Duration = Duration::from_secs(120);
/// The slowest connection on which a large commit is waited for (bytes per second).
const MIN_BYTES_PER_SECOND: u64 = 256 << 10;
/// The share of the cache that indexes and filters of tables have.
const META_CACHE_SHARE: u64 = 4;

/// What all parts of a session share.
#[derive(Debug)]
pub struct SlateSession {
    pub runtime: Arc<SlateRuntime>,
    pub location: SlateLocation,
    pub options: SlateOptions,
    pub signal: Arc<CommitSignal>,
}

impl SlateSession {
    /// Runs work of SlateDB, and waits for it. `context` says what an error of it means.
    ///
    /// # Errors
    /// Those of the work, and [`crate::engine::EngineError::Io`] if it takes too long.
    pub fn block_on_slate<T: Send + 'static>(
        &self,
        context: &'static str,
        work: impl Future<Output = std::result::Result<T, slatedb::Error>> + Send + 'static,
    ) -> Result<T> {
        self.block_on_slate_scaled_timeout(context, 0, work)
    }

    /// As [`SlateSession::block_on_slate`], for work that moves so many bytes.
    ///
    /// # Errors
    /// As [`SlateSession::block_on_slate`].
    pub fn block_on_slate_scaled_timeout<T: Send + 'static>(
        &self,
        context: &'static str,
        bytes_moved: u64,
        work: impl Future<Output = std::result::Result<T, slatedb::Error>> + Send + 'static,
    ) -> Result<T> {
        let failures = self.location.failures();
        let limit = WORK_LIMIT + Duration::from_secs(bytes_moved / MIN_BYTES_PER_SECOND);
        let done = self.runtime.block_on(limit, work).map_err(failures.io_error(context))?;
        done.map_err(failures.slate_error(context))
    }

    /// Runs work of the object store, and waits for it.
    ///
    /// # Errors
    /// As [`SlateSession::block_on_slate`].
    pub fn block_on_object_store<T: Send + 'static>(
        &self,
        context: &'static str,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T> {
        let failures = self.location.failures();
        let done = self.runtime.block_on(WORK_LIMIT, work).map_err(failures.io_error(context))?;
        done.map_err(failures.object_store_error(context))
    }

    /// What reads and changes the store's own description.
    pub fn new_admin(&self) -> Admin {
        AdminBuilder::new(self.location.prefix.clone(), self.location.store.clone()).build()
    }

    /// A cache of blocks.
    pub fn new_cache(&self) -> Arc<dyn DbCache> {
        let meta_bytes = self.options.cache_bytes / META_CACHE_SHARE;
        let part = |max_capacity| -> Arc<dyn DbCache> {
            let options = MokaCacheOptions { max_capacity, ..MokaCacheOptions::default() };
            Arc::new(MokaCache::new_with_opts(options))
        };
        let blocks = part(self.options.cache_bytes - meta_bytes);
        Arc::new(SplitCache::new().with_block_cache(Some(blocks)).with_meta_cache(Some(part(meta_bytes))).build())
    }
}
