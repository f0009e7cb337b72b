//! Archives that try to lead out of the folder where they are extracted.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use h5live::File;
use h5live_archive::{ExtractReport, Extractor, ImportOptions, ImportedTar, Importer, TarSource};
use proptest::prelude::*;

/// An entry of an archive: its kind, its path, and where it leads or what it has.
type Entry<'a> = (u8, &'a str, &'a str);

/// Names as they are: the builder of the crate `tar` refuses some.
fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (kind, path, text) in entries {
        let is_file = *kind == b'0';
        let mut header = tar::Header::new_gnu();
        let old = header.as_old_mut();
        old.name[..path.len()].copy_from_slice(path.as_bytes());
        if !is_file {
            old.linkname[..text.len()].copy_from_slice(text.as_bytes());
        }
        header.set_entry_type(tar::EntryType::new(*kind));
        header.set_size(if is_file { text.len() as u64 } else { 0 });
        header.set_mode(0o755);
        header.set_cksum();
        builder.append(&header, if is_file { text.as_bytes() } else { b"" }).unwrap();
    }
    builder.into_inner().unwrap()
}

/// A folder with what may not be touched around the one into which archives are extracted.
struct Surroundings {
    folder: tempfile::TempDir,
}

const NAMES: [&str; 4] = ["a", "b", "c", "out"];

impl Surroundings {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Every name that leads out leads to something.
        let above = folder.path().join("above");
        for outside in [above.clone(), above.join("outside")] {
            fs::create_dir_all(&outside).unwrap();
            for name in NAMES.into_iter().filter(|name| *name != "out") {
                fs::write(outside.join(name), "secret").unwrap();
            }
        }
        fs::create_dir(above.join("out")).unwrap();
        Surroundings { folder }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("above/out")
    }

    fn extract(&self, entries: &[Entry<'_>]) -> ExtractReport {
        let file = File::in_memory();
        let source = TarSource::new(Box::new(Cursor::new(archive(entries))), "archive", None).unwrap();
        Importer::create(&file, ImportOptions::default()).unwrap().import(source, &mut |_| {}).unwrap();
        let tar = ImportedTar::open(&file).unwrap();
        Extractor::open_or_create_target(&tar, &self.out()).unwrap().extract(&|_| true).unwrap()
    }

    /// Everything around the folder, with its contents, and how many names it has.
    fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let stat = fs::symlink_metadata(&entry).unwrap();
                if stat.is_dir() && entry != self.out() {
                    folders.push(entry.clone());
                }
                let mut bytes = if stat.is_file() { fs::read(&entry).unwrap() } else { Vec::new() };
                #[cfg(unix)]
                if stat.is_file() {
                    bytes.extend(format!("{}", std::os::unix::fs::MetadataExt::nlink(&stat)).into_bytes());
                }
                found.insert(entry, bytes);
            }
        }
        found
    }

    /// The links in the folder that lead out of it, but for `known`.
    fn leading_out(&self, known: &[&str]) -> Vec<PathBuf> {
        let out = self.out().canonicalize().unwrap();
        let mut found = Vec::new();
        let mut folders = vec![out.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let stat = fs::symlink_metadata(&entry).unwrap();
                if stat.is_dir() {
                    folders.push(entry.clone());
                }
                let is_known = known.iter().any(|name| out.join(name) == entry);
                if stat.is_symlink() && !is_known && entry.canonicalize().is_ok_and(|to| !to.starts_with(&out)) {
                    found.push(entry);
                }
            }
        }
        found
    }
}

fn refused(report: &ExtractReport) -> Vec<&str> {
    report.refused_paths_with_reasons.iter().map(|(path, _)| &**path).collect()
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|stat| stat.is_symlink())
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_by_way_of_another_link_is_not_made() {
    let around = Surroundings::new();
    let before = around.outside();
    let report =
        around.extract(&[(b'2', "dot", "."), (b'2', "p", "dot/.."), (b'0', "d/e/f", "f"), (b'2', "d/up", "..")]);
    assert_eq!(refused(&report), ["p"]);
    assert!(is_link(&around.out().join("dot")) && is_link(&around.out().join("d/up")));
    // The same over a link of an earlier archive.
    let report =
        around.extract(&[(b'2', "q", "dot/../../c"), (b'2', "r", "d/up/../a"), (b'2', "s", "d/e/../up/d/e/f")]);
    assert_eq!(refused(&report), ["q", "r"]);
    assert_eq!(fs::read(around.out().join("s")).unwrap(), b"f");
    assert_eq!(around.leading_out(&[]), Vec::<PathBuf>::new());
    assert_eq!(around.outside(), before);
}

