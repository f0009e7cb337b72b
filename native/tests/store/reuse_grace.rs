//! When space that became unreachable is used again, and that no reader takes it for what it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use h5live_cache::MemoryStorage;
use h5live_model::{
    ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, Error, FilterSpec, Layout, LinkTarget, Name,
    NewObject, ObjectId, ObjectScope, PublishLevel, Shape, Sign, Store, StoreWriter, UNLIMITED,
};
use h5live_native::{AllowedReaders, Clock, Mode, NativeFile, OpenOptions};

/// Time that the test drives, by milliseconds.
#[derive(Clone, Default)]
struct Time(Arc<AtomicU64>);

impl Time {
    fn pass(&self, millis: u64) {
        self.0.fetch_add(millis, Relaxed);
    }

    fn clock(&self) -> Clock {
        let time = self.0.clone();
        Clock::new(move || Duration::from_millis(time.load(Relaxed)))
    }
}

/// A file in memory, its writer, and its time.
struct Live {
    storage: MemoryStorage,
    writer: NativeFile,
    time: Time,
}

impl Live {
    fn new(specs: &[(&str, DatasetSpec)]) -> Self {
        let (storage, time) = (MemoryStorage::new(), Time::default());
        let readers = AllowedReaders::H5live;
        let options = OpenOptions { mode: Mode::Create, clock: time.clock(), readers, ..OpenOptions::default() };
        let writer = NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap();
        for (name, spec) in specs {
            writer.create(&NewObject::linked(writer.session().root, &Name::from(*name), &spec.clone().into())).unwrap();
        }
        writer.start_swmr().unwrap();
        Live { storage, writer, time }
    }

    fn reader(&self) -> NativeFile {
        let options = OpenOptions { mode: Mode::SwmrRead, clock: self.time.clock(), ..OpenOptions::default() };
        NativeFile::open_storage(Arc::new(self.storage.clone()), &options).unwrap()
    }

    fn len(&self) -> u64 {
        h5live_cache::Storage::len(&self.storage).unwrap()
    }
}

fn object(file: &NativeFile, name: &str) -> ObjectId {
    match file.link(file.session().root, &Name::from(name)).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    }
}

fn dataset(file: &NativeFile, name: &str) -> Arc<dyn ChunkStore> {
    file.dataset(object(file, name)).unwrap()
}

/// Bytes in chunks of `chunk`, that grow along `unlimited` dimensions.
fn bytes(chunk: &[u64], unlimited: usize, filters: &[u16]) -> DatasetSpec {
    let max = (0..chunk.len()).map(|dim| if dim < unlimited { UNLIMITED } else { chunk[dim] });
    DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&vec![0; chunk.len()], &max.collect::<Vec<_>>()).unwrap()),
        layout: Layout::Chunked(chunk.to_vec()),
        filters: filters.iter().map(|id| FilterSpec { id: *id, ..FilterSpec::default() }).collect(),
        ..DatasetSpec::default()
    }
}

fn read(data: &Arc<dyn ChunkStore>, coord: &ChunkCoord) -> Result<Option<Vec<u8>>, Error> {
    let Some(chunk) = data.locate(coord)? else { return Ok(None) };
    let mut bytes = vec![0; chunk.size as usize];
    data.read(&chunk, 0, &mut bytes)?;
    Ok(Some(bytes))
}

#[test]
fn appends_to_two_unlimited_dimensions_cost_little_more_than_their_data() {
    let live = Live::new(&[("data", bytes(&[1, 4096], 2, &[]))]);
    let data = dataset(&live.writer, "data");
    let (appends, chunk) = (60_000, vec![7; 4096]);
    let before = live.len();
    for n in 0..appends {
        live.time.pass(1);
        data.write_whole_chunk(&ChunkCoord::new(&[n, 0]), 0, &chunk).unwrap();
        data.set_extent(&[n + 1, 4096]).unwrap();
        data.publish(PublishLevel::Visible).unwrap();
    }
    let growth = (live.len() - before) as f64 / (appends * 4096) as f64;
    println!("a minute of 1,000 appends per second: {growth:.3} times the data");
    assert!(growth < 1.3, "{growth}");
}

