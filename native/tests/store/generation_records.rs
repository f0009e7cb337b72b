//! Files whose readers go by generations: at rest, the redo record behind the announced end is that of the generation
//! that the file shows.

use std::sync::Arc;

use h5live_cache::{MemoryStorage, RecordingStorage, Storage, replay_operations};
use h5live_format::{Addr, GenerationWord, RedoRecord, Superblock, Widths, decode_prefix};
use h5live_model::{LinkTarget, Name, NewObject, ObjectScope, ObjectSpec, PublishLevel, Store, StoreWriter};
use h5live_native::{LibVer, Mode, NativeFile, OpenOptions};

/// What the record changes that is not so in the file.
fn stale_writes(file: &[u8]) -> Vec<Addr> {
    let superblock = Superblock::decode(file).unwrap();
    let at = GenerationWord::redo_record_addr(superblock.end_of_file).unwrap().get().unwrap() as usize;
    let Ok((record, _)) = decode_prefix::<RedoRecord>(file.get(at..).unwrap_or_default(), Widths::default()) else {
        return Vec::new();
    };
    let differs = |at: Addr, bytes: &[u8]| {
        let at = at.get().unwrap() as usize;
        file.get(at..at + bytes.len()) != Some(bytes)
    };
    record.writes.iter().filter(|write| differs(write.at, &write.bytes)).map(|write| write.at).collect()
}

/// Adds and removes links of a live file, and calls `flushed` with the number of each change after its flush.
fn edit_links(file: &NativeFile, changes: u64, mut flushed: impl FnMut(u64)) {
    let group = match file.link(file.session().root, &Name::from("links")).unwrap().unwrap().target {
        LinkTarget::Hard(group) => group,
        other => panic!("{other:?}"),
    };
    let mut seed = 909_153_395_007u64 + changes;
    for number in 0..changes {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let name = (seed >> 33) as usize % 60;
        let text = Name::from(format!("link {name}").as_str());
        match file.link(group, &text).unwrap() {
            Some(_) => file.remove_link(group, &text).unwrap(),
            None => {
                let target = LinkTarget::Soft(format!("/target of {number}").into());
                file.add_link(group, &text, &target).unwrap();
            }
        }
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        flushed(number);
    }
}

fn create(file: &NativeFile) {
    file.create(&NewObject::linked(file.session().root, &Name::from("links"), &ObjectSpec::group())).unwrap();
}

fn options(mode: Mode) -> OpenOptions {
    OpenOptions { mode, profile: LibVer::Earliest, ..OpenOptions::default() }
}

/// The storage of a file that was written so far.
fn storage(image: &[u8]) -> Arc<RecordingStorage<MemoryStorage>> {
    let storage = MemoryStorage::new();
    storage.write_at(image, 0).unwrap();
    Arc::new(RecordingStorage::new(storage))
}

#[test]
fn a_writer_that_dies_while_it_takes_a_file_over_leaves_no_record_of_an_earlier_flush() {
    let recording = storage(&[]);
    let file = NativeFile::open_storage(recording.clone(), &options(Mode::Create)).unwrap();
    create(&file);
    file.start_swmr().unwrap();
    let mut images = Vec::new();
    edit_links(&file, 2500, |number| {
        if number > 200 {
            images.push((number, recording.inner().to_vec()));
        }
    });
    for (number, image) in images {
        assert_eq!(stale_writes(&image), [], "after change {number}");
        let recording = storage(&image);
        let options = OpenOptions { mode: Mode::SwmrWrite, take_over_if_unknown: true, ..OpenOptions::default() };
        let next = NativeFile::open_storage(recording.clone(), &options).unwrap();
        let mut left = image;
        for (n, operation) in recording.take_log().iter().enumerate() {
            replay_operations(&mut left, [operation]).unwrap();
            assert_eq!(stale_writes(&left), [], "after change {number}, operation {n} of the next writer");
        }
        drop(next);
    }
}

#[test]
fn a_writer_that_takes_over_in_the_middle_of_a_flush_leaves_no_record_of_an_earlier_flush() {
    let recording = storage(&[]);
    let file = NativeFile::open_storage(recording.clone(), &options(Mode::Create)).unwrap();
    create(&file);
    file.start_swmr().unwrap();
    let mut image = recording.inner().to_vec();
    drop(recording.take_log());
    edit_links(&file, 1500, |number| {
        for operation in recording.take_log() {
            replay_operations(&mut image, [&operation]).unwrap();
            if number < 100 || number % 7 != 0 {
                continue;
            }
            let left = storage(&image);
            let options = OpenOptions { mode: Mode::SwmrWrite, take_over_if_unknown: true, ..OpenOptions::default() };
            let next = NativeFile::open_storage(left.clone(), &options).unwrap();
            assert_eq!(stale_writes(&left.inner().to_vec()), [], "taken over in the flush of change {number}");
            edit_links(&next, 6, |more| {
                assert_eq!(stale_writes(&left.inner().to_vec()), [], "change {more} after change {number}");
            });
        }
    });
}

#[test]
fn a_record_of_an_earlier_flush_counts_for_nobody_once_the_file_is_at_rest() {
    let recording = storage(&[]);
    let file = NativeFile::open_storage(recording.clone(), &options(Mode::Create)).unwrap();
    create(&file);
    file.start_swmr().unwrap();
    let mut images = Vec::new();
    edit_links(&file, 300, |_| images.push(recording.inner().to_vec()));
    let names = |image: &[u8], mode: Mode| {
        let file =
            NativeFile::open_storage(storage(image), &OpenOptions { take_over_if_unknown: true, ..options(mode) })
                .unwrap();
        let LinkTarget::Hard(group) = file.link(file.session().root, &Name::from("links")).unwrap().unwrap().target
        else {
            panic!("a group")
        };
        let mut names = Vec::new();
        file.for_each_link(group, &mut |link| {
            names.push(link.name.to_string());
            true
        })
        .unwrap();
        names
    };
    let mut tried = 0;
    for pair in images.windows(2).skip(200) {
        let [before, now] = pair else { continue };
        let place =
            |image: &[u8]| GenerationWord::redo_record_addr(Superblock::decode(image).unwrap().end_of_file).unwrap();
        let at = place(now).get().unwrap() as usize;
        if place(before) != place(now) || before.len() <= at {
            continue;
        }
        let mut stale = now.clone();
        stale.truncate(at);
        stale.extend_from_slice(&before[at..]);
        let wanted = names(now, Mode::Read);
        tried += usize::from(!stale_writes(&stale).is_empty());
        for mode in [Mode::Read, Mode::SwmrRead, Mode::Write, Mode::SwmrWrite] {
            assert_eq!(names(&stale, mode), wanted, "{mode:?}");
        }
    }
    assert!(tried > 10, "{tried}");
}
