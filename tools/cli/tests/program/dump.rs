//! `dump`: slices, CSV, references, and trees.

use std::path::Path;

use crate::common::{error, new_file, run, run_with, start, text, until};
use h5live::{File, Reference, Selection};

/// A file with data of several shapes, and references.
fn make(path: &Path) {
    let file = File::create(path).unwrap();
    let grid = file.new_dataset::<i32>().shape(&[3, 4]).chunk_shape(&[2, 3]).create("grid").unwrap();
    grid.write(&(0..12).collect::<Vec<_>>()).unwrap();
    file.new_dataset::<f64>().shape(&[1000]).create("run/many").unwrap().write(&[0.5; 1000]).unwrap();
    let group = file.group("run").unwrap();
    group.new_attribute("title").write(&["a \"b\"".to_owned()]).unwrap();
    let reference = |path: &str| file.object(path).unwrap().reference().unwrap();
    let objects = [reference("run"), Reference::default(), reference("grid")];
    file.new_dataset::<Reference>().shape(&[3]).create("objects").unwrap().write(&objects).unwrap();
    let regions = [
        grid.region_reference((1..3, 2)).unwrap(),
        grid.region_reference(Selection::Points(vec![[0, 1].as_slice().into()])).unwrap(),
    ];
    let datatype = Reference::datatype_of(regions[0].kind());
    group.new_attribute("region").datatype(datatype).write(&regions[..1]).unwrap();
    file.new_dataset::<u8>().shape(&[0]).create("none").unwrap();
    file.root().link_soft("soft", "/grid").unwrap();
    file.close().unwrap();
}

#[test]
fn slices_are_those_of_python_in_every_dimension() {
    let (_folder, path, name) = new_file();
    make(&path);
    let slice = |slice: &str| text(&run(&["dump", &name, "grid", "--slice", slice]));
    assert_eq!(slice("1:"), "1: [4, 5, 6, 7]\n2: [8, 9, 10, 11]\n");
    assert_eq!(slice("::2, 1::2"), "0: [1, 3]\n2: [9, 11]\n");
    assert_eq!(slice("-1"), "0: 8\n1: 9\n2: 10\n3: 11\n");
    assert_eq!(slice("[-1, -2:]"), "2: 10\n3: 11\n");
    assert_eq!(slice("..., 0"), "0: 0\n1: 4\n2: 8\n");
    assert_eq!(slice("::-2, ::-1"), "2: [11, 10, 9, 8]\n0: [3, 2, 1, 0]\n");
    assert_eq!(slice("1, 2"), "6\n");
    assert_eq!(slice("5:"), "");
    let raw = |slice: &str| run(&["dump", "--raw", &name, "grid", "--slice", slice]).stdout;
    let bytes = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(raw("::-1, 3:0:-2"), bytes(&[11, 9, 7, 5, 3, 1]));
    assert_eq!(raw("7:"), b"");
    let many = run(&["dump", "--raw", &name, "run/many", "--slice", "::-3"]).stdout;
    assert_eq!(many.len(), 334 * 8);
    let said = |slice: &str| error(&run(&["dump", &name, "grid", "--slice", slice]));
    let place = format!("h5live: {name}: /grid: ");
    assert_eq!(said("3"), format!("{place}index 3 is out of range: dimension 0 has 3 elements"));
    assert_eq!(said("0,0,0"), format!("{place}the slice has 3 dimensions, the dataset 2"));
    let output = run(&["dump", &name, "grid", "--slice", "0..2"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("\"0..2\" is not a slice"));
}

#[test]
fn a_follower_goes_on_with_the_slice_that_was_asked_for() {
    let (_folder, path, name) = new_file();
    let mut writer = start(&["record", "--dtype=u8", "--shape=3", "--every=1", &name, "frames"]);
    let mut input = writer.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &[0, 1, 2, 10, 11, 12]).unwrap();
    until("two rows", || path.exists() && run(&["dump", "--raw", &name, "frames"]).stdout.len() == 6);
    let follower = start(&["dump", "--follow", &name, "frames", "--slice", "::2, ::-2"]);
    let other = start(&["dump", "--follow", "--csv", &name, "frames", "--slice", "1:4, 0"]);
    std::io::Write::write_all(&mut input, &[20, 21, 22, 30, 31, 32, 40, 41, 42]).unwrap();
    // This one ends by itself, before the writer.
    assert_eq!(text(&other.wait_with_output().unwrap()), "frames\n10\n20\n30\n");
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(text(&follower.wait_with_output().unwrap()), "0: [2, 0]\n2: [22, 20]\n4: [42, 40]\n");
}