#[test]
fn a_chunk_that_was_replaced_is_looked_up_again() {
    let live = Live::new(&[("data", bytes(&[4096], 1, &[1])), ("other", bytes(&[4096], 1, &[1]))]);
    let (data, other) = (dataset(&live.writer, "data"), dataset(&live.writer, "other"));
    let at = ChunkCoord::new(&[0]);
    data.write_whole_chunk(&at, 0, &[1; 1000]).unwrap();
    data.set_extent(&[4096]).unwrap();
    live.writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let reader = live.reader();
    let seen = dataset(&reader, "data");
    let old = seen.locate(&at).unwrap().unwrap();
    data.write_whole_chunk(&at, 0, &[2; 1200]).unwrap();
    data.publish(PublishLevel::Visible).unwrap();
    live.time.pass(6000);
    other.write_whole_chunk(&at, 0, &[3; 1000]).unwrap();
    other.publish(PublishLevel::Visible).unwrap();
    let used_again = other.locate(&at).unwrap().unwrap();
    assert_eq!(used_again.file_offset, old.file_offset, "the test is about space that is used again");
    let moved = seen.read(&old, 0, &mut [0; 1000]);
    assert!(matches!(moved, Err(Error::Moved)), "{moved:?}");
    assert_eq!(read(&seen, &at).unwrap().unwrap(), [2; 1200]);
}

#[test]
fn a_reader_that_stalls_between_index_and_data_begins_again() {
    let live = Live::new(&[("data", bytes(&[1, 64], 2, &[]))]);
    let data = dataset(&live.writer, "data");
    let append = |n: u64| {
        data.write_whole_chunk(&ChunkCoord::new(&[n, 0]), 0, &[n as u8; 64]).unwrap();
        data.set_extent(&[n + 1, 64]).unwrap();
        data.publish(PublishLevel::Visible).unwrap();
    };
    append(0);
    let reader = live.reader();
    let seen = dataset(&reader, "data");
    for n in 1..3000 {
        append(n);
        live.time.pass(40);
        // Each time the nodes that the reader knows have long been used again.
        if n % 200 == 0 {
            for row in (0..=n).step_by(37) {
                assert_eq!(read(&seen, &ChunkCoord::new(&[row, 0])).unwrap().unwrap(), [row as u8; 64]);
            }
        }
    }
    let mut chunks = 0;
    seen.for_each_chunk(&mut |_| {
        chunks += 1;
        true
    })
    .unwrap();
    assert_eq!(chunks, 3000);
}

#[test]
fn a_deleted_dataset_is_found_to_be_no_more() {
    let live = Live::new(&[("data", bytes(&[16], 1, &[])), ("keep", bytes(&[16], 1, &[]))]);
    let data = dataset(&live.writer, "data");
    let at = ChunkCoord::new(&[0]);
    data.write_whole_chunk(&at, 0, &[1; 16]).unwrap();
    data.set_extent(&[16]).unwrap();
    live.writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let reader = live.reader();
    let seen = dataset(&reader, "data");
    assert_eq!(read(&seen, &at).unwrap().unwrap(), [1; 16]);
    let id = seen.id();
    live.writer.remove_link(live.writer.session().root, &Name::from("data")).unwrap();
    assert!(matches!(data.publish(PublishLevel::Visible), Ok(()) | Err(Error::NoObject(_))));
    assert!(matches!(live.writer.kind(id), Err(Error::NoObject(_))));
    assert_eq!(read(&seen, &at).unwrap().unwrap(), [1; 16], "not published yet");
    live.writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let end = live.len();
    live.time.pass(10_000);
    for n in 0..50 {
        let name = format!("new {n}");
        let spec = bytes(&[16], 1, &[]);
        live.writer.create(&NewObject::linked(live.writer.session().root, &Name::from(&*name), &spec.into())).unwrap();
        let new = dataset(&live.writer, &name);
        assert_ne!(new.id(), id, "no other object comes to be where readers look for the old one");
        new.write_whole_chunk(&at, 0, &[9; 16]).unwrap();
        new.set_extent(&[16]).unwrap();
        live.writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        live.time.pass(2000);
    }
    assert!(live.len() >= end);
    assert!(matches!(read(&seen, &at), Err(Error::NoObject(_))));
    assert!(matches!(reader.kind(id), Err(Error::NoObject(_))));
    assert_eq!(reader.link(reader.session().root, &Name::from("data")).unwrap(), None);
}

