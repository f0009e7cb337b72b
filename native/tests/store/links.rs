//! Links of groups in each of the ways in which files keep them, changed by h5live and by libhdf5 (through h5py).
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it each test says that it is skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use h5live_checker::file::check_path;
use h5live_model::{LinkTarget, Name, NewObject, ObjectId, ObjectScope, ObjectSpec, PublishLevel, Store, StoreWriter};
use h5live_native::{LibVer, MemoryStorage, Mode, NativeFile, OpenOptions};

use crate::h5py_lab::H5pyLab;

fn name(number: u32) -> Name {
    name_in(number, false)
}

/// As the script names links; `is_old` says whether groups of the file have symbol tables.
fn name_in(number: u32, is_old: bool) -> Name {
    match number % 7 {
        0 if !is_old => format!("link {number} é").into(),
        _ => format!("link {number}{}", "x".repeat(number as usize % 40)).into(),
    }
}

fn hard(file: &NativeFile, group: ObjectId, name: &str) -> ObjectId {
    match file.link(group, &name.into()).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    }
}

/// As the script adds them.
fn add(file: &NativeFile, group: ObjectId, number: u32, is_old: bool) {
    let target = match number % 4 {
        0 => {
            return file
                .create(&NewObject::linked(group, &name_in(number, is_old), &ObjectSpec::group()))
                .map(drop)
                .unwrap();
        }
        1 => LinkTarget::Soft(format!("/target/{number}").into()),
        2 if is_old => LinkTarget::Soft(format!("/o{number}").into()),
        2 => LinkTarget::External { file: "other.h5".into(), path: format!("/o{number}").into() },
        _ => LinkTarget::Hard(hard(file, file.session().root, "shared")),
    };
    file.add_link(group, &name_in(number, is_old), &target).unwrap();
}

fn names(file: &NativeFile, group: ObjectId) -> Vec<Name> {
    let mut names = Vec::new();
    file.for_each_link(group, &mut |link| {
        names.push(link.name);
        true
    })
    .unwrap();
    names.sort();
    names
}

fn expected(numbers: impl Iterator<Item = u32>, is_old: bool) -> Vec<Name> {
    let mut names: Vec<_> = numbers.map(|number| name_in(number, is_old)).collect();
    names.sort();
    names
}

/// h5py makes a group, we change it, h5py goes on, and so on, until nothing is left.
fn change_in_turns(libver: &str, tracked: &str) {
    let Some(lab) = H5pyLab::new("group.py") else { return };
    lab.python(&["make", libver, tracked, "0", "5"]);
    let is_old = libver == "earliest";
    let add = |file: &NativeFile, group: ObjectId, number: u32| add(file, group, number, is_old);
    let name = |number| name_in(number, is_old);
    let ours = |change: &mut dyn FnMut(&NativeFile, ObjectId), left: &mut dyn Iterator<Item = u32>, check: &str| {
        let file = lab.open(Mode::Write);
        let group = hard(&file, file.session().root, "g");
        change(&file, group);
        let left = expected(left, is_old);
        assert_eq!(names(&file, group), left);
        file.close().unwrap();
        check_path(&lab.path()).unwrap().expect_clean();
        let file = lab.open(Mode::Read);
        assert_eq!(names(&file, group), left);
        drop(file);
        lab.python(&["check", check]);
    };
    // Some more stay in the header, then all move out of it.
    ours(&mut |file, group| (5..8).for_each(|n| add(file, group, n)), &mut (0..8), "0:8");
    ours(&mut |file, group| (8..9).for_each(|n| add(file, group, n)), &mut (0..9), "0:9");
    ours(&mut |file, group| (9..1000).for_each(|n| add(file, group, n)), &mut (0..1000), "0:1000");
    lab.python(&["add", "1000", "1500"]);
    lab.python(&["remove", "100", "300"]);
    lab.python(&["check", "0:100,300:1500"]);
    ours(
        &mut |file, group| {
            (1500..2500).for_each(|n| add(file, group, n));
            (400..1400).for_each(|n| file.remove_link(group, &name(n)).unwrap());
        },
        &mut (0..100).chain(300..400).chain(1400..2500),
        "0:100,300:400,1400:2500",
    );
    // What was removed before a flush is used again after it.
    ours(
        &mut |file, group| {
            (2500..2600).for_each(|n| add(file, group, n));
            file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            (1400..2400).for_each(|n| file.remove_link(group, &name(n)).unwrap());
            file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            (2600..2900).for_each(|n| add(file, group, n));
        },
        &mut (0..100).chain(300..400).chain(2400..2900),
        "0:100,300:400,2400:2900",
    );
    lab.python(&["add", "2900", "3500"]);
    lab.python(&["remove", "0", "100"]);
    lab.python(&["remove", "300", "400"]);
    // Back into the header, and out of it again.
    ours(
        &mut |file, group| (2400..3495).for_each(|n| file.remove_link(group, &name(n)).unwrap()),
        &mut (3495..3500),
        "3495:3500",
    );
    lab.python(&["add", "3500", "3520"]);
    ours(
        &mut |file, group| {
            (3495..3515).for_each(|n| file.remove_link(group, &name(n)).unwrap());
            (3520..3530).for_each(|n| add(file, group, n));
            (3515..3530).for_each(|n| file.remove_link(group, &name(n)).unwrap());
        },
        &mut (0..0),
        "",
    );
    lab.python(&["add", "0", "20"]);
    lab.python(&["remove", "0", "20"]);
    lab.python(&["check", ""]);
}

#[test]
fn two_programs_change_a_group_in_turns() {
    change_in_turns("v110", "untracked");
}

#[test]
fn two_programs_change_a_group_of_the_old_style_in_turns() {
    change_in_turns("earliest", "untracked");
}

