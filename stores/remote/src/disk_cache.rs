//! Blocks of objects that are kept in a folder, for later sessions and other processes.
//!
//! Below the folder, an object has a folder of its own, by a hash of its name. In it, a file holds a block of one state of
//! the object: its name is a hash of the tag, the size and the length of blocks, and the number of the block. A file is
//! written under another name and renamed. It begins with a checksum over its name and its bytes: one that is damaged counts
//! as missing, and is written anew.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use h5live_objects::ObjectMeta;
use parking_lot::Mutex;

/// What each file begins with.
const MAGIC: &[u8; 8] = b"h5lblk\x00\x01";
/// Bytes of a file before those of the block.
const HEADER_BYTES: usize = MAGIC.len() + blake3::OUT_LEN;
/// How often a folder is made again that another process has removed.
const MAX_FOLDER_ROUNDS: u32 = 16;
/// After writing this part of its size, a session looks for what others have written.
const SCAN_PART: u64 = 16;

/// The number of the next file that is being written.
static NEXT_TEMP: AtomicU64 = AtomicU64::new(0);

/// Blocks of one state of an object in a folder.
#[derive(Debug)]
pub struct ObjectVersionDiskCache {
    folder: PathBuf,
    /// The folder of the object.
    object: PathBuf,
    /// What the names of the blocks of this state begin with.
    state: String,
    block_bytes: u64,
    size: u64,
    max_cache_bytes: u64,
    room: Mutex<CacheRoom>,
}

/// How full the folder is, as far as this session knows.
#[derive(Debug, Default)]
struct CacheRoom {
    /// Bytes of files at the last look; `None` before the first one.
    known: Option<u64>,
    /// Bytes that this session has written since then.
    written: u64,
}

/// A file of the folder.
struct CacheFile {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// The folder of blocks of an object, before it is known which state the object is in.
#[derive(Debug)]
pub struct ObjectCacheFolder {
    folder: PathBuf,
    object: PathBuf,
    max_cache_bytes: u64,
}

impl ObjectCacheFolder {
    /// That of an object with this name, in a folder that is made if it is not there. Only its owner can read a new folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(cache_folder: &Path, object: &str, max_cache_bytes: u64) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(cache_folder)?;
        let name = blake3::hash(object.as_bytes()).to_hex();
        Ok(ObjectCacheFolder {
            folder: cache_folder.to_owned(),
            object: cache_folder.join(&name[..32]),
            max_cache_bytes,
        })
    }

    /// Whether blocks of some state of the object may be there.
    pub fn may_have_blocks(&self) -> bool {
        self.object.is_dir()
    }

    /// The blocks of a state of the object; `None` if the object store does not tell states apart by their bytes.
    pub fn into_disk_cache(self, meta: &ObjectMeta, block_bytes: u64) -> Option<ObjectVersionDiskCache> {
        let etag = meta.tag.etag().filter(|etag| !etag.starts_with("W/"))?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&meta.size.to_le_bytes()).update(&block_bytes.to_le_bytes()).update(etag.as_bytes());
        let state = hasher.finalize().to_hex()[..32].to_owned();
        let ObjectCacheFolder { folder, object, max_cache_bytes } = self;
        Some(ObjectVersionDiskCache {
            folder,
            object,
            state,
            block_bytes,
            size: meta.size,
            max_cache_bytes,
            room: Mutex::default(),
        })
    }
}

impl ObjectVersionDiskCache {
    fn block_len(&self, block: u64) -> u64 {
        self.size.saturating_sub(block.saturating_mul(self.block_bytes)).min(self.block_bytes)
    }

    fn name(&self, block: u64) -> String {
        format!("{}-{block:x}", self.state)
    }

