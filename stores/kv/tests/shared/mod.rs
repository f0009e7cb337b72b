//! What tests of several stores share.
#![allow(dead_code, reason = "each test uses some of it")]

mod request;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_kv::KvStore;
use h5live_model::conformance::StoreFixture;
use h5live_model::{Mode, Store};

pub use self::request::request;

/// Bytes from hexadecimal digits with spaces, and text in quotes.
pub fn hex_bytes(text: &str) -> Vec<u8> {
    let mut found = Vec::new();
    for (at, part) in text.split('"').enumerate() {
        if at % 2 == 1 {
            found.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: String = part.split_whitespace().collect();
        assert!(digits.len().is_multiple_of(2), "{text}");
        found.extend((0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()));
    }
    found
}

/// A number that no other session of this process has.
pub fn session_number() -> u64 {
    static OPENED: AtomicU64 = AtomicU64::new(1);
    OPENED.fetch_add(1, Ordering::Relaxed)
}

/// Stores of a test, one after the other, in places with names of their own.
pub struct StoreLab<F> {
    made: AtomicU64,
    /// Opens the store of a name.
    open: F,
}

impl<F: Fn(&str, Mode) -> KvStore> StoreLab<F> {
    /// Stores that `open` opens.
    pub fn new(open: F) -> Self {
        StoreLab { made: AtomicU64::new(0), open }
    }

    /// A further session on the last store.
    pub fn open(&self, mode: Mode) -> KvStore {
        (self.open)(&format!("{}.kv", self.made.load(Ordering::Relaxed)), mode)
    }
}

impl<F: Fn(&str, Mode) -> KvStore> StoreFixture for StoreLab<F> {
    type Store = KvStore;

    fn create(&self) -> KvStore {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.open(Mode::CreateNew)
    }

    fn reopen(&self, closed: KvStore) -> KvStore {
        closed.close().unwrap();
        drop(closed);
        self.open(Mode::Write)
    }

    fn open_reader(&self, _: &KvStore) -> Option<KvStore> {
        Some(self.open(Mode::SwmrRead))
    }
}

/// Stores in a folder that ends with them.
pub fn folder_lab(open: impl Fn(&Path, Mode) -> KvStore) -> StoreLab<impl Fn(&str, Mode) -> KvStore> {
    let folder = tempfile::tempdir().unwrap();
    StoreLab::new(move |name: &str, mode| open(&folder.path().join(name), mode))
}
