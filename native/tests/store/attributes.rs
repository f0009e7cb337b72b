//! Attributes in the header and in heaps, changed by h5live and by libhdf5 (through h5py).
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it each test says that it is skipped.

use h5live_checker::file::check_path;
use h5live_model::{
    AttributeData, ByteOrder, Dataspace, Datatype, LinkTarget, Name, ObjectId, ObjectScope, PublishLevel, Shape, Sign,
    Store, StoreWriter,
};
use h5live_native::{Mode, NativeFile};

use crate::h5py_lab::H5pyLab;

impl H5pyLab {
    /// Changes the file, and checks it here and there.
    fn change(&self, change: impl FnOnce(&NativeFile, ObjectId), left: impl Iterator<Item = u32>, check: &str) {
        let file = self.open(Mode::Write);
        let group = group(&file);
        change(&file, group);
        let left: Vec<u32> = left.collect();
        check_all(&file, group, &left);
        file.close().unwrap();
        check_path(&self.path()).unwrap().expect_clean();
        let file = self.open(Mode::Read);
        check_all(&file, group, &left);
        drop(file);
        self.python(&["check", check]);
    }
}

fn group(file: &NativeFile) -> ObjectId {
    match file.link(file.session().root, &"g".into()).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    }
}

fn name(number: u32) -> Name {
    match number % 7 {
        0 => format!("a {number} é").into(),
        _ => format!("a {number}{}", "x".repeat(number as usize % 40)).into(),
    }
}

/// As the script sets them.
fn value(number: u32) -> Vec<u8> {
    let count = match number {
        _ if number % 1000 == 999 => 20_000,
        _ if number % 100 == 99 => 1500,
        _ => number % 9,
    };
    (0..count).flat_map(|at| (at + number).to_le_bytes()).collect()
}

fn set(file: &NativeFile, group: ObjectId, number: u32, value: Vec<u8>) {
    let attribute = AttributeData {
        name: name(number),
        datatype: Datatype::integer(4, ByteOrder::Little, Sign::Signed),
        committed_datatype: None,
        dataspace: Dataspace::Simple(Shape::fixed(&[value.len() as u64 / 4])),
        value,
        creation_order: None,
    };
    file.set_attribute(group, &attribute).unwrap();
}

fn add(file: &NativeFile, group: ObjectId, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| set(file, group, number, value(number)));
}

fn remove(file: &NativeFile, group: ObjectId, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| file.remove_attribute(group, &name(number)).unwrap());
}

fn check_all(file: &NativeFile, group: ObjectId, numbers: &[u32]) {
    let mut names = file.attribute_names(group).unwrap();
    names.sort();
    let mut expected: Vec<_> = numbers.iter().map(|number| name(*number)).collect();
    expected.sort();
    assert_eq!(names, expected);
    for number in numbers {
        assert_eq!(file.attribute(group, &name(*number)).unwrap().unwrap().value, value(*number));
    }
}

/// h5py makes a group, we change it, h5py goes on, and so on, until nothing is left.
fn change_in_turns(libver: &str, tracked: &str) {
    let Some(lab) = H5pyLab::new("attributes.py") else { return };
    lab.python(&["make", libver, tracked, "0", "5"]);
    lab.change(|file, group| add(file, group, 5..8), 0..8, "0:8");
    lab.change(|file, group| add(file, group, 8..9), 0..9, "0:9");
    lab.change(|file, group| add(file, group, 9..1200), 0..1200, "0:1200");
    lab.python(&["add", "1200", "1500"]);
    lab.python(&["remove", "100", "300"]);
    // In place, shorter, longer, huge, and back.
    let numbers = || (0..100).chain(300..1500);
    lab.change(
        |file, group| {
            for number in numbers().filter(|number| number % 3 == 0) {
                set(file, group, number, vec![7; value(number).len()]);
                set(file, group, number, vec![7; 4]);
                set(file, group, number, vec![7; if number % 27 == 0 { 8000 } else { 400 }]);
            }
            file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            numbers().for_each(|number| set(file, group, number, value(number)));
        },
        numbers(),
        "0:100,300:1500",
    );
    lab.change(
        |file, group| {
            add(file, group, 1500..2000);
            file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            remove(file, group, 300..1400);
            file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            add(file, group, 2000..2300);
        },
        (0..100).chain(1400..2300),
        "0:100,1400:2300",
    );
    lab.python(&["add", "2300", "2500"]);
    lab.python(&["remove", "0", "100"]);
    // Back into the header, and out of it by one that is too large for it.
    lab.change(|file, group| remove(file, group, 1400..2495), 2495..2500, "2495:2500");
    lab.change(|file, group| add(file, group, 2999..3000), (2495..2500).chain(2999..3000), "2495:2500,2999:3000");
    lab.change(|file, group| remove(file, group, 2999..3000), 2495..2500, "2495:2500");
    lab.python(&["add", "3000", "3020"]);
    lab.change(
        |file, group| {
            remove(file, group, 2495..2500);
            remove(file, group, 3000..3020);
        },
        0..0,
        "",
    );
    lab.python(&["add", "0", "20"]);
    lab.python(&["remove", "0", "20"]);
    lab.change(|file, group| add(file, group, 0..20), 0..20, "0:20");
}

#[test]
fn two_programs_change_attributes_in_turns() {
    change_in_turns("v110", "untracked");
}

#[test]
fn two_programs_change_attributes_of_which_the_order_of_creation_is_kept_in_turns() {
    change_in_turns("latest", "tracked");
}
