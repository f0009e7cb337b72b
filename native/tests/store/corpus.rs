//! Files of many programs and versions: links and attributes are added to every object in them, and removed again; what
//! else they hold must stay as it is, for libhdf5 (through h5py).
//!
//! Needs the shared corpus that `H5LIVE_SHARED` names, and the Python that `H5LIVE_PYTHON` names, with h5py; without
//! them the test says that it is skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use h5live_checker::file::check_path;
use h5live_model::{
    AttributeData, ByteOrder, Dataspace, Datatype, LinkTarget, Name, ObjectId, ObjectKind, Result, Shape, Sign, Store,
    StoreWriter,
};
use h5live_native::{Mode, NativeFile, OpenOptions};

/// Files above this many bytes are left out.
const LARGEST: u64 = 4 << 20;

/// Objects that are changed in one file.
const OBJECTS: usize = 60;

/// The files that are changed have one of these in their names. `H5LIVE_FILES` has other ones: nothing for all files.
const PARTS: &str = "group,link,attr,dense,names,sizes,sohm,user,earliest";

const LINKS: u32 = 12;
const ATTRIBUTES: u32 = 11;

fn files(folder: &Path, below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder.join(below)).unwrap().map(|entry| entry.unwrap()) {
        let name = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            if entry.file_name() != "malformed" {
                files(folder, &name, found);
            }
        } else {
            found.push(name);
        }
    }
}

fn name(number: u32) -> Name {
    format!("zz{}", "y".repeat(number as usize)).into()
}

fn attribute(number: u32) -> AttributeData {
    let len = if number == 7 { 5000 } else { number };
    AttributeData {
        name: name(number),
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        committed_datatype: None,
        dataspace: Dataspace::Simple(Shape::fixed(&[len.into()])),
        value: vec![number as u8; len as usize],
        creation_order: None,
    }
}

/// The objects of a file, each once.
fn objects(file: &NativeFile) -> Vec<ObjectId> {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![file.session().root]);
    let mut found = Vec::new();
    while let Some(id) = waiting.pop().filter(|_| found.len() < OBJECTS) {
        if seen.insert(id.0) && file.kind(id).is_ok() {
            found.push(id);
            if matches!(file.kind(id), Ok(ObjectKind::Group)) {
                let _ = file.for_each_link(id, &mut |link| {
                    waiting.extend(match link.target {
                        LinkTarget::Hard(id) => Some(id),
                        _ => None,
                    });
                    true
                });
            }
        }
    }
    found
}

/// What could not be changed, and how often, by what the store said about it.
type Refused = BTreeMap<String, usize>;

fn note<T>(refused: &mut Refused, done: Result<T>) -> Option<T> {
    done.map_err(|error| *refused.entry(error.to_string()).or_default() += 1).ok()
}

fn add(file: &NativeFile, refused: &mut Refused) -> Result<usize> {
    let mut added = 0;
    for id in objects(file) {
        if file.kind(id)? == ObjectKind::Group {
            let target = LinkTarget::Soft("/nowhere".into());
            let one = |n| file.add_link(id, &name(n), &target);
            added += (0..LINKS).filter_map(|n| note(refused, one(n))).count();
        }
        added += (0..ATTRIBUTES).filter_map(|n| note(refused, file.set_attribute(id, &attribute(n)))).count();
    }
    Ok(added)
}

fn remove(file: &NativeFile) -> Result<()> {
    for id in objects(file) {
        if file.kind(id)? == ObjectKind::Group {
            for n in (0..LINKS).filter(|n| matches!(file.link(id, &name(*n)), Ok(Some(_)))) {
                file.remove_link(id, &name(n))?;
            }
        }
        for n in (0..ATTRIBUTES).filter(|n| matches!(file.attribute(id, &name(*n)), Ok(Some(_)))) {
            file.remove_attribute(id, &name(n))?;
        }
    }
    Ok(())
}

