//! Damaged and malicious archives: clear errors, bounded memory, and no byte lost where there is no error.

use std::io::{Cursor, Write};
use std::process::{Command, Stdio};

use h5live::File;
use h5live_archive::{
    DigestAlgorithm, Error, ImportCollisionPolicy, ImportOptions, ImportedTar, Importer, TarFault, TarLayout,
    TarSource, choose_archive, export,
};
use proptest::prelude::*;

fn options(layout: TarLayout) -> ImportOptions {
    ImportOptions {
        layout,
        on_collision: ImportCollisionPolicy::Suffix,
        max_total_content_bytes: 1 << 30,
        ..ImportOptions::default()
    }
}

fn import(archive: &[u8], options: ImportOptions) -> Result<File, Error> {
    let file = File::in_memory();
    let source = TarSource::new(Box::new(Cursor::new(archive.to_vec())), "archive", None)?;
    Importer::create(&file, options)?.import(source, &mut |_| {})?;
    Ok(file)
}

fn exported(file: &File) -> Vec<u8> {
    let tar = ImportedTar::open(file).unwrap();
    let mut out = Vec::new();
    export(&tar, choose_archive(&tar, None).unwrap(), &mut out).unwrap();
    out
}

fn header(name: &str, kind: u8, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_path(name).unwrap();
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

/// An archive with entries of many kinds, by the crate `tar`.
fn sample_archive() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let pax = [("path", "p/long".as_bytes()), ("SCHILY.xattr.user.x", b"1\n2"), ("mtime", b"-5.25")];
    builder.append_pax_extensions(pax).unwrap();
    builder.append(&header("short", b'0', 5), &b"hello"[..]).unwrap();
    builder.append_data(&mut header("x", b'0', 3), "n".repeat(200), &b"abc"[..]).unwrap();
    builder.append_link(&mut header("link", b'2', 0), "link", "short").unwrap();
    builder.append_link(&mut header("hard", b'1', 0), "hard", "short").unwrap();
    builder.append(&header("folder/", b'5', 0), &b""[..]).unwrap();
    builder.append(&header("volume", b'V', 0), &b""[..]).unwrap();
    builder.append(&header("list", b'D', 4), &b"Yab\0"[..]).unwrap();
    builder.append(&header("block", b'0', 512), &[7; 512][..]).unwrap();
    builder.into_inner().unwrap()
}

/// The same with a sparse file, by GNU tar; `None` if that is not there.
fn sparse_archive(format: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse");
    let mut file = std::fs::File::create(&path).unwrap();
    file.set_len(300_000).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(131_072)).unwrap();
    file.write_all(b"data").unwrap();
    drop(file);
    let mut command = Command::new("tar");
    let output =
        command.args(format).args(["-S", "-cf", "-", "sparse"]).current_dir(folder.path()).stdin(Stdio::null());
    match output.output() {
        Ok(output) if output.status.success() => Some(output.stdout),
        _ => {
            eprintln!("skipped: what needs GNU tar, which is not there");
            None
        }
    }
}

fn archives() -> Vec<Vec<u8>> {
    let formats: [&[&str]; 3] =
        [&["--format=gnu"], &["--format=pax", "--sparse-version=0.1"], &["--format=pax", "--sparse-version=1.0"]];
    let sparse = formats.iter().filter_map(|format| sparse_archive(format));
    std::iter::once(sample_archive()).chain(sparse).collect()
}

