//! What other processes see, and in which order: looked at after every single write of the writer.

use std::sync::Arc;
use std::time::Duration;

use h5live::model::memory::MemoryStore;
use h5live::{Dataset, ErrorKind, File, Options, PublishInterval, SwmrInvariant};
use h5live_cache::{
    DependencyKind, DependencyKinds, FaultyStorage, InjectedFailure, MemoryStorage, RecordingStorage, StorageOp,
    replay_operations,
};
use h5live_native::{Mode, NativeFile, OpenOptions};

type Recording = RecordingStorage<MemoryStorage>;

/// A new file in memory of which every write is recorded.
fn recorded(options: Options, trial: impl FnOnce(&mut OpenOptions)) -> (Recording, File) {
    let storage = RecordingStorage::new(MemoryStorage::default());
    let mut native = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
    trial(&mut native);
    let store = NativeFile::open_storage(Arc::new(storage.clone()), &native).unwrap();
    (storage, File::with_store(Arc::new(store), "recorded", options.create()).unwrap())
}

/// Calls `look` with the file as it is after each write since the first `Mark`.
fn at_each_write(recording: &Recording, mut look: impl FnMut(&File)) {
    let (mut image, mut live) = (Vec::new(), false);
    for operation in recording.log() {
        live |= matches!(operation, StorageOp::Mark(_));
        replay_operations(&mut image, [&operation]).unwrap();
        if live && !matches!(operation, StorageOp::Sync) {
            look(&File::options().swmr_read().open_image(image.clone()).unwrap());
        }
    }
    assert!(live);
}

fn rows(file: &File, name: &str) -> u64 {
    let dataset = file.dataset(name).unwrap();
    let values = dataset.read::<u32>().unwrap();
    assert!(values.iter().copied().eq(1..=values.len() as u32), "{name}: {values:?}");
    values.len() as u64
}

fn create(file: &File, name: &str, filtered: bool) -> Dataset {
    let builder = file.new_dataset::<u32>().unlimited_rows(&[]).chunk_shape(&[if filtered { 2 } else { 8 }]);
    if filtered { builder.deflate(1).create(name).unwrap() } else { builder.create(name).unwrap() }
}

