//! `copy --on-unsupported skip` and `--on-damage skip`: what cannot be copied is left out and named, and all the rest is there.

use std::os::unix::fs::FileExt;
use std::path::Path;

use h5live::model::LinkTarget;
use h5live::{File, Object, Reference};

use crate::common::{error, run};

/// The exit code and what was said on standard error.
fn copied(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(arguments);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A location of each store that does not hold everything.
fn narrow_stores(folder: &Path) -> Vec<String> {
    let at = |kind: &str| format!("{kind}:{}", folder.join(format!("store-{kind}")).display());
    let kinds = [("kv", cfg!(feature = "kv")), ("hsds", cfg!(feature = "hsds"))];
    kinds.iter().filter(|(_, is_built)| *is_built).map(|(kind, _)| at(kind)).collect()
}

/// A reference to an object.
fn to(object: Object) -> Reference {
    object.reference().unwrap()
}

#[test]
fn what_a_store_cannot_hold_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("from.h5").display().to_string();
    std::fs::write(folder.path().join("raw.bin"), [1, 2, 3]).unwrap();
    let file = File::create(&path).unwrap();
    let sound = file.new_dataset::<u8>().create_with_data("group/sound", &[1u8, 2, 3]).unwrap();
    let raw = file.new_dataset::<u8>().shape(&[3]).external("raw.bin", 0, 3).create("group/raw").unwrap();
    file.group("group").unwrap().link_hard("again", raw.id()).unwrap();
    file.group("/").unwrap().link_hard("raw", raw.id()).unwrap();
    let references = file.new_dataset::<Reference>().shape(&[2]).create("references").unwrap();
    references.write(&[to(Object::Dataset(sound.clone())), to(Object::Dataset(raw.clone()))]).unwrap();
    sound.set_attribute("see", &to(Object::Dataset(raw))).unwrap();
    let odd = LinkTarget::UserDefined { class: 70, data: vec![1, 2] };
    file.store().writer().unwrap().add_link(file.group("group").unwrap().id(), &"odd".into(), &odd).unwrap();
    file.close().unwrap();

    for store in narrow_stores(folder.path()) {
        let refused = error(&run(&["copy", &path, &store]));
        assert!(refused.ends_with("is not supported"), "{refused}");
        assert!(File::open(&*store).is_err(), "{store}");
        let (code, said) = copied(&["copy", "--on-unsupported=skip", &path, &store]);
        assert_eq!(code, Some(1), "{said}");
        let lines: Vec<_> = said.lines().filter(|line| line.starts_with("left out: ")).collect();
        let copy = File::open(&*store).unwrap();
        assert_eq!(copy.dataset("group/sound").unwrap().read::<u8>().unwrap(), [1, 2, 3]);
        let has = |path: &str| copy.object(path).is_ok();
        for name in ["group/raw", "group/again", "raw"] {
            assert!(!has(name), "{store}: {name}");
            assert!(lines.iter().any(|line| line.contains(&format!("/{name}: "))), "{said}");
        }
        let is_odd_there = copy.group("group").unwrap().link("odd").unwrap().is_some();
        assert_eq!(lines.iter().any(|line| line.contains("/group/odd: ")), !is_odd_there, "{said}");
        let found = copy.dataset("references").unwrap().read::<Reference>().unwrap();
        assert!(copy.dereference(&found[0]).unwrap().is_some() && copy.dereference(&found[1]).unwrap().is_none());
        let lost = said.lines().filter(|line| line.contains("1 reference to objects that are not copied"));
        assert_eq!(lost.count(), 2, "{said}");
        let checked = run(&["check", "--data", &store]);
        let checked = String::from_utf8(checked.stdout).unwrap();
        assert!(
            checked.contains("nothing wrong found") || checked.contains(": sound; 4 objects"),
            "{store}: {checked}"
        );
    }
}

#[test]
fn what_is_left_out_is_named_with_the_place_of_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("from.h5").display().to_string();
    let file = File::create(&path).unwrap();
    file.new_dataset::<String>().create_with_data("texts", &["a".to_owned()]).unwrap();
    file.close().unwrap();
    let log = format!("log:{}?layout=logvol", folder.path().join("log.h5").display());
    let (code, said) = copied(&["copy", "--on-unsupported=skip", &path, &log]);
    assert_eq!(code, Some(1), "{said}");
    let place = log.split('?').next().unwrap();
    assert!(said.starts_with(&format!("left out: {place}: /texts: ")), "{said}");
}