    fn checksum(&self, block: u64, bytes: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.name(block).as_bytes()).update(bytes);
        hasher.finalize()
    }

    /// Whether a block is there, damaged or not.
    pub fn has_block_file(&self, block: u64) -> bool {
        self.object.join(self.name(block)).is_file()
    }

    /// A block; `None` if it is not there, or is damaged.
    pub fn read_block(&self, block: u64) -> Option<Vec<u8>> {
        let len = usize::try_from(self.block_len(block)).ok().filter(|len| *len > 0)?;
        let mut file = File::open(self.object.join(self.name(block))).ok()?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + len);
        (&mut file).take((HEADER_BYTES + len) as u64 + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() != HEADER_BYTES + len || !bytes.starts_with(MAGIC) {
            return None;
        }
        let found = bytes.split_off(HEADER_BYTES);
        let stated = bytes.get(MAGIC.len()..)?;
        if self.checksum(block, &found).as_bytes().as_slice() != stated {
            return None;
        }
        // What was used last is deleted last. It is no loss if the system does not allow it.
        let _ = file.set_modified(SystemTime::now());
        Some(found)
    }

    /// The bytes of a range within the object, if all of its blocks are there.
    pub fn read_range(&self, start: u64, end: u64) -> Option<Vec<u8>> {
        let blocks = start / self.block_bytes..end.div_ceil(self.block_bytes);
        if !blocks.clone().all(|block| self.has_block_file(block)) {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(end - start).ok()?);
        for block in blocks {
            let (found, begin) = (self.read_block(block)?, block * self.block_bytes);
            let (from, to) = (start.saturating_sub(begin), (end - begin).min(self.block_bytes));
            bytes.extend_from_slice(found.get(from as usize..to as usize)?);
        }
        Some(bytes)
    }

    /// The blocks around a range.
    pub fn block_aligned_range(&self, start: u64, end: u64) -> (u64, u64) {
        let end = end.div_ceil(self.block_bytes).saturating_mul(self.block_bytes).min(self.size);
        (start / self.block_bytes * self.block_bytes, end)
    }

    /// Keeps the blocks that lie within bytes of the object, from `at` on. What cannot be kept is left out.
    pub fn store_whole_blocks(&self, at: u64, bytes: &[u8]) {
        let end = at.saturating_add(bytes.len() as u64);
        for block in at.div_ceil(self.block_bytes)..end.div_ceil(self.block_bytes) {
            let from = block * self.block_bytes;
            let to = from + self.block_len(block);
            let part = bytes.get((from - at) as usize..).and_then(|rest| rest.get(..(to - from) as usize));
            if let Some(part) = part.filter(|part| !part.is_empty()) {
                // The cache is a help, not a promise: a full disk must not end a read.
                let _ = self.write(block, part);
            }
        }
    }

    fn write(&self, block: u64, bytes: &[u8]) -> io::Result<()> {
        let file_bytes = (HEADER_BYTES + bytes.len()) as u64;
        if file_bytes > self.max_cache_bytes {
            return Ok(());
        }
        self.make_room(file_bytes);
        let number = NEXT_TEMP.fetch_add(1, Ordering::Relaxed);
        let temp = self.object.join(format!(".{}-{number}", std::process::id()));
        let checksum = self.checksum(block, bytes);
        for _ in 0..MAX_FOLDER_ROUNDS {
            let written = File::create(&temp).and_then(|mut file| {
                file.write_all(MAGIC)?;
                file.write_all(checksum.as_bytes())?;
                file.write_all(bytes)?;
                drop(file);
                fs::rename(&temp, self.object.join(self.name(block)))
            });
            match written {
                Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(&self.object)?,
                Err(error) => {
                    let _ = fs::remove_file(&temp);
                    return Err(error);
                }
                Ok(()) => {
                    self.room.lock().written += file_bytes;
                    return Ok(());
                }
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Deletes files that were not used for the longest time, if so many bytes more do not fit. What other processes write is
    /// seen after a part of the size was written.
    fn make_room(&self, more: u64) {
        let mut room = self.room.lock();
        let is_known = |known: u64| {
            known.saturating_add(room.written).saturating_add(more) <= self.max_cache_bytes
                && room.written < self.max_cache_bytes / SCAN_PART
        };
        if room.known.is_some_and(is_known) {
            return;
        }
        let mut files = cache_files(&self.folder);
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        if total.saturating_add(more) > self.max_cache_bytes {
            files.sort_by_key(|file| file.used);
            // Some room more, so that not each block needs a look.
            let wanted = (self.max_cache_bytes - self.max_cache_bytes / SCAN_PART).saturating_sub(more);
            for file in files {
                if total <= wanted {
                    break;
                }
                if fs::remove_file(&file.path).is_ok() {
                    total = total.saturating_sub(file.bytes);
                }
                if let Some(folder) = file.path.parent() {
                    // If it is empty.
                    let _ = fs::remove_dir(folder);
                }
            }
        }
        *room = CacheRoom { known: Some(total), written: 0 };
    }
}

/// Whether a folder is one of an object: other folders are left alone.
fn is_object_folder(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// All files of the cache.
fn cache_files(folder: &Path) -> Vec<CacheFile> {
    let objects = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let entries =
        objects.filter(|path| is_object_folder(path)).flat_map(|path| fs::read_dir(path).into_iter().flatten());
    let file = |entry: fs::DirEntry| {
        let stat = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let used = stat.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(CacheFile { path: entry.path(), bytes: stat.len(), used })
    };
    entries.flatten().filter_map(file).collect()
}