fn append(dataset: &Dataset, rows: u32) {
    let before = dataset.shape().unwrap()[0] as u32;
    dataset.append(&(before + 1..=before + rows).collect::<Vec<_>>()).unwrap();
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Appends to three datasets that are published one after the other, and flushes now one, now all of them.
fn write_in_order(seed: u64, trial: impl FnOnce(&mut OpenOptions)) -> Recording {
    let (recording, file) = recorded(File::options(), trial);
    let [frames, times, index] = ["frames", "times", "index"].map(|name| create(&file, name, name == "frames"));
    // An order in which the later ones are opened first.
    index.publish_after(&times).unwrap();
    times.publish_after(&frames).unwrap();
    file.start_swmr().unwrap();
    recording.log_mark("live");
    let mut random = Random(seed);
    for _ in 0..60 {
        let count = 1 + random.below(3) as u32;
        [&frames, &times, &index].into_iter().for_each(|dataset| append(dataset, count));
        match random.below(6) {
            0 => file.flush().unwrap(),
            1 => index.flush().unwrap(),
            2 => times.flush().unwrap(),
            3 => frames.flush().unwrap(),
            _ => {}
        }
    }
    recording
}

#[test]
fn rows_are_never_seen_before_those_that_they_are_published_after() {
    for seed in 1..=4 {
        println!("seed {seed}");
        at_each_write(&write_in_order(seed, |_| {}), |file| {
            let [frames, times, index] = ["frames", "times", "index"].map(|name| rows(file, name));
            assert!(index <= times && times <= frames, "{frames} frames, {times} times, {index} entries");
        });
    }
}

#[test]
fn without_its_flush_dependencies_the_order_is_broken() {
    let recording = write_in_order(1, |options| {
        options.mutant.cache.violated_edges = DependencyKinds::only(DependencyKind::PublishAfter)
    });
    let mut broken = false;
    at_each_write(&recording, |file| broken |= rows(file, "times") > rows(file, "frames"));
    assert!(broken);
}

#[test]
fn circles_of_publishing_and_other_files_are_refused() {
    let file = File::in_memory();
    let [a, b, c] = ["a", "b", "c"].map(|name| create(&file, name, false));
    b.publish_after(&a).unwrap();
    c.publish_after(&b).unwrap();
    c.publish_after(&b).unwrap();
    for (later, earlier) in [(&a, &c), (&a, &b), (&a, &a)] {
        assert!(matches!(later.publish_after(earlier).unwrap_err().kind(), ErrorKind::InvalidPublishOrder(_)));
    }
    let other = create(&File::in_memory(), "other", false);
    assert!(matches!(a.publish_after(&other).unwrap_err().kind(), ErrorKind::InvalidPublishOrder(_)));
    assert!(matches!(
        file.transaction(|tx| tx.append(&other, &[1u32])).unwrap_err().kind(),
        ErrorKind::InvalidPublishOrder(_)
    ));
}

#[test]
fn an_extent_that_shrinks_and_grows_at_once_is_seen_with_what_is_written_there() {
    let values =
        |rows: u64, columns: u64| (0..rows).flat_map(move |row| (0..columns).map(move |column| 1 + row * 100 + column));
    for filtered in [false, true] {
        let (recording, file) = recorded(File::options(), |_| {});
        let builder = file.new_dataset::<u64>().shape(&[5, 9]).max_shape(&[20, 20]).chunk_shape(&[4, 4]);
        let grid = if filtered { builder.deflate(1) } else { builder }.create("grid").unwrap();
        grid.write(&values(5, 9).collect::<Vec<_>>()).unwrap();
        file.start_swmr().unwrap();
        recording.log_mark("live");
        for dims in [[11, 3], [2, 10], [2, 3], [9, 9], [3, 11]] {
            grid.resize(&dims).unwrap();
            grid.write(&values(dims[0], dims[1]).collect::<Vec<_>>()).unwrap();
            file.flush().unwrap();
            assert_eq!(grid.shape().unwrap(), dims);
        }
        file.close().unwrap();
        at_each_write(&recording, |file| {
            let grid = file.dataset("grid").unwrap();
            let dims = grid.shape().unwrap();
            assert!(grid.read::<u64>().unwrap().into_iter().eq(values(dims[0], dims[1])), "{dims:?}");
        });
    }
}

#[test]
fn rows_into_a_chunk_that_is_there_are_published_by_two_writes() {
    let (recording, file) = recorded(File::options(), |_| {});
    let data = create(&file, "data", false);
    file.start_swmr().unwrap();
    append(&data, 1);
    data.flush().unwrap();
    recording.log_mark("live");
    let mut writes = Vec::new();
    for _ in 0..9 {
        let before = recording.log().len();
        append(&data, 1);
        data.flush().unwrap();
        writes.push(recording.log().len() - before);
    }
    let short = writes.iter().filter(|writes| **writes == 2).count();
    // All but the ninth row, which begins a chunk.
    assert_eq!((short, writes.iter().max() > Some(&2)), (8, true), "{writes:?}");
    let mut seen = Vec::new();
    at_each_write(&recording, |file| seen.push(rows(file, "data")));
    assert!(seen.is_sorted() && seen.last() == Some(&10), "{seen:?}");
    assert_eq!(data.read::<u32>().unwrap(), (1..=10).collect::<Vec<_>>());
    // What is written over rows that readers see goes the long way.
    data.write_slice(9..10, &[10u32]).unwrap();
    data.append(&[11u32]).unwrap();
    data.flush().unwrap();
    file.close().unwrap();
    let mut image = Vec::new();
    replay_operations(&mut image, &recording.log()).unwrap();
    assert_eq!(rows(&File::options().open_image(image).unwrap(), "data"), 11);
}

#[test]
fn rows_are_not_lost_when_a_short_write_fails() {
    for at in 0..2 {
        let storage = FaultyStorage::new(RecordingStorage::new(MemoryStorage::default()));
        let native = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
        let store = NativeFile::open_storage(Arc::new(storage.clone()), &native).unwrap();
        let file = File::with_store(Arc::new(store), "faulty", File::options().create()).unwrap();
        let data = create(&file, "data", false);
        file.start_swmr().unwrap();
        append(&data, 2);
        data.flush().unwrap();
        storage.inner().log_mark("live");
        storage.fail_after(at, InjectedFailure::PartialWrite(3), false);
        append(&data, 2);
        assert!(data.flush().is_err(), "the write {at} fails");
        append(&data, 1);
        data.flush().unwrap();
        assert_eq!(rows(&file, "data"), 5);
        let mut image = Vec::new();
        replay_operations(&mut image, &storage.inner().log()).unwrap();
        assert_eq!(rows(&File::options().swmr_read().open_image(image).unwrap(), "data"), 5, "after the write {at}");
    }
}

/// Transactions that append to frames, to times, and to frames again.
fn write_transactions(trial: impl FnOnce(&mut OpenOptions)) -> Recording {
    let (recording, file) = recorded(File::options(), trial);
    let [frames, times] = ["frames", "times"].map(|name| create(&file, name, name == "frames"));
    file.start_swmr().unwrap();
    recording.log_mark("live");
    for n in 0..20u32 {
        let append = file.transaction(|tx| {
            tx.append(&frames, &[2 * n + 1])?;
            tx.append(&times, &[n + 1])?;
            tx.append(&frames, &[2 * n + 2])
        });
        append.unwrap();
    }
    recording
}

fn is_a_beginning(file: &File) -> bool {
    let (frames, times) = (rows(file, "frames"), rows(file, "times"));
    times == frames / 2 || times == frames.div_ceil(2)
}

#[test]
fn a_transaction_is_seen_in_the_order_of_its_appends() {
    let mut states = 0;
    at_each_write(&write_transactions(|_| {}), |file| {
        assert!(is_a_beginning(file), "{} frames, {} times", rows(file, "frames"), rows(file, "times"));
        states += 1;
    });
    assert!(states > 60);
    let disabled = |options: &mut OpenOptions| {
        options.mutant.cache.violated_edges = DependencyKinds::only(DependencyKind::PublishAfter)
    };
    let mut broken = false;
    at_each_write(&write_transactions(disabled), |file| broken |= !is_a_beginning(file));
    assert!(broken, "it is the flush dependencies that keep the order");
}

#[test]
fn a_transaction_that_fails_appends_nothing() {
    let file = File::in_memory();
    let [frames, times] = ["frames", "times"].map(|name| create(&file, name, false));
    let pairs = file.new_dataset::<u32>().unlimited_rows(&[2]).create("pairs").unwrap();
    let failed = file.transaction(|tx| {
        tx.append(&frames, &[1u32])?;
        tx.append(&times, &[1u32])?;
        tx.append(&pairs, &[1u32, 2, 3])
    });
    assert!(matches!(failed.unwrap_err().kind(), ErrorKind::NotWholeRows { row: 2, values: 3 }));
    assert_eq!([frames, times, pairs].map(|dataset| dataset.shape().unwrap()[0]), [0, 0, 0]);
}

#[test]
fn the_counter_counts_only_what_is_there() {
    let (recording, file) = recorded(File::options().publication_counter("/state"), |_| {});
    let [frames, times] = ["frames", "times"].map(|name| create(&file, name, name == "frames"));
    // What is there when so much was published.
    let mut published = vec![[0, 0]];
    file.flush().unwrap();
    published.push([0, 0]);
    file.start_swmr().unwrap();
    recording.log_mark("live");
    let (mut all_frames, mut all_times) = (0, 0);
    for n in 0..30 {
        append(&frames, 1 + n % 3);
        all_frames += u64::from(1 + n % 3);
        if n % 4 == 0 {
            frames.flush().unwrap();
            published.push([all_frames, all_times]);
        }
        append(&times, 1);
        all_times += 1;
        match n % 3 {
            0 => file.flush().unwrap(),
            1 => file.flush_durable().unwrap(),
            _ => {
                let row = all_times as u32 + 1;
                file.transaction(|tx| tx.append(&times, &[row])).unwrap();
                all_times += 1;
                // The frames were not appended to in it.
                published.push([published.last().unwrap()[0], all_times]);
                continue;
            }
        }
        published.push([all_frames, all_times]);
    }
    assert_eq!(file.publication_count().unwrap() as usize, published.len() - 1);
    let mut last = 0;
    at_each_write(&recording, |file| {
        let state = file.group("state").unwrap();
        let count = state.attribute("publications").unwrap().read_scalar::<u64>().unwrap();
        assert!(count == last || count == last + 1 || last == 0);
        last = count;
        let [frames, times] = published[count as usize];
        assert!(rows(file, "frames") >= frames && rows(file, "times") >= times, "publication {count}");
    });
    assert_eq!(last as usize, published.len() - 1);
}

#[test]
fn a_reader_waits_for_publications() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let options = File::options().publication_counter("/");
    let file = options.clone().create().open(&path).unwrap();
    let data = create(&file, "data", false);
    file.start_swmr().unwrap();
    let reader = File::options().swmr_read().open(&path).unwrap();
    let begin = reader.publication_count().unwrap();
    assert_eq!(reader.wait_for_publication(begin, Duration::ZERO).unwrap(), begin);
    assert_eq!(reader.wait_for_publication(begin + 1, Duration::ZERO).unwrap(), begin);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..100 {
                append(&data, 1);
                data.flush().unwrap();
            }
            file.close().unwrap();
        });
        let seen = reader.dataset("data").unwrap();
        for n in 1..=100 {
            assert!(reader.wait_for_publication(begin + n, Duration::MAX).unwrap() >= begin + n);
            seen.refresh().unwrap();
            assert!(seen.shape().unwrap()[0] >= n);
        }
        assert_eq!(
            reader.wait_for_publication(u64::MAX, Duration::MAX).unwrap(),
            begin + 100,
            "the writer has closed the file"
        );
    });
    reader.close().unwrap();
    let again = options.write().open(&path).unwrap();
    assert_eq!(again.publication_count().unwrap(), begin + 100);
    again.flush().unwrap();
    assert_eq!(again.publication_count().unwrap(), begin + 101);
}