#[test]
fn space_within_dense_groups_is_used_again() {
    let live = Live::new(&[]);
    let root = live.writer.session().root;
    let churn = |rounds: u64| {
        for n in 0..rounds {
            let name = |n: u64| Name::from(&*format!("a link with a name of some length {n}"));
            live.writer.add_link(root, &name(n), &LinkTarget::Soft("/".into())).unwrap();
            if n >= 40 {
                live.writer.remove_link(root, &name(n - 40)).unwrap();
            }
            live.writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            live.time.pass(100);
        }
        for n in rounds.saturating_sub(40)..rounds {
            let name = Name::from(&*format!("a link with a name of some length {n}"));
            live.writer.remove_link(root, &name).unwrap();
        }
        live.writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        live.time.pass(10_000);
    };
    churn(300);
    let after_some = live.len();
    churn(1500);
    assert!(live.len() < after_some + (128 << 10), "{} after {after_some}", live.len());
}

/// Appends `appends` chunks of 4 KiB, from the row `from` on, with a flush each, 50 a second.
#[cfg(target_os = "linux")]
fn append(data: &Arc<dyn ChunkStore>, time: &Time, from: u64, appends: u64) {
    let chunk = vec![7; 4096];
    for n in from..from + appends {
        time.pass(20);
        data.write_whole_chunk(&ChunkCoord::new(&[n, 0]), 0, &chunk).unwrap();
        data.set_extent(&[n + 1, 4096]).unwrap();
        data.publish(PublishLevel::Visible).unwrap();
    }
}

/// How much longer the file gets by that, as a multiple of the data.
#[cfg(target_os = "linux")]
fn growth(path: &std::path::Path, mut appending: impl FnMut(u64)) -> f64 {
    let before = std::fs::metadata(path).unwrap().len();
    let appends = 4000;
    appending(appends);
    (std::fs::metadata(path).unwrap().len() - before) as f64 / (appends * 4096) as f64
}

/// A live file with a dataset of two unlimited dimensions, in a directory where the system tells who has it open.
#[cfg(target_os = "linux")]
fn live_file(directory: &std::path::Path, options: &OpenOptions) -> Option<(NativeFile, std::path::PathBuf)> {
    let path = directory.join("unread.h5");
    let writer = NativeFile::open(&path, &OpenOptions { mode: Mode::CreateNew, ..options.clone() }).unwrap();
    writer
        .create(&NewObject::linked(writer.session().root, &Name::from("data"), &bytes(&[1, 4096], 2, &[]).into()))
        .unwrap();
    writer.start_swmr().unwrap();
    use nix::sys::statfs;
    let known = [statfs::EXT4_SUPER_MAGIC, statfs::XFS_SUPER_MAGIC, statfs::BTRFS_SUPER_MAGIC, statfs::TMPFS_MAGIC];
    let is_known = known.contains(&statfs::statfs(directory).unwrap().filesystem_type());
    if !is_known {
        println!("skipped: this file system does not tell who has a file open");
    }
    is_known.then_some((writer, path))
}

