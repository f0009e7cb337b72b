//! The pairs of maps of two files.

use h5live::{Result, UntypedMap, Value};

use super::difference::FileDifference;
use super::side::DiffSide;
use super::tolerance::Tolerance;

/// In which pairs two maps differ. A key that the other map has no value for, also because its type has no such key, is in
/// one map only.
///
/// # Errors
/// If a map cannot be read.
pub fn compare(
    tolerance: Tolerance,
    max_shown: usize,
    (a, in_a): (&UntypedMap, &DiffSide),
    (b, in_b): (&UntypedMap, &DiffSide),
) -> Result<Vec<FileDifference>> {
    let mut found = PairDifferences { max_shown, shown: Vec::new(), count: 0 };
    let same_object = |a: &Value, b: &Value| in_a.referenced_path(a) == in_b.referenced_path(b);
    for pair in a.pairs(..)? {
        let (key, value) = pair?;
        match get(b, &key)? {
            Some(other) if tolerance.same(&value, &other, &same_object) => {}
            other => found.add(key, Some(value), other),
        }
    }
    for pair in b.pairs(..)? {
        let (key, value) = pair?;
        if get(a, &key)?.is_none() {
            found.add(key, None, Some(value));
        }
    }
    Ok(found.into_differences())
}

/// The value for a key of the other map.
fn get(map: &UntypedMap, key: &Value) -> Result<Option<Value>> {
    match map.get_value(key) {
        Err(error) if matches!(error.kind(), h5live::ErrorKind::Convert(_)) => Ok(None),
        found => found,
    }
}

/// The pairs that differ. Some of them are shown.
struct PairDifferences {
    max_shown: usize,
    shown: Vec<FileDifference>,
    count: u64,
}

impl PairDifferences {
    fn add(&mut self, key: Value, a: Option<Value>, b: Option<Value>) {
        self.count += 1;
        if self.shown.len() < self.max_shown {
            self.shown.push(FileDifference::Pair(key, a, b));
        }
    }

    fn into_differences(mut self) -> Vec<FileDifference> {
        if self.count > self.shown.len() as u64 {
            self.shown.push(FileDifference::DifferingPairCount(self.count));
        }
        self.shown
    }
}
