//! A range of keys.

use crate::layout::EngineKeyRange;

/// Keys from `start` on, up to but not including `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpan {
    /// The first key that may be in it.
    pub start: Vec<u8>,
    /// The first key behind it; `None` for all keys from `start` on.
    pub end: Option<Vec<u8>>,
}

impl KeySpan {
    /// All keys.
    pub fn all() -> Self {
        KeySpan { start: Vec::new(), end: None }
    }

    /// All keys that begin with these bytes.
    pub fn prefix(prefix: &[u8]) -> Self {
        KeySpan { start: prefix.to_vec(), end: successor(prefix) }
    }

    /// The part of it that lies behind a key.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let mut start = key.to_vec();
        start.push(0);
        KeySpan { start: start.max(self.start.clone()), end: self.end.clone() }
    }

    /// Whether a key is in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &*self.start && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Whether no key can be in it.
    pub fn is_empty(&self) -> bool {
        self.end.as_deref().is_some_and(|end| end <= &*self.start)
    }
}

impl From<&EngineKeyRange> for KeySpan {
    fn from(range: &EngineKeyRange) -> Self {
        KeySpan { start: range.start.as_bytes().to_vec(), end: Some(range.end.as_bytes().to_vec()) }
    }
}

/// The first key behind all that begin with `prefix`; `None` if there is none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let (_, kept) = (prefix.get(last + 1..)?, prefix.get(..=last)?);
    let mut end = kept.to_vec();
    end.last_mut().map(|byte| *byte += 1)?;
    Some(end)
}
