//! Archives of so many entries that a thread writes them while others are read.

use std::io::Cursor;

use h5live::File;
use h5live_archive::{
    Error, ImportCollisionPolicy, ImportOptions, ImportedTar, Importer, TarFault, TarLayout, TarSource, choose_archive,
    export,
};

const ENTRIES: usize = 12_000;
/// Every entry with such a number is larger than a compact dataset may be.
const LARGE_EVERY: usize = 3_000;
const LARGE_BYTES: usize = 100_000;
/// Bytes of the others.
const SMALL_BYTES: usize = 700;

const LAYOUTS: [TarLayout; 3] = [TarLayout::Compactor, TarLayout::Digest, TarLayout::Shredder];

fn path(number: usize) -> String {
    format!("folder-{}/{number}", number / 500)
}

fn contents(number: usize) -> Vec<u8> {
    let len = if number % LARGE_EVERY == LARGE_EVERY - 1 { LARGE_BYTES } else { SMALL_BYTES };
    number.to_le_bytes().iter().copied().cycle().take(len).collect()
}

/// An archive of many files, in which some have other paths than [`path`] says. Returns where the contents of each end.
fn archive(other_paths: &[(usize, String)]) -> (Vec<u8>, Vec<u64>) {
    let (mut builder, mut ends) = (tar::Builder::new(Vec::new()), Vec::new());
    for number in 0..ENTRIES {
        let contents = contents(number);
        let other = other_paths.iter().find(|(other, _)| *other == number);
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, other.map_or_else(|| path(number), |(_, path)| path.clone()), &*contents)
            .unwrap();
        let padding = contents.len().next_multiple_of(512) - contents.len();
        ends.push((builder.get_ref().len() - padding) as u64);
    }
    (builder.into_inner().unwrap(), ends)
}

fn source(bytes: &[u8]) -> TarSource {
    TarSource::new(Box::new(Cursor::new(bytes.to_vec())), "archive", None).unwrap()
}

fn options(layout: TarLayout, on_collision: ImportCollisionPolicy) -> ImportOptions {
    ImportOptions { layout, on_collision, commit_bytes: 3 << 20, ..ImportOptions::default() }
}

fn exported(file: &File) -> Vec<u8> {
    let (tar, mut out) = (ImportedTar::open(file).unwrap(), Vec::new());
    export(&tar, choose_archive(&tar, None).unwrap(), &mut out).unwrap();
    out
}

/// What failed: the path of its entry, and where.
fn place(error: &Error) -> (&str, u64) {
    match error {
        Error::Archive { entry: Some(entry), at, .. } => (entry, *at),
        error => panic!("{error}"),
    }
}

#[test]
fn all_of_many_entries_come_back_from_every_layout() {
    let (archive, _) = archive(&[]);
    for layout in LAYOUTS {
        let file = File::in_memory();
        let importer = Importer::create(&file, options(layout, ImportCollisionPolicy::Error)).unwrap();
        let mut counts = Vec::new();
        let report =
            importer.import(source(&archive), &mut |now| counts.push(now.entries_so_far_all_archives)).unwrap();
        assert_eq!(
            (report.entries_in_this_archive, report.samples_in_all_archives),
            (ENTRIES as u64, ENTRIES as u64),
            "{layout}"
        );
        assert!(counts.iter().copied().eq(1..=ENTRIES as u64), "{layout}");
        assert!(exported(&file) == archive, "{layout}");
    }
}

#[test]
fn an_entry_that_cannot_be_placed_is_named_and_the_import_goes_on_behind_it() {
    let taken = 7_777;
    let (archive, ends) = archive(&[(taken, path(3))]);
    for salvage in [false, true] {
        let file = File::in_memory();
        let strict = ImportOptions {
            finishes_import_at_fault: salvage,
            ..options(TarLayout::Compactor, ImportCollisionPolicy::Error)
        };
        let imported = Importer::create(&file, strict).unwrap().import(source(&archive), &mut |_| {});
        let error = match imported {
            Ok(report) => {
                assert!(salvage && report.entries_in_this_archive == taken as u64);
                report.fault.expect("the rest is missing")
            }
            Err(error) => error,
        };
        assert_eq!(place(&error), (&*path(3), ends[taken]), "{error}");
        let rows = ImportedTar::open(&file).unwrap().rows().len();
        assert_eq!(rows, taken, "{salvage}");
        if !salvage {
            let lenient = options(TarLayout::Compactor, ImportCollisionPolicy::Suffix);
            Importer::open(&file, lenient).unwrap().resume(source(&archive), &mut |_| {}).unwrap();
            assert!(exported(&file) == archive);
        }
    }
}

#[test]
fn an_archive_that_ends_in_an_entry_keeps_all_before_it() {
    let (archive, ends) = archive(&[]);
    let last = 9_001;
    let cut = &archive[..ends[last] as usize - 1];
    for layout in LAYOUTS {
        let file = File::in_memory();
        let strict = options(layout, ImportCollisionPolicy::Error);
        let error = Importer::create(&file, strict).unwrap().import(source(cut), &mut |_| {}).unwrap_err();
        assert!(matches!(error, Error::Archive { fault: TarFault::Truncated { missing: 1 }, .. }), "{error}");
        assert_eq!(place(&error).0, path(last), "{layout}");
        assert_eq!(ImportedTar::open(&file).unwrap().rows().len(), last, "{layout}");
        Importer::open(&file, strict).unwrap().resume(source(&archive), &mut |_| {}).unwrap();
        assert!(exported(&file) == archive, "{layout}");
    }
}

/// The file is closed under the import: each call of the store is an error from then on.
#[test]
fn a_store_that_fails_ends_the_import_with_its_error() {
    let (archive, _) = archive(&[]);
    for layout in LAYOUTS {
        let file = File::in_memory();
        let importer = Importer::create(&file, options(layout, ImportCollisionPolicy::Error)).unwrap();
        let closed = importer.import(source(&archive), &mut |now| {
            if now.entries_so_far_all_archives == 6_000 {
                file.close().unwrap();
            }
        });
        assert!(matches!(closed, Err(Error::File(_) | Error::Store { .. })), "{layout}: {closed:?}");
    }
}
