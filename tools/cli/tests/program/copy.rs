//! `copy` writes files anew, and never half.

use std::fs;
use std::path::Path;

use crate::common::{error, h5py, python, run, text};
use h5live::File;
use h5live::model::{ChunkCoord, Layout, Name};

fn made(folder: &Path) -> String {
    let path = folder.join("a.h5");
    let file = File::create(&path).unwrap();
    let values: Vec<u32> = (0..40_000).map(|i| i / 9).collect();
    let group = file.create_group("run").unwrap();
    group.new_dataset::<u32>().shape(&[200, 200]).create("plain").unwrap().write(&values).unwrap();
    group
        .new_dataset::<u32>()
        .shape(&[200, 200])
        .chunk_shape(&[7, 200])
        .deflate(9)
        .create("packed")
        .unwrap()
        .write(&values)
        .unwrap();
    group.new_dataset::<String>().create_with_data("texts", &["a".to_owned(), "b".to_owned()]).unwrap();
    group.set_attribute("unit", &"mm".to_owned()).unwrap();
    file.root().link_hard("again", group.dataset("plain").unwrap().id()).unwrap();
    file.close().unwrap();
    path.to_str().unwrap().to_owned()
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn chunks_and_filters_are_changed_and_values_stay() {
    let folder = tempfile::tempdir().unwrap();
    let from = made(folder.path());
    let to = folder.path().join("b.h5").to_str().unwrap().to_owned();
    let said = text(&run(&["copy", &from, &to, "--chunks", "50,50", "--filter", "shuffle", "--filter", "deflate:4"]));
    let [before, after] = [&from, &to].map(|path| fs::metadata(path).unwrap().len());
    let percent = after as f64 / before as f64 * 100.0;
    assert_eq!(said, format!("{before} bytes became {after} ({percent:.1} %)\n"));
    assert!(after < before / 5);
    assert_eq!(text(&run(&["diff", &from, &to])), "");
    let file = File::open(&to).unwrap();
    for name in ["run/plain", "run/packed"] {
        let spec = file.dataset(name).unwrap().spec().unwrap();
        assert_eq!(spec.layout, Layout::Chunked(vec![50, 50]));
        assert_eq!(spec.filters.iter().map(|filter| filter.id).collect::<Vec<_>>(), [2, 1]);
    }
    assert_eq!(file.dataset("again").unwrap().id(), file.dataset("run/plain").unwrap().id());
    assert_eq!(names(folder.path()), ["a.h5", "b.h5"]);
}

#[test]
fn a_file_is_copied_onto_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let before = text(&run(&["manifest", &path]));
    assert_eq!(text(&run(&["copy", "--quiet", "--force", "--filter", "none", "--profile", "v18", &path, &path])), "");
    assert!(File::open(&path).unwrap().dataset("run/packed").unwrap().spec().unwrap().filters.is_empty());
    let hashes =
        |manifest: &str| manifest.lines().map(|line| line.rsplit('\t').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(hashes(&text(&run(&["manifest", &path]))), hashes(&before));
}

#[test]
fn only_what_is_selected_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let from = made(folder.path());
    let to = folder.path().join("b.h5").to_str().unwrap().to_owned();
    text(&run(&["copy", &from, &to, "--select", "run/packed", "/again"]));
    let file = File::open(&to).unwrap();
    assert_eq!(file.root().names().unwrap(), ["again", "run"].map(Name::from));
    assert_eq!(file.group("run").unwrap().names().unwrap(), ["packed"].map(Name::from));
}

#[test]
fn what_cannot_be_copied_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let from = made(folder.path());
    let damaged = folder.path().join("damaged.h5");
    let mut bytes = fs::read(&from).unwrap();
    let at = bytes.windows(5).position(|window| window == b"GCOL\x01").unwrap();
    bytes[at] = b'X';
    fs::write(&damaged, bytes).unwrap();
    let to = folder.path().join("b.h5");
    fs::write(&to, "something else").unwrap();
    let copy = |arguments: &[&str]| error(&run(&[&["copy", "--quiet", "--force"], arguments].concat()));
    let (damaged, target) = (damaged.to_str().unwrap(), to.to_str().unwrap());
    let said = copy(&[damaged, target]);
    assert!(said.starts_with(&format!("h5live: {damaged}: /run")), "{said}");
    assert!(copy(&[&from, target, "--select", "nothing"]).contains("there is no \"nothing\" here"));
    assert!(copy(&[&from, "/nowhere/b.h5"]).contains("/nowhere/"));
    assert_eq!(fs::read(&to).unwrap(), b"something else");
    assert_eq!(names(folder.path()), ["a.h5", "b.h5", "damaged.h5"]);
}

#[test]
fn says_at_once_where_no_file_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let from = made(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (to, why) in
        [(at("none/b.h5"), "No such file or directory"), (at(""), "directory"), (at("a.h5/b"), "directory")]
    {
        let said = error(&run(&["copy", &from, &to]));
        assert!(said.starts_with(&format!("h5live: {to}: ")) && said.contains(why), "{said}");
    }
    let said = run(&["copy", &from, &at("b.h5"), "--filter", "deflate:10"]);
    assert!(String::from_utf8_lossy(&said.stderr).contains("deflate has levels of 0 to 9"));
    assert_eq!(names(folder.path()), ["a.h5"]);
}