/// What libhdf5 finds in files: how many of our links and attributes, and in what the rest differs.
fn read(python: &Path, shared: &Path, folder: &Path, names: &[PathBuf]) -> BTreeMap<PathBuf, (usize, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/manifests.py");
    let mut command = Command::new(python);
    command.arg(script).arg(shared).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let input = names.iter().map(|name| format!("{}\n", name.display())).collect::<String>();
    let mut pipe = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, '\t');
        Some((parts.next()?.into(), (parts.next()?.parse().ok()?, parts.next()?.to_owned())))
    });
    lines.collect()
}

#[test]
fn files_of_every_kind_are_changed_and_are_what_they_were() {
    let (Some(python), Some(shared)) = (h5live_test_support::python(), h5live_test_support::shared()) else { return };
    let (corpus, folder) = (shared.join("corpus"), tempfile::tempdir().unwrap());
    let mut all = Vec::new();
    files(&corpus, Path::new(""), &mut all);
    all.retain(|name| corpus.join(name).metadata().unwrap().len() <= LARGEST);
    for name in &all {
        std::fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        std::fs::copy(corpus.join(name), folder.path().join(name)).unwrap();
    }
    let manifest = |name: &PathBuf| PathBuf::from(format!("{}.manifest", name.display()));
    let parts = std::env::var("H5LIVE_FILES").unwrap_or_else(|_| PARTS.into());
    let is_chosen = |name: &&PathBuf| parts.split(',').any(|part| name.to_string_lossy().contains(part));
    let names = all.iter().filter(|name| all.contains(&manifest(name)));
    let names: Vec<PathBuf> = names.filter(is_chosen).cloned().collect();
    let before = read(&python, &shared, folder.path(), &names);
    let names: Vec<_> = names.into_iter().filter(|name| before.get(name).is_some_and(|(_, d)| d.is_empty())).collect();
    let open = |name: &PathBuf| {
        NativeFile::open(&folder.path().join(name), &OpenOptions { mode: Mode::Write, ..Default::default() })
    };
    let is_sound = |name: &PathBuf| check_path(&folder.path().join(name)).is_ok_and(|report| report.is_clean());
    let sound: BTreeSet<_> = names.iter().filter(|name| is_sound(name)).cloned().collect();
    let (mut refused, mut changed, mut wrong) = (Refused::new(), BTreeMap::new(), Vec::new());
    for name in &names {
        let Ok(file) = open(name).map_err(|error| *refused.entry(error.to_string()).or_default() += 1) else {
            continue;
        };
        match add(&file, &mut refused).and_then(|added| file.close().map(|()| added)) {
            Ok(added) => drop(changed.insert(name.clone(), added)),
            Err(error) => wrong.push(format!("{}: {error}", name.display())),
        }
    }
    let names: Vec<_> = changed.keys().cloned().collect();
    let after = read(&python, &shared, folder.path(), &names);
    for name in &names {
        match after.get(name) {
            Some((found, different)) if *found == changed[name] && different.is_empty() => {
                if sound.contains(name) && !is_sound(name) {
                    let report = check_path(&folder.path().join(name));
                    wrong.push(format!("{} is no longer sound: {report:?}", name.display()));
                }
            }
            other => wrong.push(format!("{} with {}: {other:?}", name.display(), changed[name])),
        }
        if let Err(error) = open(name).map_err(Into::into).and_then(|file| remove(&file).and_then(|()| file.close())) {
            wrong.push(format!("{} loses them: {error}", name.display()));
        }
    }
    let after = read(&python, &shared, folder.path(), &names);
    for name in &names {
        match after.get(name) {
            Some((0, different)) if different.is_empty() && (!sound.contains(name) || is_sound(name)) => {}
            other => wrong.push(format!("{} without: {other:?}", name.display())),
        }
    }
    println!("{} files changed; refused: {refused:#?}", names.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
