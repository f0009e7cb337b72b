#![no_main]

use std::sync::Arc;

use h5live::{File, Options};
use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let storage = Arc::new(MemoryStorage::from(data.to_vec()));
    let Ok(file) = NativeFile::open_storage(storage, &OpenOptions::default()) else { return };
    let Ok(log) = LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(Log::default())) else { return };
    if let Ok(file) = File::with_store(Arc::new(log), "log", Options::default()) {
        h5live::fuzz::read_objects(&file);
    }
});
