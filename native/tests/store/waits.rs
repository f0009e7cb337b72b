//! How long readers wait for what never becomes whole: counted, not measured.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h5live_model::{LinkTarget, Name, NewObject, ObjectScope, ObjectSpec, PublishLevel, Store, StoreWriter};
use h5live_native::{Clock, Error, Mode, NativeFile, OpenOptions, RetryPolicy};

const GROUPS: usize = 200;

/// A file with many groups, whose object headers are all damaged, closed or as a SWMR writer leaves it that dies.
fn damaged(folder: &Path, is_left: bool) -> PathBuf {
    let path = folder.join("damaged.h5");
    let mode = if is_left { Mode::SwmrWrite } else { Mode::Write };
    NativeFile::open(&path, &OpenOptions { mode: Mode::Create, ..OpenOptions::default() }).unwrap();
    let file = NativeFile::open(&path, &OpenOptions { mode, ..OpenOptions::default() }).unwrap();
    for n in 0..GROUPS {
        file.create(&NewObject::linked(
            file.session().root,
            &Name::from(format!("{n}").as_str()),
            &ObjectSpec::group(),
        ))
        .unwrap();
    }
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let left = fs::read(&path).unwrap();
    let root = usize::try_from(file.session().root.0).unwrap();
    file.close().unwrap();
    drop(file);
    let mut bytes = if is_left { left } else { fs::read(&path).unwrap() };
    let headers: Vec<_> = (0..bytes.len() - 4).filter(|at| bytes[*at..].starts_with(b"OHDR") && *at != root).collect();
    assert!(headers.len() >= GROUPS);
    headers.into_iter().for_each(|at| bytes[at + 6] ^= 0xff);
    fs::write(&path, bytes).unwrap();
    path
}

/// What a reader has waited.
#[derive(Debug, Default)]
struct Waits {
    number: AtomicU64,
    micros: AtomicU64,
}

/// Looks at all groups; returns how often it was waited, and how long (µs), and how many groups could not be read.
fn walk(path: &Path, mode: Mode) -> (u64, u64, usize) {
    let waits = Arc::new(Waits::default());
    let counted = waits.clone();
    let budget = Duration::from_millis(900);
    let policy = RetryPolicy::new(60, move |wait| {
        counted.number.fetch_add(u64::from(!wait.is_zero()), Ordering::Relaxed);
        counted.micros.fetch_add(wait.as_micros().try_into().unwrap(), Ordering::Relaxed);
    });
    let policy = policy.with_wait_budget(budget);
    let clock = Clock::new(|| Duration::ZERO);
    let file = NativeFile::open(path, &OpenOptions { mode, retry: policy, clock, ..OpenOptions::default() }).unwrap();
    let mut links = Vec::new();
    file.for_each_link(file.session().root, &mut |link| {
        links.push(link);
        true
    })
    .unwrap();
    assert_eq!(links.len(), GROUPS);
    let is_damaged = |target: &LinkTarget| {
        let LinkTarget::Hard(id) = target else { panic!("{target:?}") };
        let Err(h5live_model::Error::Store(error)) = file.kind(*id) else { return false };
        let error = std::error::Error::source(&*error).and_then(|error| error.downcast_ref::<Error>()).unwrap();
        assert_eq!(matches!(error, Error::Torn { .. }), mode == Mode::SwmrRead, "{error}");
        true
    };
    let failed = links.iter().filter(|link| is_damaged(&link.target)).count();
    (waits.number.load(Ordering::Relaxed), waits.micros.load(Ordering::Relaxed), failed)
}

#[test]
fn nobody_waits_in_a_damaged_file_that_nobody_writes() {
    let folder = tempfile::tempdir().unwrap();
    let closed = damaged(folder.path(), false);
    assert_eq!(walk(&closed, Mode::Read), (0, 0, GROUPS));
    assert_eq!(walk(&closed, Mode::SwmrRead), (0, 0, GROUPS));
    fs::remove_file(&closed).unwrap();
    let left = damaged(folder.path(), true);
    assert_eq!(walk(&left, Mode::SwmrRead), (0, 0, GROUPS));
}

#[test]
fn a_reader_of_a_damaged_file_that_is_being_written_waits_once_in_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = damaged(folder.path(), true);
    let _writer = fs::File::options().write(true).open(&path).unwrap();
    let (number, micros, failed) = walk(&path, Mode::SwmrRead);
    assert_eq!(failed, GROUPS);
    // The waits of the first attempts, which take less than a third of a millisecond, are always made.
    assert!(number > 0 && micros <= 900_000 + GROUPS as u64 * 310, "{number} waits, {micros} µs");
}

