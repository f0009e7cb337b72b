//! What h5py sees of changes that our writer makes: opened before them, and after.

use std::path::Path;

use h5live::{Dataset, File, Group};

use crate::script::Script;

fn ask(script: &mut Script, question: &str) -> String {
    script.say(question);
    script.line()
}

#[track_caller]
fn expect(script: &mut Script, question: &str, answer: impl ToString) {
    assert_eq!(ask(script, question), answer.to_string(), "{question}");
}

fn look(path: &Path) -> Option<Script> {
    let mut script = Script::start("look.py", &[path.to_str().unwrap()])?;
    assert_eq!(script.line(), "open");
    Some(script)
}

struct Live {
    file: File,
    numbers: Dataset,
    group: Group,
    folder: tempfile::TempDir,
}

fn live(headroom: u64) -> Live {
    let folder = tempfile::tempdir().unwrap();
    let file = File::options().create().eof_headroom(headroom).open(folder.path().join("live.h5")).unwrap();
    let numbers = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[4]).create("numbers").unwrap();
    let group = file.create_group("group").unwrap();
    file.start_swmr().unwrap();
    Live { file, numbers, group, folder }
}

/// Appends and sets attributes, and asks each time.
fn elements_and_attributes(live: &Live, early: &mut Script) {
    let mut sum = 0;
    for round in 1..=40 {
        live.numbers.append(&[round, 2 * round, 3 * round]).unwrap();
        live.numbers.flush().unwrap();
        sum += 6 * round;
        expect(early, "refresh /numbers", "ok");
        expect(early, "length /numbers", 3 * round);
        expect(early, "sum /numbers", sum);
    }
    for (number, name) in ["one", "two", "three"].into_iter().enumerate() {
        live.numbers.set_attribute(name, &(number as i32)).unwrap();
        live.group.set_attribute(name, &(10 + number as i32)).unwrap();
        live.file.flush().unwrap();
        for (path, value) in [("/numbers", number), ("/group", 10 + number)] {
            expect(early, &format!("refresh {path}"), "ok");
            expect(early, &format!("attribute {path} {name}"), value);
            expect(early, &format!("attributes {path}"), number + 1);
        }
    }
    live.numbers.set_attribute("one", &100).unwrap();
    live.file.flush().unwrap();
    expect(early, "refresh /numbers", "ok");
    expect(early, "attribute /numbers one", 100);
    live.numbers.remove_attribute("two").unwrap();
    live.file.flush().unwrap();
    expect(early, "refresh /numbers", "ok");
    expect(early, "attributes /numbers", 2);
}

#[test]
fn h5py_opened_before_sees_new_elements_and_attributes() {
    let live = live(0);
    let path = live.folder.path().join("live.h5");
    let Some(mut early) = look(&path) else { return };
    expect(&mut early, "length /numbers", 0);
    elements_and_attributes(&live, &mut early);
    for names in ["one", "one three", "one three two"] {
        let new = names.split(' ').find(|name| !live.group.contains(name).unwrap()).unwrap();
        live.group.create_group(new).unwrap();
        live.file.flush().unwrap();
        expect(&mut early, "refresh /group", "ok");
        expect(&mut early, "names /group", names);
    }
    early.end();
    live.file.close().unwrap();
}

#[test]
fn h5py_opened_before_sees_new_objects_where_there_is_headroom() {
    let live = live(1 << 30);
    let path = live.folder.path().join("live.h5");
    let Some(mut early) = look(&path) else { return };
    expect(&mut early, "names /group", "");
    elements_and_attributes(&live, &mut early);

    let rows = live.group.new_dataset::<u32>().unlimited_rows(&[]).chunk_shape(&[8]).create("rows").unwrap();
    rows.append(&[1u32, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
    let texts = live.group.new_dataset::<String>().unlimited_rows(&[]).chunk_shape(&[4]).create("texts").unwrap();
    texts.append(&["alpha".to_owned(), "beta".to_owned()]).unwrap();
    live.group.new_dataset::<i16>().create_with_data("whole", &[5i16; 300]).unwrap();
    live.file.flush().unwrap();
    expect(&mut early, "refresh /group", "ok");
    expect(&mut early, "names /group", "rows texts whole");
    expect(&mut early, "sum /group/rows", 45);
    expect(&mut early, "text /group/texts 1", "beta");
    expect(&mut early, "sum /group/whole", 1500);

    for round in 0..30 {
        texts.append(&[format!("text-{round}")]).unwrap();
        texts.flush().unwrap();
        expect(&mut early, "refresh /group/texts", "ok");
        expect(&mut early, &format!("text /group/texts {}", 2 + round), format!("text-{round}"));
    }
    // More than are kept in a header: they become dense.
    for round in 0..40 {
        live.group.create_group(&format!("inner-{round}")).unwrap();
        live.group.set_attribute(&format!("attribute-{round}"), &round).unwrap();
        live.file.flush().unwrap();
        expect(&mut early, "refresh /group", "ok");
        expect(&mut early, "length /group", 4 + round);
        expect(&mut early, &format!("attribute /group attribute-{round}"), round);
        expect(&mut early, "attributes /group", 4 + round);
    }
    early.end();
    live.file.close().unwrap();
}

#[test]
fn h5py_opened_later_sees_everything_that_was_flushed() {
    let live = live(0);
    let path = live.folder.path().join("live.h5");
    let Some(probe) = look(&path) else { return };
    probe.end();
    for round in 0..12u64 {
        let group = live.group.create_group(&format!("round-{round}")).unwrap();
        let rows = group.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[4]).deflate(1).create("rows").unwrap();
        rows.append(&(0..=round).collect::<Vec<_>>()).unwrap();
        let texts = group.new_dataset::<String>().unlimited_rows(&[]).chunk_shape(&[4]).create("texts").unwrap();
        texts.append(&[format!("text-{round}")]).unwrap();
        group.new_dataset::<u8>().shape(&[0, 0]).resizable().chunk_shape(&[2, 2]).create("grid").unwrap();
        for number in 0..round {
            group.set_attribute(&format!("attribute-{number}"), &number).unwrap();
        }
        live.numbers.append(&[round]).unwrap();
        live.file.flush().unwrap();
        let mut late = look(&path).unwrap();
        expect(&mut late, "length /numbers", round + 1);
        expect(&mut late, "length /group", round + 1);
        for round in [0, round / 2, round] {
            expect(&mut late, &format!("sum /group/round-{round}/rows"), round * (round + 1) / 2);
            expect(&mut late, &format!("text /group/round-{round}/texts 0"), format!("text-{round}"));
            expect(&mut late, &format!("attributes /group/round-{round}"), round);
            expect(&mut late, &format!("length /group/round-{round}/grid"), 0);
        }
        late.end();
    }
    live.file.close().unwrap();
}
