//! A writer that has joined, and whose disk is full for a while.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use h5live_log::LogStore;
use h5live_log::local_multi_writer_files::{subfile_folder, subfile_path};
use h5live_model::{Mode, ObjectScope, PublishLevel, Store};
use h5live_native::{NativeConnector, NativeFile, OpenOptions, Storage};

use super::appends::{append, rows, values};
use super::files::{SteppedFiles, create, dataset, files_with_patience, join, read, request};

/// A file on a disk that may be full.
#[derive(Debug)]
struct FullDisk {
    file: File,
    is_full: AtomicBool,
}

impl FullDisk {
    fn check(&self) -> io::Result<()> {
        if self.is_full.load(Ordering::Acquire) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Storage for FullDisk {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.file.read_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.check()?;
        self.file.write_all_at(bytes, at)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// A writer that joins with the second subfile, and its disk.
fn join_on_full_disk(main: &Path) -> (LogStore, Arc<FullDisk>) {
    let file = File::options().create(true).truncate(true).read(true).write(true).open(subfile_path(main, 2)).unwrap();
    let disk = Arc::new(FullDisk { file, is_full: AtomicBool::new(false) });
    let own = disk.clone();
    let step = move |number: u32, mode: Mode, stays_live: bool| -> Option<Arc<dyn Store>> {
        let options = OpenOptions { mode, leaves_live: stays_live, ..OpenOptions::default() };
        let is_own = number == 2 && mode.writes();
        is_own.then(|| Arc::new(NativeFile::open_storage(own.clone(), &options).unwrap()) as Arc<dyn Store>)
    };
    let files =
        SteppedFiles { files: files_with_patience(main, NativeConnector, Duration::ZERO), step: Box::new(step) };
    (LogStore::join_as_writer(Arc::new(files), false, request()).unwrap(), disk)
}

/// The rows of a flush that has failed have their places already: no other writer gets these.
#[test]
fn rows_whose_flush_has_failed_are_written_over_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let files = files_with_patience(&main, NativeConnector, Duration::ZERO);
    let first = LogStore::join_as_writer(files, true, request()).unwrap();
    create(&first, "rows", 0);
    first.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let (second, disk) = join_on_full_disk(&main);
    let [data, other] = [&second, &first].map(|writer| dataset(writer, "rows").unwrap());
    append(&*data, 0, &[1, 2, 3]);
    disk.is_full.store(true, Ordering::Release);
    data.publish(PublishLevel::Visible).unwrap_err();
    append(&*other, 0, &[11, 12]);
    let refused = other.publish(PublishLevel::Visible).unwrap_err().to_string();
    assert!(refused.contains("another writer has had its turn"), "{refused}");
    // So it is when the next flush fails, too, before newer rows have their places.
    disk.is_full.store(false, Ordering::Release);
    append(&*data, rows(&*data), &[4]);
    let order = File::options().read(true).write(true).open(subfile_folder(&main).join("run.h5.order")).unwrap();
    order.lock().unwrap();
    data.publish(PublishLevel::Visible).unwrap_err();
    drop(order);
    other.publish(PublishLevel::Visible).unwrap_err();
    data.publish(PublishLevel::Visible).unwrap();
    other.publish(PublishLevel::Visible).unwrap();
    let follower = read(&main, Mode::SwmrRead);
    assert_eq!(values(&*dataset(&follower, "rows").unwrap()), [1, 2, 3, 4, 11, 12]);
}

/// A writer that ends, though its disk is full, keeps no other one from appending.
#[test]
fn a_writer_that_ends_with_a_full_disk_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let first = join(&main, true);
    create(&first, "rows", 0);
    first.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let (second, disk) = join_on_full_disk(&main);
    let data = dataset(&second, "rows").unwrap();
    append(&*data, 0, &[1, 2, 3]);
    disk.is_full.store(true, Ordering::Release);
    data.publish(PublishLevel::Visible).unwrap_err();
    second.close().unwrap_err();
    let other = dataset(&first, "rows").unwrap();
    append(&*other, 0, &[11, 12]);
    other.publish(PublishLevel::Visible).unwrap();
    let follower = read(&main, Mode::SwmrRead);
    assert_eq!(values(&*dataset(&follower, "rows").unwrap()), [11, 12]);
}