/// Where the address of the root block is in the header of a fractal heap, and the checksum.
const HEAP_ROOT_AT: usize = 132;
const HEAP_CHECKSUM_AT: usize = 142;

/// libhdf5 may write the names of links before the header of the heap that has the links: then that leads nowhere yet.
#[test]
fn a_heap_whose_header_leads_nowhere_yet_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("early.h5");
    NativeFile::open(&path, &OpenOptions { mode: Mode::Create, ..OpenOptions::default() }).unwrap();
    let file = NativeFile::open(&path, &OpenOptions { mode: Mode::SwmrWrite, ..OpenOptions::default() }).unwrap();
    let root = file.session().root;
    for n in 0..20 {
        let name = Name::from(format!("{n}").as_str());
        file.create(&NewObject::linked(root, &name, &ObjectSpec::group())).unwrap();
    }
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let whole = fs::read(&path).unwrap();
    drop(file);
    let heap = (0..whole.len()).find(|at| whole[*at..].starts_with(b"FRHP")).unwrap();
    let mut early = whole.clone();
    early[heap + HEAP_ROOT_AT..][..8].fill(0xff);
    let sum = h5live_format::lookup3(&early[heap..heap + HEAP_CHECKSUM_AT], 0);
    early[heap + HEAP_CHECKSUM_AT..][..4].copy_from_slice(&sum.to_le_bytes());
    fs::write(&path, early).unwrap();
    let _writer = fs::File::options().write(true).open(&path).unwrap();
    let waits = Arc::new(AtomicU64::new(0));
    let (counted, written) = (waits.clone(), path.clone());
    let policy = RetryPolicy::new(60, move |_| {
        if counted.fetch_add(1, Ordering::Relaxed) == 3 {
            let mut file = fs::File::options().write(true).open(&written).unwrap();
            file.seek(SeekFrom::Start(heap as u64)).unwrap();
            file.write_all(&whole[heap..][..HEAP_CHECKSUM_AT + 4]).unwrap();
        }
    });
    let options = OpenOptions { mode: Mode::SwmrRead, retry: policy, ..OpenOptions::default() };
    let reader = NativeFile::open(&path, &options).unwrap();
    let mut links = 0;
    let listed = reader.for_each_link(reader.session().root, &mut |_| {
        links += 1;
        true
    });
    assert!(listed.is_ok(), "{:?} after {links} links", listed);
    assert_eq!(links, 20);
    assert!(waits.load(Ordering::Relaxed) >= 4);
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

/// Looks at the objects that can be found, and at their attributes and chunks.
fn look_at_all(file: &NativeFile) -> usize {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![file.session().root]);
    while let Some(id) = waiting.pop().filter(|_| seen.len() < 200) {
        if !seen.insert(id.0) {
            continue;
        }
        let _ = file.kind(id);
        let _ = file.attribute_names(id);
        let _ = file.for_each_link(id, &mut |link| {
            if let LinkTarget::Hard(id) = link.target {
                waiting.push(id);
            }
            waiting.len() < 1000
        });
        let Ok(data) = file.dataset(id) else { continue };
        let _ = data.refresh();
        let mut first = None;
        let _ = data.for_each_chunk(&mut |chunk| {
            first.get_or_insert(chunk);
            true
        });
        if let Some(chunk) = first {
            let _ = data.read(&chunk, 0, &mut [0; 64]);
        }
    }
    seen.len()
}

/// Files of the shared corpus that were made to do harm; without it the test says that it is skipped.
#[test]
fn nobody_waits_in_hostile_files() {
    let Some(shared) = h5live_test_support::shared() else { return };
    let mut hostile = Vec::new();
    for folder in ["corpus/malformed", "samples/adversarial"] {
        files(&shared.join(folder), &mut hostile);
    }
    let mut opened = 0;
    for path in &hostile {
        // The lock is not needed, and the folder may be one in which nothing may be changed.
        let waits = Arc::new(AtomicU64::new(0));
        let counted = waits.clone();
        let policy = RetryPolicy::new(60, move |wait| {
            counted.fetch_add(u64::from(!wait.is_zero()), Ordering::Relaxed);
        });
        let options = OpenOptions { mode: Mode::SwmrRead, retry: policy, ..OpenOptions::default() };
        if let Ok(file) = NativeFile::open(path, &options) {
            opened += usize::from(look_at_all(&file) > 0);
        }
        assert_eq!(waits.load(Ordering::Relaxed), 0, "{}", path.display());
    }
    println!("{opened} of {} files opened", hostile.len());
}