#[cfg(unix)]
#[test]
fn targets_that_lead_out_are_refused_wherever_they_do() {
    let around = Surroundings::new();
    let before = around.outside();
    let folders = [(b'5', "d/e/", ""), (b'0', "d/e/f", "f")];
    around.extract(&folders);
    for target in
        ["..", "../a", "/etc", "//etc", "d/../..", "d/e/../../..", "./../a", "d/./../../a", "no/../..", "no/.."]
    {
        assert_eq!(refused(&around.extract(&[(b'2', "p", target)])), ["p"], "{target}");
        assert!(!is_link(&around.out().join("p")), "{target}");
    }
    for (link, target) in
        [("p", "d/e/../e/f"), ("d/e/p", "../../d/e/f"), ("d/p", "./e//f"), ("d/q", ".."), ("n", "no/x")]
    {
        assert!(around.extract(&[(b'2', link, target)]).refused_paths_with_reasons.is_empty(), "{target}");
        assert_eq!(fs::read_link(around.out().join(link)).unwrap(), Path::new(target));
    }
    assert_eq!(around.leading_out(&[]), Vec::<PathBuf>::new());
    assert_eq!(around.outside(), before);
}

#[cfg(unix)]
#[test]
fn a_link_that_takes_the_place_of_another_does_not_make_a_third_one_lead_out() {
    let around = Surroundings::new();
    let first = [(b'0', "a/b/c", "c"), (b'2', "q", "a/b"), (b'2', "p", "q/../.."), (b'2', "r", "q/..")];
    around.extract(&first);
    around.extract(&[(b'2', "q", "."), (b'2', "s", "t/.."), (b'2', "t", ".")]);
    assert_eq!(around.leading_out(&[]), Vec::<PathBuf>::new());
    // In one archive, too.
    let around = Surroundings::new();
    around.extract(&[first[0], first[1], first[3], (b'2', "q", "."), (b'5', "x/y/", ""), (b'2', "x/y", "../..")]);
    assert_eq!(around.leading_out(&[]), Vec::<PathBuf>::new());
}

#[cfg(unix)]
#[test]
fn links_that_were_in_the_folder_before_are_not_gone_through() {
    let around = Surroundings::new();
    std::os::unix::fs::symlink("../outside", around.out().join("ext")).unwrap();
    for link in ["file", "other"] {
        std::os::unix::fs::symlink("../outside/c", around.out().join(link)).unwrap();
    }
    fs::create_dir(around.out().join("d")).unwrap();
    std::os::unix::fs::symlink("../../outside", around.out().join("d/ext")).unwrap();
    let before = around.outside();
    let report = around.extract(&[
        (b'0', "ext/a", "over"),
        (b'5', "ext/new/", ""),
        (b'5', "ext/", ""),
        (b'2', "p", "ext"),
        (b'2', "ext/p", "a"),
        (b'2', "r", "later/ext"),
        (b'2', "later", "d"),
        (b'1', "h", "ext/a"),
        (b'1', "i", "other"),
        (b'0', "file", "mine"),
    ]);
    assert_eq!(refused(&report), ["ext/a", "ext/new/", "ext/", "p", "ext/p", "h", "i", "r"], "{report:?}");
    assert_eq!(fs::read(around.out().join("file")).unwrap(), b"mine");
    assert!(!is_link(&around.out().join("file")));
    assert_eq!(around.leading_out(&["ext", "d/ext", "other"]), Vec::<PathBuf>::new());
    assert_eq!(around.outside(), before);
}

#[test]
fn names_and_hard_links_that_lead_out_are_refused() {
    let around = Surroundings::new();
    let before = around.outside();
    let report = around.extract(&[
        (b'0', "../a", "over"),
        (b'0', "/tmp/h5live-absolute", "over"),
        (b'0', "x/../../a", "over"),
        (b'5', "../new/", ""),
        (b'5', "..", ""),
        (b'2', "../l", "a"),
        (b'1', "../h", "x"),
        (b'0', "x", "x"),
        (b'1', "h", "../a"),
        (b'1', "i", "/etc/passwd"),
        (b'1', "j", "x/../../a"),
    ]);
    assert_eq!(report.refused_paths_with_reasons.len(), 10, "{report:?}");
    assert_eq!(around.outside(), before);
    assert!(!Path::new("/tmp/h5live-absolute").exists());
    assert_eq!(around.extract(&[(b'0', "x", "x"), (b'1', "h", "x")]).extracted_entries, 2);
    assert_eq!(fs::read(around.out().join("h")).unwrap(), b"x");
}

fn entry() -> impl Strategy<Value = (u8, String, String)> {
    let name = || prop::sample::select(vec!["a", "b", "c", "out", ".", ".."]);
    let path = || prop::collection::vec(name(), 1..5).prop_map(|names| names.join("/"));
    (prop::sample::select(vec![b'0', b'1', b'2', b'2', b'2', b'5']), path(), path())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]
    #[test]
    fn nothing_leads_out_after_any_archives(
        archives in prop::collection::vec(prop::collection::vec(entry(), 1..9), 1..4),
    ) {
        let around = Surroundings::new();
        let before = around.outside();
        for archive in &archives {
            let entries: Vec<Entry<'_>> =
                archive.iter().map(|(kind, path, text)| (*kind, path.as_str(), text.as_str())).collect();
            around.extract(&entries);
            prop_assert_eq!(around.leading_out(&[]), Vec::<PathBuf>::new());
            prop_assert_eq!(around.outside(), before.clone());
        }
    }
}