#[test]
fn two_programs_change_a_group_that_keeps_the_order_of_creation_in_turns() {
    change_in_turns("latest", "tracked");
}

#[test]
fn libhdf5_reads_files_of_the_earliest_profile() {
    let Some(lab) = H5pyLab::new("group.py") else { return };
    let options = OpenOptions { mode: Mode::Create, profile: LibVer::Earliest, ..Default::default() };
    let file = NativeFile::open(&lab.path(), &options).unwrap();
    let group = file.create(&NewObject::linked(file.session().root, &"g".into(), &ObjectSpec::group())).unwrap();
    file.create(&NewObject::linked(file.session().root, &"shared".into(), &ObjectSpec::group())).unwrap();
    (0..300).for_each(|number| add(&file, group, number, true));
    file.close().unwrap();
    lab.python(&["check", "0:300"]);
    lab.python(&["add", "300", "600"]);
    lab.python(&["remove", "0", "300"]);
    let file = lab.open(Mode::Read);
    assert_eq!(names(&file, group), expected(300..600, true));
}

#[test]
fn a_symbol_table_makes_way_for_links_that_it_cannot_hold() {
    let Some(lab) = H5pyLab::new("group.py") else { return };
    for many in [3, 30] {
        lab.python(&["make", "earliest", "untracked", "0", &many.to_string()]);
        let file = lab.open(Mode::Write);
        let group = hard(&file, file.session().root, "g");
        let external = LinkTarget::External { file: "other.h5".into(), path: "/x".into() };
        let ours: [Name; 2] = ["external".into(), "é".into()];
        file.add_link(group, &ours[0], &external).unwrap();
        file.add_link(group, &ours[1], &LinkTarget::Soft("/".into())).unwrap();
        let all = |file: &NativeFile| {
            let mut all = expected(0..many, true);
            all.extend(ours.clone());
            all.sort();
            assert_eq!(names(file, group), all);
            assert_eq!(file.link(group, &ours[0]).unwrap().unwrap().target, external);
        };
        all(&file);
        file.close().unwrap();
        check_path(&lab.path()).unwrap().expect_clean();
        let file = lab.open(Mode::Write);
        all(&file);
        ours.iter().for_each(|name| file.remove_link(group, name).unwrap());
        file.close().unwrap();
        check_path(&lab.path()).unwrap().expect_clean();
        lab.python(&["check", &format!("0:{many}")]);
    }
}

#[test]
fn a_link_is_found_by_one_thread_while_another_changes_the_group() {
    let file = NativeFile::open_storage(
        Arc::new(MemoryStorage::default()),
        &OpenOptions { mode: Mode::Create, ..Default::default() },
    );
    let file = file.unwrap();
    let root = file.session().root;
    let add = |n: u32| file.add_link(root, &name(n), &LinkTarget::Soft("/".into())).unwrap();
    add(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                (1..200).for_each(add);
                file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
                (1..200).for_each(|n| file.remove_link(root, &name(n)).unwrap());
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            assert!(file.link(root, &name(0)).unwrap().is_some());
            assert!(names(&file, root).contains(&name(0)));
        }
    });
    assert_eq!(names(&file, root), [name(0)]);
}

#[test]
fn names_that_are_sought_again_and_again_are_found_as_at_first() {
    let storage = Arc::new(MemoryStorage::default());
    let file =
        NativeFile::open_storage(storage.clone(), &OpenOptions { mode: Mode::Create, ..Default::default() }).unwrap();
    let root = file.session().root;
    for n in 0..500 {
        file.add_link(root, &name(n), &LinkTarget::Soft(format!("/target/{n}").into())).unwrap();
    }
    file.close().unwrap();
    let file = NativeFile::open_storage(storage, &OpenOptions { mode: Mode::Read, ..Default::default() }).unwrap();
    for round in 0..3 {
        for n in 0..500 {
            let link = file.link(root, &name(n)).unwrap().unwrap();
            let target = LinkTarget::Soft(format!("/target/{n}").into());
            assert_eq!((link.name, link.target), (name(n), target), "{round}");
            assert_eq!(file.link(root, &name(n + 500)).unwrap(), None, "{round}");
        }
    }
    file.close().unwrap();
    assert!(file.link(root, &name(0)).is_err(), "the file is closed");
}

#[test]
fn who_follows_a_writer_finds_every_link_that_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let open = |mode| NativeFile::open(&path, &OpenOptions { mode, ..Default::default() }).unwrap();
    let writer = open(Mode::Create);
    let root = writer.session().root;
    writer.start_swmr().unwrap();
    let flushed = AtomicU32::new(0);
    const ALL: u32 = 1500;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..ALL {
                match number % 2 {
                    0 => drop(writer.create(&NewObject::linked(root, &name(number), &ObjectSpec::group())).unwrap()),
                    _ => writer.add_link(root, &name(number), &LinkTarget::Soft("/".into())).unwrap(),
                }
                if number % 3 == 0 {
                    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
                    flushed.store(number + 1, Ordering::Release);
                }
            }
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            flushed.store(ALL, Ordering::Release);
        });
        let reader = open(Mode::SwmrRead);
        let mut known = 0;
        while known < ALL {
            known = flushed.load(Ordering::Acquire);
            let found = names(&reader, root);
            assert!(found.len() >= known as usize, "{} links, {known} were flushed", found.len());
            for number in (0..known).rev().take(20) {
                let link = reader.link(root, &name(number)).unwrap().unwrap();
                if let LinkTarget::Hard(id) = link.target {
                    assert!(names(&reader, id).is_empty());
                }
            }
        }
        assert_eq!(names(&reader, root), expected(0..ALL, false));
    });
}
