//! `dump --json FILE` of a file in which something is damaged: all the rest is described.

use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::{error, run, run_with, text};
use h5live::{File, Object};
use serde_json::Value as Json;

/// Writes zeros over what begins at an address.
fn damage(path: &Path, at: u64) {
    std::fs::File::options().write(true).open(path).unwrap().write_all_at(&[0; 16], at).unwrap();
}

/// A file, and the addresses of objects that can be damaged.
fn make(path: &Path) -> Vec<u64> {
    let file = File::create(path).unwrap();
    for name in ["a", "header", "z"] {
        file.new_dataset::<u16>().create_with_data(name, &[1, 2, 3]).unwrap().set_attribute("unit", &7u8).unwrap();
    }
    let values = file.new_dataset::<u16>().shape(&[3]).chunk_shape(&[3]).deflate(1).create("values").unwrap();
    values.write(&[1u16, 2, 3]).unwrap();
    values.set_attribute("unit", &7u8).unwrap();
    file.create_group("group/below").unwrap();
    file.root().commit_datatype("type", &h5live::Datatype::default()).unwrap();
    file.flush().unwrap();
    let chunk = values.stored_chunks().unwrap()[0].file_offset.unwrap();
    let ids = ["header", "group", "type"].map(|path| match file.object(path).unwrap() {
        Object::Dataset(dataset) => dataset.id(),
        Object::Group(group) => group.id(),
        Object::Datatype(datatype) => datatype.id(),
        _ => unreachable!("there is nothing else"),
    });
    file.close().unwrap();
    ids.iter().map(|id| u64::try_from(id.0).unwrap()).chain([chunk]).collect()
}

#[test]
fn a_description_goes_on_after_what_is_damaged_and_says_what_is_wrong_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.h5");
    let name = path.to_str().unwrap();
    let places = make(&path);
    let whole: Json = serde_json::from_str(&text(&run(&["dump", "--json", name]))).unwrap();
    assert!(!whole.to_string().contains("\"errors\""));

    places.iter().for_each(|at| damage(&path, *at));
    let output = run(&["dump", "--json", name]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said, format!("h5live: {name}: 4 errors, which are described in place of what cannot be read\n"));
    let described: Json = serde_json::from_slice(&output.stdout).unwrap();
    let (links, before) = (described["links"].as_object().unwrap(), whole["links"].as_object().unwrap());
    assert!(links.keys().eq(before.keys()), "all links are there");
    for sound in ["a", "z"] {
        assert_eq!(links[sound], before[sound]);
    }
    for (damaged, what) in
        [("header", "/header: "), ("group", "/group: "), ("type", "/type: "), ("values", "chunk [0]")]
    {
        let errors = links[damaged]["errors"].as_array().unwrap_or_else(|| panic!("{damaged}: {}", links[damaged]));
        assert_eq!(errors.len(), 1, "{damaged}: {errors:?}");
        assert!(errors[0].as_str().unwrap().contains(what), "{damaged}: {errors:?}");
    }
    let (values, before) = (&links["values"], &before["values"]);
    for known in ["kind", "type", "shape", "chunks", "filters", "attributes"] {
        assert_eq!(values[known], before[known], "{known}");
    }
    assert!(values.get("values").is_none());

    let new = folder.path().join("new.h5");
    let refused = error(&run_with(&["new", new.to_str().unwrap()], &output.stdout));
    assert!(refused.contains("errors") || refused.contains("kind"), "{refused}");
    assert!(!new.exists());
}

#[test]
fn a_damaged_attribute_leaves_the_others_described() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attributes.h5");
    let file = File::create(&path).unwrap();
    let root = file.root();
    root.set_attribute("a", &1u8).unwrap();
    root.set_attribute("text", &"a text in the heap that is looked for".to_owned()).unwrap();
    root.set_attribute("z", &3u8).unwrap();
    file.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let heap = bytes.windows(4).position(|four| four == b"GCOL").unwrap();
    damage(&path, heap as u64);
    let output = run(&["dump", "--json", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let described: Json = serde_json::from_slice(&output.stdout).unwrap();
    let attributes = &described["attributes"];
    assert_eq!((&attributes["a"]["value"], &attributes["z"]["value"]), (&1.into(), &3.into()));
    let text = &attributes["text"];
    assert_eq!(text["errors"][0], "1 value cannot be read, and is null", "{text}");
    assert!(text["value"].is_null() && text["type"].is_string(), "{text}");
}
