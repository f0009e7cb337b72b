//! Files whose storage fails, or is slow.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fmt, io, thread};

use h5live::{File, Options};
use h5live_cache::{FaultyStorage, InjectedFailure, Storage};
use h5live_native::{Mode, NativeFile, OpenOptions, StorageWrapper};

use crate::stress::rule::mix;
use h5live_cli::error::{Error, Result};

/// The fault of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageFault {
    /// From the change with this number on, nothing is written: the medium is full.
    Full(u64),
    /// From the change with this number on, nothing is written: the medium is broken.
    Broken(u64),
    /// The change with this number is written in part, up to the end of a page, and nothing after it.
    Page(u64),
    /// The change with this number is written in part; later changes are written.
    Short(u64),
    /// Some writes take a while.
    Slow,
}

impl StorageFault {
    /// A fault drawn by a random number.
    pub fn draw(random: u64) -> StorageFault {
        let at = (random >> 8) % 200;
        match random % 5 {
            0 => StorageFault::Full(at),
            1 => StorageFault::Broken(at),
            2 => StorageFault::Page(at),
            3 => StorageFault::Short(at),
            _ => StorageFault::Slow,
        }
    }

    /// Whether the writer gets an error.
    pub fn is_error(self) -> bool {
        self != StorageFault::Slow
    }
}

impl fmt::Display for StorageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageFault::Full(at) => write!(f, "full:{at}"),
            StorageFault::Broken(at) => write!(f, "broken:{at}"),
            StorageFault::Page(at) => write!(f, "page:{at}"),
            StorageFault::Short(at) => write!(f, "short:{at}"),
            StorageFault::Slow => f.write_str("slow"),
        }
    }
}

/// A fault as [`StorageFault`] writes it.
///
/// # Errors
/// A message for the command line.
pub fn parse(text: &str) -> Result<StorageFault, &'static str> {
    let (word, at) = text.split_once(':').unwrap_or((text, "0"));
    let at = at.parse().map_err(|_| "this does not end with the number of a change")?;
    match word {
        "full" => Ok(StorageFault::Full(at)),
        "broken" => Ok(StorageFault::Broken(at)),
        "page" => Ok(StorageFault::Page(at)),
        "short" => Ok(StorageFault::Short(at)),
        "slow" => Ok(StorageFault::Slow),
        _ => Err("allowed are full, broken, page and short, each with the number of a change, and slow"),
    }
}

/// Opens a file to write it live on a storage with a fault.
///
/// # Errors
/// If the file cannot be opened.
pub fn open(path: &Path, fault: StorageFault) -> Result<File> {
    let through = StorageWrapper::new(move |inner| {
        let storage = FaultyStorage::new(SlowStorage { inner, slow: fault == StorageFault::Slow, turn: 1.into() });
        match fault {
            StorageFault::Full(at) => storage.fail_after(at, InjectedFailure::StorageFull, true),
            StorageFault::Broken(at) => storage.fail_after(at, InjectedFailure::Broken, true),
            StorageFault::Page(at) => storage.fail_after(at, InjectedFailure::PartialWrite(4096), true),
            StorageFault::Short(at) => storage.fail_after(at, InjectedFailure::PartialWrite(100), false),
            StorageFault::Slow => {}
        }
        Arc::new(storage)
    });
    let options = OpenOptions { mode: Mode::SwmrWrite, existing_file_write_wrapper: through, ..OpenOptions::default() };
    let store = NativeFile::open(path, &options);
    let store =
        store.map_err(|error| Error::Store { file: path.to_owned(), path: "/".into(), source: error.into() })?;
    Ok(File::with_store(Arc::new(store), &path.display().to_string(), Options::default())?)
}

/// A storage with some slow writes.
#[derive(Debug)]
struct SlowStorage<S> {
    inner: S,
    slow: bool,
    turn: AtomicU64,
}

impl<S: Storage> Storage for SlowStorage<S> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.inner.read_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let random = mix(self.turn.fetch_add(1, Ordering::Relaxed));
        if self.slow && random.is_multiple_of(8) {
            thread::sleep(Duration::from_micros(random >> 32 & 0xFFF));
        }
        self.inner.write_at(bytes, at)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn close(&self) {
        self.inner.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_survives_the_command_line() {
        for random in 0..200 {
            let fault = StorageFault::draw(mix(random));
            assert_eq!(parse(&fault.to_string()), Ok(fault));
        }
        assert!(parse("full:x").is_err() && parse("empty").is_err());
    }
}
