//! Files whose storage fails, or is slow.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fmt, io, thread};

use h5live::{File, Options};
use h5live_cache::{Failure, FaultyStorage, Storage};
use h5live_swmr::{Mode, NativeFile, OpenOptions, Through};

use crate::error::{Error, Result};
use crate::stress::rule::mix;

/// What a storage does to its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// From the change with this number on, nothing is written: the medium is full.
    Full(u64),
    /// From the change with this number on, nothing is written: the medium is broken.
    Broken(u64),
    /// The change with this number is written in part, up to the end of a page, and nothing after it.
    Page(u64),
    /// The change with this number is written in part; what comes after it is written.
    Short(u64),
    /// Some writes take a while.
    Slow,
}

impl Fault {
    /// A fault drawn by a random number.
    pub fn draw(random: u64) -> Fault {
        let at = (random >> 8) % 200;
        match random % 5 {
            0 => Fault::Full(at),
            1 => Fault::Broken(at),
            2 => Fault::Page(at),
            3 => Fault::Short(at),
            _ => Fault::Slow,
        }
    }

    /// Whether the writer is told of it.
    pub fn is_error(self) -> bool {
        self != Fault::Slow
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Full(at) => write!(f, "full:{at}"),
            Fault::Broken(at) => write!(f, "broken:{at}"),
            Fault::Page(at) => write!(f, "page:{at}"),
            Fault::Short(at) => write!(f, "short:{at}"),
            Fault::Slow => f.write_str("slow"),
        }
    }
}

/// A fault as [`Fault`] writes it.
///
/// # Errors
/// A message for the command line.
pub fn parse(text: &str) -> Result<Fault, &'static str> {
    let (word, at) = text.split_once(':').unwrap_or((text, "0"));
    let at = at.parse().map_err(|_| "the number of a change")?;
    match word {
        "full" => Ok(Fault::Full(at)),
        "broken" => Ok(Fault::Broken(at)),
        "page" => Ok(Fault::Page(at)),
        "short" => Ok(Fault::Short(at)),
        "slow" => Ok(Fault::Slow),
        _ => Err("full, broken, page or short, with the number of a change, or slow"),
    }
}

/// Opens a file to write it live on a storage with a fault.
///
/// # Errors
/// If the file cannot be opened.
pub fn open(path: &Path, fault: Fault) -> Result<File> {
    let through = Through::new(move |inner| {
        let storage = FaultyStorage::new(Slow { inner, slow: fault == Fault::Slow, turn: 1.into() });
        match fault {
            Fault::Full(at) => storage.fail_after(at, Failure::Full, true),
            Fault::Broken(at) => storage.fail_after(at, Failure::Broken, true),
            Fault::Page(at) => storage.fail_after(at, Failure::Short(4096), true),
            Fault::Short(at) => storage.fail_after(at, Failure::Short(100), false),
            Fault::Slow => {}
        }
        Arc::new(storage)
    });
    let options = OpenOptions { mode: Mode::SwmrWrite, through, ..OpenOptions::default() };
    let store = NativeFile::open(path, &options);
    let store =
        store.map_err(|error| Error::Store { file: path.to_owned(), path: "/".into(), source: error.into() })?;
    Ok(File::with_store(Arc::new(store), &path.display().to_string(), Options::default()))
}

/// A storage some of whose writes take a while.
#[derive(Debug)]
struct Slow<S> {
    inner: S,
    slow: bool,
    turn: AtomicU64,
}

impl<S: Storage> Storage for Slow<S> {
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
            let fault = Fault::draw(mix(random));
            assert_eq!(parse(&fault.to_string()), Ok(fault));
        }
        assert!(parse("full:x").is_err() && parse("empty").is_err());
    }
}
