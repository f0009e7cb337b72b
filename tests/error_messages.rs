//! All texts of errors, in one file: whoever changes one sees it there, and reads it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders with the sources of what users see.
const SOURCES: [&str; 10] = [
    "src",
    "cache/src",
    "checker/src",
    "cli/src",
    "filters/src",
    "format/src",
    "indexes/src",
    "model/src",
    "native/src",
    "swmr/src",
];

fn sources(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, files);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            files.insert(path);
        }
    }
}

/// The arguments of the `error` attributes in a source text, each on one line.
fn messages(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let attributes = source.split("#[error(").skip(1).filter_map(|rest| rest.split_once(")]"));
    let text = |text: &str| text.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ");
    attributes.map(|(inside, _)| text(inside)).filter(|text| text != "transparent").collect()
}

#[test]
fn every_text_of_an_error_is_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeSet::new();
    SOURCES.iter().for_each(|folder| sources(&root.join(folder), &mut files));
    let mut found = String::new();
    for file in &files {
        let texts = messages(&fs::read_to_string(file).unwrap());
        if !texts.is_empty() {
            let name = file.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            found += &format!("{name}\n");
            texts.iter().for_each(|text| found += &format!("    {text}\n"));
        }
    }
    let at = root.join("tests/data/error_messages.txt");
    if std::env::var_os("H5LIVE_UPDATE_MESSAGES").is_some() {
        fs::write(&at, &found).unwrap();
    }
    let known = fs::read_to_string(&at).unwrap_or_default();
    let of = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (known_lines, found_lines) = (of(&known), of(&found));
    let new: Vec<_> = found_lines.difference(&known_lines).collect();
    let gone: Vec<_> = known_lines.difference(&found_lines).collect();
    assert!(
        known == found,
        "new: {new:#?}\ngone: {gone:#?}\nRead them, and then run this test with H5LIVE_UPDATE_MESSAGES=1."
    );
}

#[test]
fn no_text_of_an_error_has_words_that_a_reader_stumbles_over() {
    let known =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/error_messages.txt")).unwrap();
    for wrong in ["is no value", "which is no ", "entity", "nobody knows", "\"a {", " a {", " an {", "is no datatype"] {
        let lines: Vec<_> = known.lines().filter(|line| line.contains(wrong)).collect();
        // What stands there begins with a consonant.
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains("this is not a {expected}")).collect();
        assert!(lines.is_empty(), "{wrong:?}: {lines:#?}");
    }
}
