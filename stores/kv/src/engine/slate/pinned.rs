//! A state in tables that stays: SlateDB deletes none of its objects as long as a checkpoint leads to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use slatedb::admin::Admin;
use slatedb::config::{CheckpointOptions, DbReaderOptions};
use slatedb::db_cache::DbCache;
use slatedb::{DbReader, DbReaderMode};

use super::location::SlateLocation;
use super::runtime::SlateRuntime;

/// The name of checkpoints of readers.
const CHECKPOINT_NAME: &str = "h5live reader";
/// The number of this store in the cache, which has only one.
const CACHE_SCOPE: u64 = 1;
/// Most repetitions by SlateDB of what an object store has refused, on top of the store's own.
pub const OBJECT_STORE_MAX_RETRIES: u32 = 3;

/// How long a session waits at most until a checkpoint is removed.
pub const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a reader needs to pin states.
pub struct CheckpointContext {
    pub location: SlateLocation,
    pub admin: Admin,
    pub cache: Arc<dyn DbCache>,
    pub lifetime: Duration,
    pub runtime: Arc<SlateRuntime>,
}

/// A state in tables.
pub struct PinnedTables {
    pub tables: DbReader,
    /// The number of the last write that is in the tables.
    pub last_sequence: u64,
    /// The last file of the write-ahead log whose writes are all in the tables.
    pub last_wal_file_in_tables: u64,
    pub pinned_at: Instant,
    checkpoint: slatedb::CheckpointCreateResult,
    renewed: Mutex<Instant>,
    is_released: AtomicBool,
    pins: Arc<CheckpointContext>,
}

impl PinnedTables {
    /// Pins the newest state.
    pub async fn pin_newest(context: Arc<CheckpointContext>) -> Result<Self, slatedb::Error> {
        let options = CheckpointOptions {
            lifetime: Some(context.lifetime),
            name: Some(CHECKPOINT_NAME.to_owned()),
            source: None,
        };
        let made = Instant::now();
        let checkpoint = context.admin.create_detached_checkpoint(&options).await?;
        let options = DbReaderOptions {
            checkpoint_lifetime: context.lifetime,
            skip_wal_replay: true,
            object_store_max_retries: Some(OBJECT_STORE_MAX_RETRIES),
            ..DbReaderOptions::default()
        };
        let tables = DbReader::builder(context.location.prefix.clone(), context.location.store.clone())
            .with_reader_mode(DbReaderMode::Checkpoint(checkpoint.id))
            .with_db_cache(context.cache.clone(), CACHE_SCOPE)
            .with_options(options)
            .build()
            .await?;
        let manifest = tables.manifest();
        Ok(PinnedTables {
            last_sequence: manifest.last_l0_seq(),
            last_wal_file_in_tables: manifest.replay_after_wal_id(),
            tables,
            pinned_at: made,
            checkpoint,
            renewed: Mutex::new(made),
            is_released: AtomicBool::new(false),
            pins: context,
        })
    }

    /// Lets the checkpoint live on, if half of its life is over.
    pub async fn renew_if_due(&self) -> Result<(), slatedb::Error> {
        let now = Instant::now();
        if now.saturating_duration_since(*self.renewed.lock()) < self.pins.lifetime / 2 {
            return Ok(());
        }
        self.pins.admin.refresh_checkpoint(self.checkpoint.id, Some(self.pins.lifetime)).await?;
        *self.renewed.lock() = now;
        Ok(())
    }

    /// Removes the checkpoint: its objects may be deleted from now on.
    pub async fn release(&self) -> Result<(), slatedb::Error> {
        if self.is_released.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.pins.admin.delete_checkpoint(self.checkpoint.id).await
    }
}

impl Drop for PinnedTables {
    /// Removes the checkpoint. If this fails, its life ends by itself.
    fn drop(&mut self) {
        if self.is_released.swap(true, Ordering::AcqRel) {
            return;
        }
        let (pins, checkpoint) = (self.pins.clone(), self.checkpoint.id);
        let runtime = pins.runtime.clone();
        runtime.spawn(async move {
            let _ = tokio::time::timeout(RELEASE_TIMEOUT, pins.admin.delete_checkpoint(checkpoint)).await;
        });
    }
}