#[test]
fn chunks_that_cannot_be_decoded_are_told_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    let from = made(folder.path());
    let file = File::options().write().open(&from).unwrap();
    let packed = file.dataset("run/packed").unwrap();
    let chunk = ChunkCoord::new(&[3, 0]);
    packed.write_chunk(&chunk, 0, b"no compressed data").unwrap();
    file.close().unwrap();
    let to = folder.path().join("b.h5").to_str().unwrap().to_owned();
    let output = run(&["copy", &from, &to]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].contains("/run/packed: chunk [3, 0]: filter 1 (deflate)"), "{said}");
    assert_eq!(lines[1], "copied as stored, and cannot be decoded: 1 chunk of 1 dataset");
    let copy = File::open(&to).unwrap().dataset("run/packed").unwrap();
    let copied = copy.stored_chunk(&chunk).unwrap().unwrap();
    assert_eq!(copy.read_chunk(&copied).unwrap(), b"no compressed data");
    fs::remove_file(&to).unwrap();
    text(&run(&["copy", "--no-verify", &from, &to]));
    assert!(fs::exists(&to).unwrap());
}

/// Makes a file whose elements and links are in other files of its folder.
const SCATTERED: &str = r#"
import os
os.chdir(os.path.dirname(path))
with h5py.File("source.h5", "w") as f:
    f["x"] = np.arange(6)
    f["names"] = np.array(["a", "bc"], h5py.string_dtype())
open("raw.bin", "wb").write(bytes([9, 8, 7, 1, 2, 3, 4]))
with h5py.File(path, "w", libver="latest") as f:
    for name, shape, kind in [("x", (6,), "i8"), ("names", (2,), h5py.string_dtype())]:
        layout = h5py.VirtualLayout(shape, kind)
        layout[:] = h5py.VirtualSource("source.h5", name, shape)
        f.create_virtual_dataset("virtual " + name, layout)
    grows = h5py.VirtualLayout((4,), "i8", maxshape=(None,))
    grows[:4] = h5py.VirtualSource("source.h5", "x", (6,))[:4]
    f.create_virtual_dataset("grows", grows)
    f.create_dataset("raw", (4,), "u1", external=[("raw.bin", 3, 4)])
    f["link"] = h5py.ExternalLink("source.h5", "/x")
"#;

/// What h5py reads from such a file.
const GATHERED: &str = r#"
import os
os.chdir(os.path.dirname(path))
with h5py.File(path) as f:
    print(f["virtual x"][...].tolist(), f["virtual names"].asstr()[...].tolist(), f["grows"][...].tolist(), f["raw"][...].tolist())
    there = os.path.exists(f.get("link", getlink=True).filename)
    print(f["link"][...].tolist() if there else None)
    print(f["virtual x"].is_virtual, f["raw"].external is not None)
"#;

#[test]
fn a_copy_in_another_folder_leads_to_the_same_files() {
    let Some(python) = python() else { return };
    let top = tempfile::tempdir().unwrap();
    let (from, to) = (top.path().join("run/a.h5"), top.path().join("kept/here/b.h5"));
    fs::create_dir_all(from.parent().unwrap()).unwrap();
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    h5py(&python, SCATTERED, &from);
    let values = "[0, 1, 2, 3, 4, 5] ['a', 'bc'] [0, 1, 2, 3] [1, 2, 3, 4]\n[0, 1, 2, 3, 4, 5]\nTrue True\n";
    assert_eq!(h5py(&python, GATHERED, &from), values);
    text(&run(&["copy", from.to_str().unwrap(), to.to_str().unwrap()]));
    assert_eq!(h5py(&python, GATHERED, &to), values);
    let kept = top.path().join("kept/b.h5");
    text(&run(&["copy", "--keep-names", from.to_str().unwrap(), kept.to_str().unwrap()]));
    assert!(File::open(&kept).unwrap().dataset("link").is_err());
    let copy = File::open(&to).unwrap();
    assert_eq!(copy.dataset("virtual x").unwrap().read::<i64>().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(copy.dataset("raw").unwrap().read::<u8>().unwrap(), [1, 2, 3, 4]);
    assert_eq!(copy.dataset("link").unwrap().read::<i64>().unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn an_inline_copy_needs_no_other_files() {
    let Some(python) = python() else { return };
    let top = tempfile::tempdir().unwrap();
    let (from, to) = (top.path().join("run/a.h5"), top.path().join("b.h5"));
    fs::create_dir_all(from.parent().unwrap()).unwrap();
    h5py(&python, SCATTERED, &from);
    text(&run(&["copy", "--inline", from.to_str().unwrap(), to.to_str().unwrap()]));
    fs::remove_dir_all(from.parent().unwrap()).unwrap();
    let values = "[0, 1, 2, 3, 4, 5] ['a', 'bc'] [0, 1, 2, 3] [1, 2, 3, 4]\nNone\nFalse False\n";
    assert_eq!(h5py(&python, GATHERED, &to), values);
    let filtered = top.path().join("c.h5");
    text(&run(&["copy", "--filter", "deflate:1", to.to_str().unwrap(), filtered.to_str().unwrap()]));
    assert_eq!(File::open(&filtered).unwrap().dataset("grows").unwrap().max_shape().unwrap(), [h5live::UNLIMITED]);
}