/// Writes zeros over what begins at an address.
fn damage(path: &Path, at: u64) {
    std::fs::File::options().write(true).open(path).unwrap().write_all_at(&[0; 16], at).unwrap();
}

#[test]
fn what_is_damaged_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.h5");
    let name = path.to_str().unwrap();
    let file = File::create(&path).unwrap();
    for name in ["a", "header", "z"] {
        file.new_dataset::<u16>().create_with_data(name, &[1, 2, 3]).unwrap();
    }
    let values = file.new_dataset::<u16>().shape(&[6]).chunk_shape(&[3]).deflate(1).create("values").unwrap();
    values.write(&[1u16, 2, 3, 4, 5, 6]).unwrap();
    // It is copied before the one to which it leads is found to be damaged.
    let early = file.new_dataset::<Reference>().shape(&[2]).create("early").unwrap();
    let damaged = file.new_dataset::<Reference>().shape(&[1]).chunk_shape(&[1]).deflate(1).create("refs").unwrap();
    damaged.write(&[to(file.object("a").unwrap())]).unwrap();
    early.write(&[to(file.object("z").unwrap()), to(file.object("refs").unwrap())]).unwrap();
    let references = file.new_dataset::<Reference>().shape(&[2]).create("references").unwrap();
    references.write(&[to(file.object("a").unwrap()), to(file.object("values").unwrap())]).unwrap();
    let noted = file.dataset("z").unwrap();
    noted.set_attribute("note", &"a text that lies in a heap").unwrap();
    noted.set_attribute("unit", &7u8).unwrap();
    noted.set_attribute("see", &to(Object::Dataset(damaged.clone()))).unwrap();
    let heap = u64::from_le_bytes(noted.attribute("note").unwrap().raw()[4..12].try_into().unwrap());
    file.create_group("group/below").unwrap();
    file.flush().unwrap();
    let chunks = [&values, &damaged].map(|data| data.stored_chunks().unwrap().last().unwrap().file_offset.unwrap());
    let header = file.dataset("header").unwrap().id();
    let group = file.group("group").unwrap().id();
    file.close().unwrap();
    let addresses = [header, group].map(|id| u64::try_from(id.0).unwrap());
    addresses.into_iter().chain(chunks).chain([heap]).for_each(|at| damage(&path, at));

    let mut targets = narrow_stores(folder.path());
    targets.push(folder.path().join("copy.h5").display().to_string());
    for target in targets {
        error(&run(&["copy", "--filter", "none", name, &target]));
        let (code, said) = copied(&["copy", "--on-damage=skip", "--filter", "none", name, &target]);
        assert_eq!(code, Some(1), "{said}");
        for path in ["/header", "/group", "/values", "/refs", "/z@note"] {
            assert!(said.contains(&format!("left out: {name}: {path}: ")), "{said}");
        }
        let copy = File::open(&*target).unwrap();
        let names: Vec<_> = copy.root().names().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a", "early", "references", "z"], "{target}");
        let noted = copy.dataset("z").unwrap();
        assert_eq!(noted.read::<u16>().unwrap(), [1, 2, 3]);
        assert_eq!(noted.attribute("unit").unwrap().read_scalar::<u8>().unwrap(), 7);
        assert!(noted.attribute("note").is_err(), "it is left out");
        let see = noted.attribute("see").unwrap().read_scalar::<Reference>().unwrap();
        assert!(copy.dereference(&see).unwrap().is_none());
        let found = copy.dataset("early").unwrap().read::<Reference>().unwrap();
        assert!(copy.dereference(&found[0]).unwrap().is_some() && copy.dereference(&found[1]).unwrap().is_none());
        for path in ["/early", "/z@see"] {
            let line = format!("left out: {path}: 1 reference to objects that are not copied");
            assert_eq!(said.lines().filter(|said| *said == line).count(), 1, "{said}");
        }
        let found = copy.dataset("references").unwrap().read::<Reference>().unwrap();
        assert!(copy.dereference(&found[0]).unwrap().is_some() && copy.dereference(&found[1]).unwrap().is_none());
        assert!(said.contains("left out: /references: 1 reference to objects that are not copied"), "{said}");
        copy.close().unwrap();
        assert_eq!(run(&["check", &target]).status.code(), Some(0), "{target}");
    }
}
