//! Archives in streams of every kind, several in one, and what is no tar archive.

mod common;

use std::io::Write;

use common::{archive, source};
use h5live::File;
use h5live::archive::layout::{DIGEST_ALGORITHM_ATTRIBUTE, SAMPLE_DIGEST};
use h5live_archive::{
    Compression, Error, Extractor, ImportOptions, ImportedTar, Importer, TarFault, UnsuitableFileReason,
    choose_archive, export,
};

/// Imports an archive. Returns the file, and where another one begins that was left out.
fn imported(bytes: &[u8], ignores_zeros: bool) -> (File, Option<u64>) {
    let file = File::in_memory();
    let options = ImportOptions { ignores_zeros, ..ImportOptions::default() };
    let report = Importer::create(&file, options).unwrap().import(source(bytes), &mut |_| {}).unwrap();
    (file, report.unread_archive_offset)
}

fn paths(file: &File) -> Vec<String> {
    let tar = ImportedTar::open(file).unwrap();
    tar.rows().iter().map(|row| String::from_utf8(tar.path(row).to_vec()).unwrap()).collect()
}

fn exported(file: &File) -> Vec<u8> {
    let tar = ImportedTar::open(file).unwrap();
    let mut out = Vec::new();
    export(&tar, choose_archive(&tar, None).unwrap(), &mut out).unwrap();
    out
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = lzma_rust2::LzipWriter::new(Vec::new(), lzma_rust2::LzipOptions::with_preset(1));
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

#[test]
fn streams_of_lz4_lzip_and_zstd_are_read_whole() {
    let wanted = archive(&["one", "two/three"]);
    let (begin, end) = wanted.split_at(700);
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let skipped = |bytes: Vec<u8>| [&[0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc", &bytes].concat();
    for (stream, compression) in [
        (lz4(&wanted), Compression::Lz4),
        // Frames without contents end nothing.
        ([lz4(&[]), lz4(begin), lz4(&[]), lz4(end)].concat(), Compression::Lz4),
        (lzip(&wanted), Compression::Lzip),
        ([lzip(begin), lzip(end)].concat(), Compression::Lzip),
        (skipped(zstd(&wanted)), Compression::Zstd),
        ([zstd(begin), skipped(zstd(end))].concat(), Compression::Zstd),
    ] {
        assert_eq!(source(&stream).compression, compression);
        let (file, next) = imported(&stream, false);
        assert_eq!((paths(&file), next), (vec!["one".to_owned(), "two/three".to_owned()], None));
        assert_eq!(exported(&file), wanted, "{compression:?}");
        // A stream that is cut short is an error.
        let file = File::in_memory();
        let importer = Importer::create(&file, ImportOptions::default()).unwrap();
        assert!(importer.import(source(&stream[..stream.len() - 40]), &mut |_| {}).is_err(), "{compression:?}");
    }
}

#[test]
fn an_archive_behind_the_end_of_another_is_told_and_taken_on_demand() {
    let (first, second) = (archive(&["one"]), archive(&["two", "three"]));
    let both = [&first[..], &[0; 2048], &second].concat();
    let (file, next) = imported(&both, false);
    assert_eq!((paths(&file), next), (vec!["one".to_owned()], Some(first.len() as u64 + 2048)));
    assert_eq!(exported(&file), both, "what is not imported comes back all the same");
    let (file, next) = imported(&both, true);
    assert_eq!((paths(&file), next), (["one", "two", "three"].map(str::to_owned).to_vec(), None));
    assert_eq!(exported(&file), both);
    // Blocks of zeros, and other bytes, are no archive.
    for rest in [&[0; 9000][..], &[7; 9000]] {
        assert_eq!(imported(&[&first[..], rest].concat(), false).1, None);
    }
    let report = h5live_archive::check(source(&both), false, &mut |_| {}).unwrap();
    assert_eq!((report.entries, report.next_archive_offset), (1, Some(first.len() as u64 + 2048)));
    assert!(!report.is_clean());
    let report = h5live_archive::check(source(&both), true, &mut |_| {}).unwrap();
    assert!(report.entries == 3 && report.is_clean());
}

#[test]
fn an_archive_of_another_kind_is_called_what_it_is() {
    for (head, name) in [
        (&b"PK\x03\x04"[..], "a zip archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"070701", "a cpio archive"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    ] {
        for len in [100, 512, 4000] {
            let mut bytes = head.to_vec();
            bytes.resize(len, 1);
            let importer = Importer::create(&File::in_memory(), ImportOptions::default()).unwrap();
            let error = importer.import(source(&bytes), &mut |_| {}).unwrap_err();
            assert!(
                matches!(error, Error::Archive { at: 0, fault: TarFault::OtherFormat(found), .. } if found == name)
            );
        }
    }
    // A tar archive whose first file has such a name is one.
    assert_eq!(paths(&imported(&archive(&["070701.jpg"]), false).0), ["070701.jpg"]);
}

#[test]
fn contents_that_were_changed_are_not_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.h5");
    let file = File::create(&path).unwrap();
    let importer = Importer::create(&file, ImportOptions::default()).unwrap();
    importer.import(source(&archive(&["first file", "second file"])), &mut |_| {}).unwrap();
    file.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The header of the entry has its name, too; contents come last.
    let at = bytes.windows(21).position(|found| found == b"first filesecond file");
    bytes[at.unwrap()] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let file = File::open(&path).unwrap();
    let tar = ImportedTar::open(&file).unwrap();
    let error = export(&tar, choose_archive(&tar, None).unwrap(), &mut std::io::sink()).unwrap_err();
    assert!(
        matches!(&error, Error::UnsuitableFile { problem: UnsuitableFileReason::WrongContents(path), .. } if path == "first file"),
        "{error}"
    );
    let report =
        Extractor::open_or_create_target(&tar, &folder.path().join("out")).unwrap().extract(&|_| true).unwrap();
    assert_eq!((report.extracted_entries, report.refused_paths_with_reasons.len()), (1, 1));
    assert_eq!(std::fs::read_dir(folder.path().join("out")).unwrap().count(), 1, "a wrong file is not left behind");
    let tar = tar.without_verification();
    export(&tar, choose_archive(&tar, None).unwrap(), &mut std::io::sink()).unwrap();
}

#[test]
fn a_file_with_digests_of_an_unknown_algorithm_is_listed_and_read_without_verification() {
    let (file, _) = imported(&archive(&["one"]), false);
    file.dataset(SAMPLE_DIGEST).unwrap().set_attribute(DIGEST_ALGORITHM_ATTRIBUTE, "md99").unwrap();
    assert_eq!(paths(&file), ["one"]);
    let tar = ImportedTar::open(&file).unwrap();
    let of = choose_archive(&tar, None).unwrap();
    let error = export(&tar, of, &mut std::io::sink()).unwrap_err();
    assert!(
        matches!(error, Error::UnsuitableFile { problem: UnsuitableFileReason::UnknownDigestAlgorithm(_), .. }),
        "{error}"
    );
    let tar = ImportedTar::open(&file).unwrap().without_verification();
    export(&tar, choose_archive(&tar, None).unwrap(), &mut std::io::sink()).unwrap();
}
