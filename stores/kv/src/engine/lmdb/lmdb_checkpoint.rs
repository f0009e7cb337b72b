//! The last durable state of an LMDB file whose commits do not wait for the disk.
//!
//! LMDB has two *meta pages* at the start of its file. Each commit writes one of them; it leads to all other pages of the
//! new state. Without waiting, the disk may have the meta pages of the last commits, and not what they lead to. So:
//!
//! - A read transaction of the writer stays at the last durable state. LMDB writes over none of its pages meanwhile.
//! - The meta pages of that state are kept in a file of their own, with what tells the start of the machine from others.
//! - Who opens the store after the machine was started anew puts these meta pages back.
//!
//! The file has two slots, written in turn. The one with the higher number and a right checksum counts.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::environment::{Environment, ReadTransaction};
use super::files::{CHECKPOINT_FILE, DATA_FILE};
use super::page::{DamagedPage, MetaPage};
use crate::engine::{EngineError, Result};

const MAGIC: [u8; 8] = *b"h5lvmeta";
/// Bytes of the text that tells the start of the machine.
const BOOT_BYTES: usize = 36;
/// Bytes of a slot before the meta pages: the magic, number, bytes of the meta pages, start of the machine.
const HEAD_BYTES: usize = 8 + 8 + 8 + BOOT_BYTES;
/// The largest meta pages (bytes): two of the largest pages that LMDB has.
const MAX_META_BYTES: usize = 2 * (32 << 10);
/// From where on the second slot is.
const SLOT_BYTES: usize = 128 << 10;

/// The last durable state, and what keeps it.
#[derive(Debug)]
pub struct LmdbCheckpoint {
    file: File,
    data: File,
    number: u64,
    meta_bytes: usize,
    boot: [u8; BOOT_BYTES],
    /// LMDB keeps the pages of the state that this reads.
    kept: ReadTransaction,
}

/// A state that may become the last durable one.
#[derive(Debug)]
pub struct PendingCheckpoint {
    kept: ReadTransaction,
    meta: Vec<u8>,
}

/// What is known of the last durable state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurableState {
    /// How many durable states there have been.
    pub checkpoint_number: u64,
    /// Whether it is the state of the newest commit.
    pub is_newest_commit: bool,
}

/// What a slot has.
struct Slot {
    number: u64,
    boot: [u8; BOOT_BYTES],
    meta: Vec<u8>,
}

/// What tells this start of the machine from others; zeros if the system does not say it.
fn boot_id() -> [u8; BOOT_BYTES] {
    let text = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut boot = [0; BOOT_BYTES];
    boot.iter_mut().zip(text).for_each(|(to, from)| *to = from);
    boot
}

impl Slot {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.number.to_le_bytes());
        bytes.extend((self.meta.len() as u64).to_le_bytes());
        bytes.extend(self.boot);
        bytes.extend(&self.meta);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// `None` if the bytes are no slot, or one that was not written to its end.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let meta_bytes = usize::try_from(number(16)?).ok().filter(|bytes| *bytes <= MAX_META_BYTES)?;
        let (slot, rest) = bytes.split_at_checked(HEAD_BYTES + meta_bytes)?;
        let checksum = u32::from_le_bytes(rest.first_chunk().copied()?);
        let boot = slot.get(24..HEAD_BYTES)?.try_into().ok()?;
        let is_whole = slot.starts_with(&MAGIC) && crc32c::crc32c(slot) == checksum;
        is_whole.then(|| Slot { number: number(8).unwrap_or_default(), boot, meta: slot[HEAD_BYTES..].to_vec() })
    }

    /// The slot of a file that counts.
    fn read(file: &File) -> Result<Option<Self>> {
        let slot = |at: usize| -> Result<Option<Slot>> {
            let mut bytes = vec![0; HEAD_BYTES + MAX_META_BYTES + 4];
            let mut len = 0;
            while len < bytes.len() {
                let read = file.read_at(&mut bytes[len..], (at + len) as u64);
                match read.map_err(EngineError::io("the durable state cannot be read"))? {
                    0 => break,
                    read => len += read,
                }
            }
            Ok(Slot::decode(&bytes[..len]))
        };
        Ok(slot(0)?.into_iter().chain(slot(SLOT_BYTES)?).max_by_key(|slot| slot.number))
    }
}

fn open_file(folder: &Path, name: &str, writable: bool) -> Result<Option<File>> {
    let path = folder.join(name);
    match File::options().read(true).write(writable).open(&path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EngineError::io_at("the durable state cannot be opened", &path)(error)),
    }
}

/// The state that is to be put back, if the machine was started anew and the file has another one.
fn state_to_restore(folder: &Path) -> Result<Option<Slot>> {
    let Some(file) = open_file(folder, CHECKPOINT_FILE, false)? else { return Ok(None) };
    let (Some(slot), Some(data)) = (Slot::read(&file)?, open_file(folder, DATA_FILE, false)?) else { return Ok(None) };
    if slot.boot == boot_id() {
        return Ok(None);
    }
    let mut meta = vec![0; slot.meta.len()];
    let is_same = data.read_exact_at(&mut meta, 0).is_ok() && meta == slot.meta;
    Ok((!is_same).then_some(slot))
}

impl LmdbCheckpoint {
    /// Whether [`LmdbCheckpoint::recover_if_needed`] has something to do.
    ///
    /// # Errors
    /// [`EngineError::Io`] if a file cannot be read.
    pub fn needs_recovery(folder: &Path) -> Result<bool> {
        Ok(state_to_restore(folder)?.is_some())
    }

