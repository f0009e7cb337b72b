//! All texts of errors, in one file: whoever changes one sees it there, and reads it. Besides the messages of error types
//! these are the parts of messages that the code makes: rules, faults, and what functions return for a message.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders with the sources of what users see.
const SOURCES: [&str; 24] = [
    "tools/archive/src",
    "src",
    "cache/src",
    "checker/src",
    "tools/cli/src",
    "filters/src",
    "format/src",
    "indexes/src",
    "model/src",
    "native/src",
    "serve/src",
    "stores/hsds/src",
    "stores/kv/src",
    "stores/log/src",
    "stores/map_table/src",
    "stores/objects/src",
    "stores/remote/src",
    "stores/served/src",
    "swmr/src",
    "tools/compare/src",
    "tools/output/src",
    "tools/recorder/src",
    "tools/text/src",
    "verify/lab/src",
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

/// The source text without its tests.
fn without_tests(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ")
}

/// The arguments of the `error` attributes in a source text, each on one line.
fn messages(source: &str) -> Vec<String> {
    let attributes = source.split("#[error(").skip(1).filter_map(|rest| rest.split_once(")]"));
    attributes.map(|(inside, _)| on_one_line(inside)).filter(|text| text != "transparent").collect()
}

/// Calls whose texts become a part of a message.
const MAKERS: [&str; 15] = [
    "Err",
    "ok_or",
    "ok_or_else",
    "Error::io",
    "contradiction",
    "contradiction_error",
    "layout_contradiction_error",
    "damaged",
    "inconsistent_tables_error",
    "damaged_error",
    "refuse_unless",
    "require",
    "required",
    "rule",
    "unfit_error",
];

/// Calls that only pass a text on.
const WRAPPERS: [&str; 3] = ["format!", "Some", "String::from"];

/// The texts in quotes, each with the offset at which it begins.
fn literals(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let start = source.len() - rest.len() + at;
        let here = &rest[at..];
        let length = if here.starts_with("//") {
            here.find('\n').unwrap_or(here.len())
        } else if here.starts_with("'\"'") {
            3
        } else if let Some(escaped) = here.strip_prefix("'\\") {
            2 + escaped.find('\'').map_or(0, |end| end + 1)
        } else if let Some(inside) = here.strip_prefix('"') {
            let mut is_escaped = false;
            let is_end = |c: char| {
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            };
            let length = inside.find(is_end).map_or(here.len(), |end| end + 2);
            found.push((start, &here[..length]));
            length
        } else {
            1
        };
        rest = &here[length..];
    }
    found
}

/// What is called with what ends here: the name before the parenthesis that is open.
fn caller(before: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (at, c) in before.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' if depth == 0 => {
                let outside = before[..at].trim_end();
                let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '!');
                let name = outside.trim_end_matches(is_name);
                return Some((&outside[name.len()..], name));
            }
            '(' | '[' | '{' if depth > 0 => depth -= 1,
            '[' | '{' | ';' => return None,
            _ => {}
        }
    }
    None
}

/// Whether a text that begins behind this becomes a part of the message of an error.
fn makes_message(before: &str) -> bool {
    if before.trim_end().ends_with("rule:") {
        return true;
    }
    let mut before = before;
    while let Some((name, outside)) = caller(before) {
        if !WRAPPERS.contains(&name) {
            let last = name.rsplit("::").next().unwrap_or_default();
            let is_fault = ["Fault::", "Cause::"].iter().any(|kind| name.contains(kind));
            return is_fault || MAKERS.contains(&name) || MAKERS.contains(&last);
        }
        before = outside;
    }
    false
}

