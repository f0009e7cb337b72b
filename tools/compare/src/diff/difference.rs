//! A difference between two files.

use h5live::{Reference, Value};
use h5live_text::value::{hex, json_nan_as_null};
use serde_json::Value as Json;

/// A difference between two files.
pub enum FileDifference {
    /// Something is in one file only; the file's letter, and the kind.
    OnlyInOneFile(char, &'static str),
    /// A property, and its value in each file.
    Property(&'static str, String, String),
    /// The value at an index; in each file.
    Value(Vec<u64>, Value, Value),
    /// The number of different values. Not all of them were shown.
    DifferingValueCount(u64),
    /// A key of a map, and its value in each file that has the key.
    Pair(Value, Option<Value>, Option<Value>),
    /// The number of different pairs. Not all of them were shown.
    DifferingPairCount(u64),
    /// The values cannot be read in one of the files.
    Unreadable(String),
}

impl FileDifference {
    /// The difference at a path, for programs.
    pub fn json(&self, path: &str) -> Json {
        let bytes = |reference: &Reference| hex(reference.as_bytes()).into();
        match self {
            FileDifference::OnlyInOneFile(file, kind) => {
                serde_json::json!({"path": path, "only_in": file.to_string(), "kind": kind})
            }
            FileDifference::Property(what, a, b) => {
                serde_json::json!({"path": path, "differs": what, "a": a, "b": b})
            }
            FileDifference::Value(at, a, b) => {
                serde_json::json!({"path": path, "at": at, "a": json_nan_as_null(a, &bytes), "b": json_nan_as_null(b, &bytes)})
            }
            FileDifference::DifferingValueCount(count) => serde_json::json!({"path": path, "differing_values": count}),
            FileDifference::Pair(key, a, b) => {
                let value = |value: &Option<Value>| value.as_ref().map(|value| json_nan_as_null(value, &bytes));
                let mut line = serde_json::json!({"path": path, "key": json_nan_as_null(key, &bytes)});
                line.as_object_mut().into_iter().for_each(|line| {
                    line.extend(value(a).map(|a| ("a".to_owned(), a)));
                    line.extend(value(b).map(|b| ("b".to_owned(), b)));
                });
                line
            }
            FileDifference::DifferingPairCount(count) => serde_json::json!({"path": path, "differing_pairs": count}),
            FileDifference::Unreadable(error) => serde_json::json!({"path": path, "unreadable": error}),
        }
    }

    /// The difference at a path, on one line.
    pub fn text(&self, path: &str) -> String {
        match self {
            FileDifference::OnlyInOneFile(file, kind) => format!("{path}: {kind} in {file} only"),
            FileDifference::Property(what, a, b) => format!("{path}: {what}: {a} and {b}"),
            FileDifference::Value(at, a, b) if at.is_empty() => format!("{path}: {a} and {b}"),
            FileDifference::Value(at, a, b) => format!("{path}{at:?}: {a} and {b}"),
            FileDifference::DifferingValueCount(1) => format!("{path}: 1 value differs"),
            FileDifference::DifferingValueCount(count) => format!("{path}: {count} values differ"),
            FileDifference::Pair(key, Some(a), Some(b)) => format!("{path}[{key}]: {a} and {b}"),
            FileDifference::Pair(key, a, _) => {
                let file = if a.is_some() { 'A' } else { 'B' };
                format!("{path}[{key}]: in {file} only")
            }
            FileDifference::DifferingPairCount(1) => format!("{path}: 1 pair differs"),
            FileDifference::DifferingPairCount(count) => format!("{path}: {count} pairs differ"),
            FileDifference::Unreadable(error) => format!("{path}: {error}"),
        }
    }
}