/// Makes the checksum of the header at a place right again, so that a change behind it is looked at.
fn mend_checksum(archive: &mut [u8], at: usize) {
    let start = at / 512 * 512;
    let Some(block) = archive.get_mut(start..start + 512) else { return };
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn a_damaged_archive_is_an_error_or_comes_back_byte_for_byte(
        which in 0usize..4, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()), layout in 0usize..3,
    ) {
        let all = archives();
        let mut archive = all[which % all.len()].clone();
        for (at, byte, is_mended) in changes {
            let at = at.index(archive.len());
            archive[at] = byte;
            if is_mended {
                mend_checksum(&mut archive, at);
            }
        }
        if let Some(cut) = cut {
            archive.truncate(cut.index(archive.len()));
        }
        let layout = [TarLayout::Shredder, TarLayout::Compactor, TarLayout::Digest][layout];
        match import(&archive, options(layout)) {
            Ok(file) => prop_assert!(exported(&file) == archive),
            Err(Error::Archive { at, .. }) => prop_assert!(at <= archive.len() as u64 + 512),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

#[track_caller]
fn fault(archive: &[u8]) -> TarFault {
    match import(archive, options(TarLayout::Shredder)) {
        Err(Error::Archive { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn entries_of_2_to_the_60_bytes_are_errors_and_take_no_memory() {
    let huge = 1u64 << 60;
    let plain = [header("huge", b'0', huge).as_bytes().to_vec(), vec![1; 5000]].concat();
    assert!(matches!(fault(&plain), TarFault::TotalContentLimitExceeded { .. }));
    let unlimited = ImportOptions { max_total_content_bytes: u64::MAX, ..options(TarLayout::Shredder) };
    let truncated = import(&plain, unlimited).unwrap_err().to_string();
    assert!(truncated.contains(&format!("{} bytes are missing", huge - 5000)), "{truncated}");
    for kind in *b"xgLK" {
        let long = [header("huge", kind, huge).as_bytes().to_vec(), vec![1; 5000]].concat();
        assert!(matches!(fault(&long), TarFault::ExtendedHeadersTooLong { .. }));
    }
    // Not a file: its contents are passed over, and end too early.
    let other = [header("huge", b'D', huge).as_bytes().to_vec(), vec![1; 5000]].concat();
    assert!(matches!(fault(&other), TarFault::Truncated { .. }));
    // A hole of so many bytes.
    let mut builder = tar::Builder::new(Vec::new());
    let size = huge.to_string();
    let records =
        [("GNU.sparse.major", "0"), ("GNU.sparse.minor", "1"), ("GNU.sparse.map", ""), ("GNU.sparse.size", &size)];
    builder.append_pax_extensions(records.map(|(key, value)| (key, value.as_bytes()))).unwrap();
    builder.append(&header("hole", b'0', 0), &b""[..]).unwrap();
    let hole = builder.into_inner().unwrap();
    assert!(matches!(fault(&hole), TarFault::TotalContentLimitExceeded { bytes, .. } if bytes == huge));
    let checked = TarSource::new(Box::new(Cursor::new(hole)), "hole", None).unwrap();
    assert_eq!(h5live_archive::check(checked, false, &mut |_| {}).unwrap().content_bytes, huge);
}

#[test]
fn an_archive_that_unpacks_to_more_than_is_allowed_is_an_error() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(header("zeros", b'0', 2 << 30).as_bytes()).unwrap();
    for _ in 0..64 {
        packed.write_all(&[0; 1 << 20]).unwrap();
    }
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 1 << 20);
    assert!(matches!(fault(&packed), TarFault::TotalContentLimitExceeded { bytes, .. } if bytes == 2 << 30));
    let cut = &packed[..packed.len() / 2];
    let small = ImportOptions { max_total_content_bytes: 4 << 30, ..options(TarLayout::Shredder) };
    assert!(matches!(import(cut, small), Err(Error::Archive { fault: TarFault::Read(_), .. })));
}

#[test]
fn zeros_take_no_room_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.h5");
    let contents = [vec![0; 3 << 20], vec![1; 100], vec![0; (64 << 20) - 100]].concat();
    let mut builder = tar::Builder::new(Vec::new());
    builder.append(&header("small", b'0', 10), &[5; 10][..]).unwrap();
    builder.append(&header("zeros", b'0', contents.len() as u64), &*contents).unwrap();
    builder.append(&header("last", b'0', 10), &[6; 10][..]).unwrap();
    let archive = builder.into_inner().unwrap();
    let importer = Importer::create_file_for_swmr(&path, File::options(), ImportOptions::default()).unwrap();
    let source = TarSource::new(Box::new(Cursor::new(archive.clone())), "zeros", None).unwrap();
    importer.import(source, &mut |_| {}).unwrap();
    let file = File::open(&path).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 8 << 20, "chunks of zeros are not stored");
    assert!(exported(&file) == archive);
    let samples = h5live::archive::Archive::open(&file).unwrap();
    assert!(samples.read(1).unwrap() == contents);
    assert_eq!(samples.read_by_name("last").unwrap(), [6; 10]);
}

#[test]
fn a_digest_of_every_algorithm_is_that_of_its_program() {
    // sha1sum, b3sum and xxh128sum of "abc".
    let wanted = [
        (DigestAlgorithm::Sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (DigestAlgorithm::Blake3, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
        (DigestAlgorithm::Xxh3_128, "06b05ab6733a618578af5f94892f3950"),
    ];
    for (algorithm, digest) in wanted {
        assert_eq!(h5live_archive::hex(&algorithm.digest(b"abc")), digest, "{algorithm}");
        let mut hasher = algorithm.hasher();
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(h5live_archive::hex(&hasher.finish()), digest, "{algorithm}");
    }
}