/// The functions that `error` attributes call for a part of their message.
fn message_functions(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for message in messages(source) {
        let arguments = literals(&message).first().map_or("", |(at, text)| &message[at + text.len()..]).to_owned();
        for (at, _) in arguments.match_indices('(') {
            let before = &arguments[..at];
            let name = &before[before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_').len()..];
            if !name.is_empty() && !before[..before.len() - name.len()].ends_with('.') {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

/// The body of a function of a source text.
fn body<'a>(source: &'a str, function: &str) -> Option<&'a str> {
    let opening = [format!("fn {function}("), format!("fn {function}<")];
    let start = opening.iter().find_map(|opening| source.find(opening.as_str()))?;
    let line = source[..start].rfind('\n').map_or(0, |end| end + 1);
    let indent = source[line..].len() - source[line..].trim_start().len();
    let last = format!("\n{}}}\n", &source[line..line + indent]);
    let end = source[start..].find(&last).map_or(source.len(), |end| start + end);
    Some(&source[start..end])
}

/// The texts that functions make parts of messages of, in the order of the source.
fn parts(source: &str, functions: &BTreeSet<String>) -> Vec<String> {
    let attributes: Vec<_> = source.match_indices("#[").map(|(at, _)| at).collect();
    let in_attribute = |at: usize| {
        let before = attributes.partition_point(|start| *start <= at);
        before > 0 && !source[attributes[before - 1]..at].contains(")]")
    };
    let made = literals(source).into_iter().filter(|(at, _)| makes_message(&source[..*at]) && !in_attribute(*at));
    let of_functions = functions.iter().filter_map(|function| body(source, function)).flat_map(literals);
    let mut parts: Vec<_> = made.chain(of_functions).map(|(_, text)| format!("part {}", on_one_line(text))).collect();
    // Numbers and names that are put in between are no words.
    let is_outside = |text: &str| text.rsplit('}').next().is_some_and(|words| words.contains(char::is_alphabetic));
    parts.retain(|part| part["part ".len()..].split('{').any(is_outside));
    let mut known = BTreeSet::new();
    parts.retain(|part| known.insert(part.clone()));
    parts
}

#[test]
fn every_text_of_an_error_is_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = BTreeSet::new();
    SOURCES.iter().for_each(|folder| sources(&root.join(folder), &mut files));
    let mut found = String::new();
    let text = |file: &PathBuf| without_tests(&fs::read_to_string(file).unwrap()).to_owned();
    // Keys of records, which errors carry as text.
    let described = std::iter::once("describe_key".to_owned());
    let functions = files.iter().flat_map(|file| message_functions(&text(file))).chain(described).collect();
    for file in &files {
        let source = text(file);
        let mut texts = messages(&source);
        texts.extend(parts(&source, &functions));
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
    let known = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/error_messages.txt")).unwrap();
    for wrong in ["is no value", "which is no ", "entity", "nobody knows", "\"a {", " a {", " an {", "is no datatype"] {
        let texts = known.lines().filter(|line| line.starts_with(' '));
        let lines: Vec<_> = texts.filter(|line| line.contains(wrong)).collect();
        // What stands there begins with a consonant.
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains("this is not a {expected}")).collect();
        assert!(lines.is_empty(), "{wrong:?}: {lines:#?}");
    }
}

#[test]
fn parts_of_messages_are_found_where_they_are_made() {
    let source = r#"
        #[error("outer {}", inner_text(.0))]
        // Err("a comment")
        fn inner_text(n: u64) -> String {
            match n { 1 => "one".to_owned(), _ => format!("many: {n}") }
        }
        fn f() -> Result<(), Error> {
            g('"').ok_or("first")?;
            let e = Error::Contradiction { at, rule: "second" };
            h(Fault::Missing("third"), "not this one");
            Err(format!("fourth \"{x}\"").into())
        }
    "#;
    let functions = message_functions(source);
    assert_eq!(functions, BTreeSet::from(["inner_text".to_owned()]));
    let wanted = ["\"first\"", "\"second\"", "\"third\"", "\"fourth \\\"{x}\\\"\"", "\"one\"", "\"many: {n}\""];
    assert_eq!(parts(source, &functions), wanted.map(|text| format!("part {text}")));
}