#[test]
fn csv_has_a_column_for_each_part_of_a_row_and_can_be_recorded_again() {
    let (_folder, path, name) = new_file();
    make(&path);
    let csv = |arguments: &[&str]| text(&run(&[&["dump", "--csv", &name], arguments].concat()));
    assert_eq!(csv(&["grid", "--rows=..2"]), "c0,c1,c2,c3\n0,1,2,3\n4,5,6,7\n");
    assert_eq!(csv(&["grid", "--slice=:,1"]), "grid\n1\n5\n9\n");
    assert_eq!(csv(&["run@title"]), "title\n\"a \"\"b\"\"\"\n");
    assert_eq!(csv(&["objects"]), "objects\n/run\n\"\"\n/grid\n");
    let table = "t,note,on\n1.5,\"a, \"\"b\"\"\",true\n-2.0,,false\n";
    let (_other, _, recorded) = new_file();
    text(&run_with(&["record", &recorded, "table"], table.as_bytes()));
    assert_eq!(text(&run(&["dump", "--csv", &recorded, "table"])), table);
}

#[test]
fn references_are_shown_as_paths() {
    let (_folder, path, name) = new_file();
    make(&path);
    let dump = |arguments: &[&str]| text(&run(&[&["dump", &name], arguments].concat()));
    assert_eq!(dump(&["objects"]), "0: \"/run\"\n1: null\n2: \"/grid\"\n");
    assert_eq!(dump(&["objects", "--json"]), "\"/run\"\nnull\n\"/grid\"\n");
    assert_eq!(dump(&["run@region"]), "\"/grid[1:3, 2]\"\n");
    assert!(dump(&["run@region", "--json"]).starts_with("{\"dataset\":\"/grid\",\"region\":"));
    let listed = text(&run(&["ls", &name]));
    assert!(listed.contains("\"/grid[1:3, 2]\"\n"), "{listed}");
    // The object is deleted: nothing is known of where it leads.
    let file = File::options().write().open(&path).unwrap();
    file.root().unlink("grid").unwrap();
    file.close().unwrap();
    assert!(dump(&["objects"]).contains("2: 0x"), "{}", dump(&["objects"]));
}

#[test]
fn a_group_is_shown_as_a_tree_with_the_beginning_of_its_values() {
    let (_folder, path, name) = new_file();
    make(&path);
    let expected = "\
/            group
/grid        i32le  [3,4]  [[0, 1, 2, 3], [4, 5, 6, 7], ...]
/none        u8  [0]  []
/objects     ref(object)  [3]  [\"/run\", null, \"/grid\"]
/run         group
/run@region  \"/grid[1:3, 2]\"
/run@title   \"a \\\"b\\\"\"
/run/many    f64le  [1000]  [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ...]
/soft        -> /grid
";
    assert_eq!(text(&run(&["dump", &name])), expected);
    let group = text(&run(&["dump", &name, "/run"]));
    assert_eq!(group.lines().next(), Some("/run         group"));
    assert!(error(&run(&["dump", "--csv", &name, "/run"])).contains("this is not a dataset"));
    assert!(error(&run(&["dump", "--rows=1", &name, "/run"])).contains("this is not a dataset"));
}

#[test]
fn a_value_that_cannot_be_read_is_an_error_in_its_place_of_the_tree() {
    let (_folder, path, name) = new_file();
    let file = File::create(&path).unwrap();
    file.new_dataset::<u32>()
        .shape(&[8])
        .chunk_shape(&[8])
        .deflate(6)
        .create("packed")
        .unwrap()
        .write(&[7; 8])
        .unwrap();
    file.new_dataset::<u8>().shape(&[1]).create("well").unwrap().write(&[1]).unwrap();
    let chunk = file.dataset("packed").unwrap().stored_chunks().unwrap()[0].clone();
    file.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let stored = File::open(&path).unwrap().dataset("packed").unwrap().read_chunk(&chunk).unwrap();
    let at = bytes.windows(stored.len()).position(|window| window == stored).unwrap();
    bytes[at..at + stored.len()].fill(0xFF);
    std::fs::write(&path, bytes).unwrap();
    let output = run(&["dump", &name]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("/packed  u32le  [8]  (error: "), "{shown}");
    assert!(shown.contains("/well    u8  [1]  [1]"), "{shown}");
}