/// What a line of Python says that reads the counter with h5py; `None` where there is no h5py.
fn count_by_h5py(path: &std::path::Path, options: &str) -> Option<String> {
    let python = h5live_test_support::python()?;
    let line = format!("import sys, h5py; print(h5py.File(sys.argv[1]{options})['state'].attrs['publications'])");
    let output = std::process::Command::new(python).args(["-c", &line]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn other_programs_read_the_counter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let file = File::options().create().publication_counter("/state").open(&path).unwrap();
    let [frames, times] = ["frames", "times"].map(|name| create(&file, name, false));
    times.publish_after(&frames).unwrap();
    file.start_swmr().unwrap();
    let begin = file.publication_count().unwrap();
    for n in 1..=5 {
        file.transaction(|tx| {
            tx.append(&frames, &[n as u32])?;
            tx.append(&times, &[n as u32])
        })
        .unwrap();
        let Some(seen) = count_by_h5py(&path, ", swmr=True") else { return };
        assert_eq!(seen, (begin + n).to_string());
    }
    file.close().unwrap();
    assert_eq!(count_by_h5py(&path, ""), Some((begin + 5).to_string()));
}

#[test]
fn nobody_counts_who_was_not_asked_to() {
    let file = File::in_memory();
    file.flush().unwrap();
    assert!(file.publication_count().unwrap_err().is_not_found_in_file());
}

fn in_memory(options: Options) -> (File, File) {
    let store = MemoryStore::new();
    let writer = File::with_store(Arc::new(store.clone()), "run.h5", options).unwrap();
    (writer, File::with_store(Arc::new(store.open_reader()), "run.h5", File::options()).unwrap())
}

#[test]
fn a_store_that_is_open_refuses_options_of_opening_by_name() {
    let store = || Arc::new(MemoryStore::new());
    let refused = |options| File::with_store(store(), "run.h5", options).unwrap_err().to_string();
    assert!(refused(File::options().eof_headroom(4096)).contains("eof_headroom"));
    assert!(refused(File::options().swmr_read()).contains("mode"));
    assert!(refused(File::options().recover(true)).contains("recover"));
    assert!(File::with_store(store(), "run.h5", File::options().create().chunk_cache_bytes(0)).is_ok());
}

#[test]
fn a_store_in_memory_counts_publications() {
    let (writer, reader) = in_memory(File::options().publication_counter("/"));
    assert_eq!(reader.publication_count().unwrap(), 0);
    append(&create(&writer, "data", false), 1);
    writer.flush().unwrap();
    assert_eq!(reader.publication_count().unwrap(), 1);
}

#[test]
fn publishes_after_so_many_rows() {
    let (writer, reader) = in_memory(File::options().publish_every(PublishInterval::DatasetRows(4)));
    let pairs = writer.new_dataset::<u32>().unlimited_rows(&[2]).create("pairs").unwrap();
    let seen = reader.dataset("pairs").unwrap();
    let mut visible = Vec::new();
    for n in 0..10 {
        pairs.append(&[n, n]).unwrap();
        seen.refresh().unwrap();
        visible.push(seen.shape().unwrap()[0]);
    }
    assert_eq!(visible, [0, 0, 0, 4, 4, 4, 4, 8, 8, 8]);
}

#[test]
fn publishes_when_time_is_over() {
    let (writer, reader) = in_memory(File::options().publish_every(Duration::from_millis(1)));
    let data = create(&writer, "data", true);
    append(&data, 5);
    let mut follow = reader.dataset("data").unwrap().follow::<u32>();
    assert_eq!(follow.next().unwrap().unwrap(), [1, 2, 3, 4, 5]);
    append(&data, 1);
    assert_eq!(follow.next().unwrap().unwrap(), [6]);
    writer.close().unwrap();
    assert!(follow.next().is_none());
}

#[test]
fn closes_at_once_however_long_the_time_is() {
    let (writer, _) = in_memory(File::options().publish_every(Duration::MAX));
    append(&create(&writer, "data", false), 1);
    writer.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn an_error_in_the_background_is_that_of_a_later_call() {
    let storage = FaultyStorage::new(MemoryStorage::default());
    let native = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
    let store = NativeFile::open_storage(Arc::new(storage.clone()), &native).unwrap();
    let options = File::options().create().publish_every(Duration::from_millis(1));
    let file = File::with_store(Arc::new(store), "faulty", options).unwrap();
    let data = create(&file, "data", false);
    file.flush().unwrap();
    storage.fail_after(0, InjectedFailure::Broken, true);
    let error = loop {
        // Appending does not write, but the background does.
        match data.append(&[1u32]) {
            Ok(()) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert!(matches!(error.kind(), ErrorKind::Store(_)), "{error}");
}

#[test]
fn errors_of_a_reader_name_the_promise_that_its_writer_has_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let file = File::create(&path).unwrap();
    let data = create(&file, "data", true);
    file.start_swmr().unwrap();
    append(&data, 4);
    data.flush().unwrap();
    let reader = File::options().swmr_read().open(&path).unwrap();
    let seen = reader.dataset("data").unwrap();
    let spoil = |at: u64| {
        use std::io::{Seek, SeekFrom, Write};
        let mut file = std::fs::File::options().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[0xff; 4]).unwrap();
    };
    spoil(seen.stored_chunks().unwrap()[0].file_offset.unwrap());
    let error = seen.read::<u32>().unwrap_err();
    assert_eq!(error.broken_invariant(), Some(SwmrInvariant::FinalElementsBelowExtent), "{error}");
    assert!(error.to_string().contains("I2"), "{error}");
    spoil(seen.id().0 as u64 + 16);
    let error = seen.refresh().unwrap_err();
    assert_eq!(error.broken_invariant(), Some(SwmrInvariant::NoLastingTornWrites), "{error}");
    spoil(seen.id().0 as u64);
    let error = reader.dataset("data").and_then(|data| data.refresh()).unwrap_err();
    assert_eq!(error.broken_invariant(), Some(SwmrInvariant::NoDanglingAddress), "{error}");
}

#[test]
fn what_a_session_does_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let file = File::create(&path).unwrap();
    let data = create(&file, "data", true);
    file.start_swmr().unwrap();
    let before = file.stats();
    append(&data, 10);
    data.flush().unwrap();
    let stats = file.stats();
    assert_eq!(stats.flushes, before.flushes + 1);
    assert!(stats.writes > before.writes && stats.bytes_written > before.bytes_written);
    assert!(stats.flush_time > before.flush_time && stats.longest_flush <= stats.flush_time);
    let reader = File::options().swmr_read().open(&path).unwrap();
    let seen = reader.dataset("data").unwrap();
    for _ in 0..2 {
        // Part of a chunk, which is kept for the next time.
        assert_eq!(seen.read_slice::<u32>(4..5).unwrap(), [5]);
    }
    seen.refresh().unwrap();
    let stats = reader.stats();
    assert_eq!((stats.refreshes, stats.torn, stats.writes), (1, 0, 0));
    assert!(stats.bytes_read > 0 && stats.misses > 0);
    assert_eq!((stats.chunk_hits, stats.chunk_misses), (1, 1));
}

/// The file after a power failure: what came before the last barrier of `log`, and any of the writes after it.
fn after_power_failure(log: &[StorageOp], random: &mut Random) -> Vec<u8> {
    let barrier = log.iter().rposition(|operation| *operation == StorageOp::Sync).map_or(0, |at| at + 1);
    let mut image = Vec::new();
    replay_operations(&mut image, &log[..barrier]).unwrap();
    replay_operations(&mut image, log[barrier..].iter().filter(|_| random.below(2) == 0)).unwrap();
    image
}

#[test]
fn what_was_flushed_durably_outlasts_a_power_failure_also_during_later_flushes() {
    for seed in 1..=6 {
        println!("seed {seed}");
        let mut random = Random(seed);
        let (recording, file) = recorded(File::options(), |_| {});
        let [frames, times] = ["frames", "times"].map(|name| create(&file, name, name == "frames"));
        file.start_swmr().unwrap();
        // How many rows were durable from which operation on.
        let mut durable = Vec::new();
        for n in 0..40 {
            append(&frames, 1 + random.below(3) as u32);
            append(&times, 1);
            match random.below(5) {
                0 | 1 => file.flush().unwrap(),
                2 => times.flush().unwrap(),
                _ if n < 5 => {}
                3 => {
                    file.flush_durable().unwrap();
                    durable.push((recording.log().len(), frames.shape().unwrap()[0], times.shape().unwrap()[0]));
                }
                _ => {
                    let rows = |dataset: &Dataset| dataset.shape().unwrap()[0] as u32;
                    let (frame, time) = (rows(&frames) + 1, rows(&times) + 1);
                    let appended = file.transaction(|tx| {
                        tx.append(&frames, &[frame])?;
                        tx.append(&times, &[time])
                    });
                    appended.unwrap();
                }
            }
        }
        let log = recording.log();
        let first = durable.first().expect("something was durable").0;
        for end in first..=log.len() {
            let (_, all_frames, all_times) = durable.iter().rev().find(|(from, ..)| *from <= end).unwrap();
            let image = after_power_failure(&log[..end], &mut random);
            let file = File::options().write().open_image(image).unwrap();
            assert!(rows(&file, "frames") >= *all_frames, "after {end} of {} operations", log.len());
            assert!(rows(&file, "times") >= *all_times, "after {end} of {} operations", log.len());
        }
    }
}

#[test]
fn from_the_first_durable_flush_on_there_are_barriers() {
    let (recording, file) = recorded(File::options(), |_| {});
    let data = create(&file, "data", false);
    let syncs = || recording.take_log().iter().filter(|operation| **operation == StorageOp::Sync).count();
    append(&data, 20);
    file.flush().unwrap();
    assert_eq!(syncs(), 0);
    append(&data, 20);
    file.flush_durable().unwrap();
    assert!(matches!(recording.log().last(), Some(StorageOp::Sync)));
    assert_eq!(syncs(), 1);
    append(&data, 20);
    file.flush().unwrap();
    let log = recording.take_log();
    assert!(log.contains(&StorageOp::Sync) && log.last() != Some(&StorageOp::Sync), "in order, and not yet durable");
    append(&data, 20);
    data.flush_durable().unwrap();
    assert!(matches!(recording.log().last(), Some(StorageOp::Sync)));
}