#[cfg(target_os = "linux")]
#[test]
fn what_nobody_has_open_hardly_grows_by_its_index() {
    let (directory, time) = (tempfile::tempdir().unwrap(), Time::default());
    let options = OpenOptions { clock: time.clock(), ..OpenOptions::default() };
    let Some((writer, path)) = live_file(directory.path(), &options) else { return };
    let data = dataset(&writer, "data");
    let alone = growth(&path, |appends| append(&data, &time, 0, appends));
    assert!(alone < 1.1, "nobody reads: {alone}");

    let swmr = OpenOptions { mode: Mode::SwmrRead, ..OpenOptions::default() };
    let reader = NativeFile::open(&path, &swmr).unwrap();
    let read = growth(&path, |appends| append(&data, &time, 4000, appends));
    assert!(read > 1.5, "somebody may read what is freed: {read}");
    let seen = dataset(&reader, "data");
    seen.refresh().unwrap();
    assert_eq!(seen.locate(&ChunkCoord::new(&[7999, 0])).unwrap().unwrap().size, 4096);
    drop((seen, reader));

    let again = growth(&path, |appends| append(&data, &time, 8000, appends));
    assert!(again < 1.0, "what had to wait is used now: {again}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_flush_is_refused_while_more_rests_than_may_and_done_when_the_reader_has_gone() {
    let (directory, time) = (tempfile::tempdir().unwrap(), Time::default());
    let options = OpenOptions { clock: time.clock(), max_bytes_awaiting_no_readers: 100_000, ..OpenOptions::default() };
    let Some((writer, path)) = live_file(directory.path(), &options) else { return };
    let data = dataset(&writer, "data");
    let reader = std::fs::File::open(&path).unwrap();
    let write = |n: u64| {
        data.write_whole_chunk(&ChunkCoord::new(&[n, 0]), 0, &[7; 4096])?;
        data.set_extent(&[n + 1, 4096])?;
        data.publish(PublishLevel::Visible)
    };
    let refused = (0..1000).find_map(|n| write(n).err().map(|error| (n, error.to_string())));
    let (row, text) = refused.expect("an index that is copied for each row leaves more than that");
    assert!(text.contains("wait for") && text.contains("100000 bytes"), "{text}");
    assert!(data.publish(PublishLevel::Visible).is_err());
    drop(reader);
    data.publish(PublishLevel::Visible).unwrap();
    write(row + 1).unwrap();
    assert_eq!(data.spec().unwrap().dataspace.dims(), [row + 2, 4096]);
}

#[cfg(target_os = "linux")]
#[test]
fn datasets_that_come_and_go_leave_nothing_when_nobody_has_the_file_open() {
    let (directory, time) = (tempfile::tempdir().unwrap(), Time::default());
    let options = OpenOptions { clock: time.clock(), ..OpenOptions::default() };
    let Some((writer, path)) = live_file(directory.path(), &options) else { return };
    let root = writer.session().root;
    let come_and_go = |rounds: u64| {
        for _ in 0..rounds {
            writer.create(&NewObject::linked(root, &Name::from("x"), &bytes(&[16], 1, &[]).into())).unwrap();
            let new = dataset(&writer, "x");
            new.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &[1; 16]).unwrap();
            new.set_extent(&[16]).unwrap();
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            writer.remove_link(root, &Name::from("x")).unwrap();
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            time.pass(50);
        }
    };
    come_and_go(1000);
    let after_some = std::fs::metadata(&path).unwrap().len();
    come_and_go(5000);
    let len = std::fs::metadata(&path).unwrap().len();
    assert!(len <= after_some + (64 << 10), "{len} bytes, {after_some} after a thousand");
}

#[cfg(target_os = "linux")]
#[test]
fn the_next_session_gives_nobody_what_a_reader_of_the_last_one_may_follow() {
    let (directory, time) = (tempfile::tempdir().unwrap(), Time::default());
    let options = OpenOptions { clock: time.clock(), ..OpenOptions::default() };
    let Some((writer, path)) = live_file(directory.path(), &options) else { return };
    append(&dataset(&writer, "data"), &time, 0, 50);
    // A reader of libhdf5 that follows holds no lock.
    let reader = std::fs::File::open(&path).unwrap();
    drop(writer);
    let before = std::fs::read(&path).unwrap();
    let writer = NativeFile::open(&path, &OpenOptions { mode: Mode::Write, ..options.clone() }).unwrap();
    let data = dataset(&writer, "data");
    data.write_whole_chunk(&ChunkCoord::new(&[50, 0]), 0, &[9; 4096]).unwrap();
    data.set_extent(&[51, 4096]).unwrap();
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    time.pass(100_000);
    // Chunks that go, and new ones.
    data.set_extent(&[10, 4096]).unwrap();
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    for n in 10..60 {
        data.write_whole_chunk(&ChunkCoord::new(&[n, 0]), 0, &[9; 4096]).unwrap();
    }
    data.set_extent(&[60, 4096]).unwrap();
    drop((data, writer));
    let after = std::fs::read(&path).unwrap();
    let rows = before.chunks(4096).zip(after.chunks(4096)).filter(|(before, _)| before == &[7; 4096]);
    let (kept, lost): (Vec<_>, Vec<_>) = rows.partition(|(before, after)| before == after);
    assert_eq!((kept.len(), lost.len()), (50, 0), "raw data of the live session");
    drop(reader);
}

#[cfg(target_os = "linux")]
#[test]
fn space_rests_where_readers_may_be_unseen() {
    let directory = tempfile::tempdir().unwrap();
    let time = Time::default();
    let unseen = OpenOptions { clock: time.clock(), reuse_when_exclusive: false, ..OpenOptions::default() };
    let Some((writer, path)) = live_file(directory.path(), &unseen) else { return };
    let data = dataset(&writer, "data");
    let unseen = growth(&path, |appends| append(&data, &time, 0, appends));
    assert!(unseen > 1.5, "readers may be unseen: {unseen}");
}
