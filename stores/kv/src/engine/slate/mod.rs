//! SlateDB: keys and values in the objects of an object store, or in the files of a folder.
//!
//! One session writes; a later one that writes fences it. Any number of sessions read, also on other machines: they follow
//! the write-ahead log. All asynchronous work is done on threads of the engine.

mod heartbeat;
mod location;
mod location_error_mapper;
mod memtable;
mod options;
mod pinned;
mod reader;
mod reader_view;
mod runtime;
mod scan;
mod session;
mod signal;
mod tables_with_wal_tail;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::Arc;

use h5live_model::{Mode, PublishLevel};

use self::reader::SlateReader;
use self::runtime::SlateRuntime;
use self::session::SlateSession;
use self::signal::{CommitSignal, SlateWatch};
use self::writer::SlateWriter;
use super::{EditBatch, Engine, EngineError, EngineWatch, KeySpan, Result, View};

pub use self::location::SlateLocation;
pub use self::options::SlateOptions;

/// Most bytes of a key. SlateDB takes 65,535; descriptions of tables have keys too, and are to stay small.
const MAX_KEY_BYTES: usize = 16 << 10;

/// A session on keys and values in an object store.
#[derive(Debug)]
pub struct SlateEngine {
    session: Arc<SlateSession>,
    role: SlateRole,
}

#[derive(Debug)]
enum SlateRole {
    Writer(SlateWriter),
    Reader(Arc<SlateReader>),
}

impl SlateEngine {
    /// Whether a folder has such a store.
    pub fn is_at(folder: &Path) -> bool {
        folder.join("h5live").is_dir() && folder.join("manifest").is_dir()
    }

    /// Opens a store, or makes it. `random` is a number that no other session has.
    ///
    /// # Errors
    /// [`EngineError::NoStoreAt`], [`EngineError::AlreadyExists`], and others if it cannot be reached.
    pub fn open(location: SlateLocation, mode: Mode, options: &SlateOptions, random: u64) -> Result<Self> {
        let failures = location.failures();
        let runtime = SlateRuntime::start().map_err(failures.io_error("there are no threads"))?;
        let session = Arc::new(SlateSession {
            runtime: Arc::new(runtime),
            location,
            options: options.with_clamped_times(),
            signal: Arc::new(CommitSignal::default()),
        });
        let location = session.location.clone();
        let is_there = async move { location.holds_store().await };
        let is_there = session.block_on_object_store("the key-value store cannot be reached", is_there)?;
        match mode {
            // A store that was not finished has no keys.
            Mode::CreateNew if is_there && holds_keys(&*SlateReader::open(session.clone())?.refreshed_view()?)? => {
                return Err(EngineError::AlreadyExists(session.location.path()));
            }
            Mode::Create | Mode::CreateNew => {}
            _ if !is_there => return Err(EngineError::NoStoreAt(session.location.path())),
            _ => {}
        }
        let role = match mode.writes() {
            true => SlateRole::Writer(SlateWriter::open(session.clone(), random)?),
            false => SlateRole::Reader(SlateReader::open(session.clone())?),
        };
        let engine = SlateEngine { session, role };
        // Another session may have made it meanwhile.
        if mode == Mode::CreateNew && holds_keys(&*engine.view()?)? {
            engine.close()?;
            return Err(EngineError::AlreadyExists(engine.session.location.path()));
        }
        Ok(engine)
    }
}

/// Whether a state has a key.
fn holds_keys(view: &dyn View) -> Result<bool> {
    let mut any = false;
    view.scan(&KeySpan::all(), &mut |_, _| {
        any = true;
        false
    })?;
    Ok(any)
}

impl Engine for SlateEngine {
    fn view(&self) -> Result<Arc<dyn View>> {
        Ok(match &self.role {
            SlateRole::Writer(writer) => Arc::new(writer.view()?),
            SlateRole::Reader(reader) => reader.refreshed_view()?,
        })
    }

    fn newest_version(&self) -> Result<u64> {
        match &self.role {
            SlateRole::Writer(_) => Ok(self.session.signal.newest_version()),
            SlateRole::Reader(reader) => Ok(reader.refreshed_view()?.version()),
        }
    }

    fn commit(&self, edits: &EditBatch, publish: PublishLevel) -> Result<()> {
        let SlateRole::Writer(writer) = &self.role else { return Err(EngineError::ReadOnly) };
        if let Some((key, _)) = edits.iter().find(|(key, _)| key.is_empty() || key.len() > MAX_KEY_BYTES) {
            return Err(EngineError::KeyTooLong(key.len()));
        }
        writer.commit(edits, publish)
    }

    fn max_key_bytes(&self) -> usize {
        MAX_KEY_BYTES
    }

    fn has_writer(&self) -> Result<bool> {
        match &self.role {
            SlateRole::Writer(_) => Ok(true),
            SlateRole::Reader(reader) => reader.has_writer(),
        }
    }

    fn watch(&self) -> Result<Box<dyn EngineWatch>> {
        Ok(Box::new(SlateWatch::new(self.session.signal.clone())))
    }

    fn close(&self) -> Result<()> {
        match &self.role {
            SlateRole::Writer(writer) => writer.close(),
            SlateRole::Reader(reader) => {
                reader.close();
                Ok(())
            }
        }
    }
}