    /// Refuses meta pages one of which has the state of the last durable one, and the number of another commit: readers
    /// would take an earlier state for the newest one, and each commit makes another state.
    ///
    /// # Errors
    /// [`EngineError::DamagedPage`] if there is one, [`EngineError::Io`] if the file cannot be read.
    pub fn refuse_renumbered_state(folder: &Path, pair: &[MetaPage; 2]) -> Result<()> {
        let Some(file) = open_file(folder, CHECKPOINT_FILE, false)? else { return Ok(()) };
        let Some(slot) = Slot::read(&file)? else { return Ok(()) };
        let kept = slot.meta.chunks_exact((slot.meta.len() / 2).max(1)).map(MetaPage::decode);
        for (page, (kept, found)) in kept.zip(pair).enumerate() {
            if kept.is_ok_and(|kept| kept.equals_except_commit(found) && kept.commit != found.commit) {
                let rule = "it has the state of one commit and the number of another one";
                return Err(DamagedPage { page: page as u64, rule }.into());
            }
        }
        Ok(())
    }

    /// What is known of the last durable state; `None` if none is kept.
    ///
    /// # Errors
    /// [`EngineError::Io`] if a file cannot be read.
    pub fn durable_state(folder: &Path) -> Result<Option<DurableState>> {
        let Some(file) = open_file(folder, CHECKPOINT_FILE, false)? else { return Ok(None) };
        let (Some(slot), Some(data)) = (Slot::read(&file)?, open_file(folder, DATA_FILE, false)?) else {
            return Ok(None);
        };
        let mut meta = vec![0; slot.meta.len()];
        let is_newest = data.read_exact_at(&mut meta, 0).is_ok() && meta == slot.meta;
        Ok(Some(DurableState { checkpoint_number: slot.number, is_newest_commit: is_newest }))
    }

    /// Goes back to the last durable state if the machine was started anew since it was written. The caller has the lock
    /// of writers, and nobody has the database open.
    ///
    /// # Errors
    /// [`EngineError::Io`] if a file cannot be read or written.
    pub fn recover_if_needed(folder: &Path) -> Result<()> {
        let context = "the durable state cannot be put back";
        if let Some(slot) = state_to_restore(folder)?
            && let Some(data) = open_file(folder, DATA_FILE, true)?
        {
            data.write_all_at(&slot.meta, 0).and_then(|()| data.sync_data()).map_err(EngineError::io(context))?;
        }
        Ok(())
    }

    /// Says that no state is kept.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the file cannot be removed.
    pub fn remove(folder: &Path) -> Result<()> {
        let context = "the durable state cannot be removed";
        match fs::remove_file(folder.join(CHECKPOINT_FILE)) {
            Ok(()) => sync_folder(folder).map_err(EngineError::io(context)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(EngineError::io(context)(error)),
        }
    }

    /// Makes the present state durable, and keeps it. The caller has the lock of writers.
    ///
    /// # Errors
    /// [`EngineError`] if something cannot be written.
    pub fn checkpoint_now(folder: &Path, environment: &Arc<Environment>) -> Result<Self> {
        let context = "the durable state cannot be kept";
        let is_new = !folder.join(CHECKPOINT_FILE).exists();
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(folder.join(CHECKPOINT_FILE));
        let file = file.map_err(EngineError::io(context))?;
        let number = Slot::read(&file)?.map_or(0, |slot| slot.number);
        let data = open_file(folder, DATA_FILE, true)?.ok_or(EngineError::Damaged("its file is gone"))?;
        let meta_bytes = 2 * environment.env().stat().page_size as usize;
        if meta_bytes > MAX_META_BYTES {
            return Err(EngineError::Damaged("its pages are larger than any that are known"));
        }
        let kept = environment.read()?;
        let mut point = LmdbCheckpoint { file, data, number, meta_bytes, boot: boot_id(), kept };
        point.make_durable(environment)?;
        if is_new {
            sync_folder(folder).map_err(EngineError::io(context))?;
        }
        Ok(point)
    }

    /// Makes the present state durable, and keeps that instead of the one before. Nobody commits meanwhile.
    ///
    /// # Errors
    /// [`EngineError`] if something cannot be written. The state before is kept then.
    pub fn make_durable(&mut self, environment: &Arc<Environment>) -> Result<()> {
        let pending = self.prepare(environment)?;
        environment.force_sync()?;
        self.install_unless_older(pending)
    }

    /// Takes hold of the present state. Nobody commits meanwhile.
    ///
    /// # Errors
    /// [`EngineError`] if it cannot be read.
    pub fn prepare(&self, environment: &Arc<Environment>) -> Result<PendingCheckpoint> {
        let kept = environment.read()?;
        let mut meta = vec![0; self.meta_bytes];
        let read = self.data.read_exact_at(&mut meta, 0);
        read.map_err(EngineError::io("the durable state cannot be written"))?;
        Ok(PendingCheckpoint { kept, meta })
    }

    /// Keeps a state instead of the one before, unless that one is newer. [`Environment::force_sync`] was called after
    /// it was prepared.
    ///
    /// # Errors
    /// [`EngineError`] if it cannot be written. The state before is kept then.
    pub fn install_unless_older(&mut self, pending: PendingCheckpoint) -> Result<()> {
        if pending.kept.version() < self.kept.version() {
            return Ok(());
        }
        let slot = Slot { number: self.number + 1, boot: self.boot, meta: pending.meta };
        let at = if slot.number.is_multiple_of(2) { 0 } else { SLOT_BYTES as u64 };
        let written = self.file.write_all_at(&slot.encode(), at).and_then(|()| self.file.sync_data());
        written.map_err(EngineError::io("the durable state cannot be written"))?;
        self.number = slot.number;
        self.kept = pending.kept;
        Ok(())
    }
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}
