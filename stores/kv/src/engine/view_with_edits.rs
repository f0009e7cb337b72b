//! What a session reads: a committed state, and the edits over it that only the session sees.

use std::sync::Arc;

use super::{EditBatch, KeySpan, Result, View};

/// Keys and values that one scan takes at a time (keys; bytes), before it hands them on without any lock.
const SCAN_BATCH_KEYS: usize = 1024;
const SCAN_BATCH_BYTES: usize = 256 << 10;

/// A committed state with edits over it.
#[derive(Debug, Clone, Copy)]
pub struct ViewWithEdits<'a> {
    view: &'a Arc<dyn View>,
    edits: Option<&'a EditBatch>,
}

impl<'a> ViewWithEdits<'a> {
    /// A committed state.
    pub fn without_edits(view: &'a Arc<dyn View>) -> Self {
        ViewWithEdits { view, edits: None }
    }

    /// A committed state with edits over it.
    pub fn with_edits(view: &'a Arc<dyn View>, edits: &'a EditBatch) -> Self {
        ViewWithEdits { view, edits: Some(edits) }
    }

    /// Calls `found` with the value of a key, and says whether there is one.
    ///
    /// # Errors
    /// As [`View::get`].
    pub fn with_value(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.edits.and_then(|edits| edits.get(key)) {
            Some(Some(value)) => {
                found(value);
                Ok(true)
            }
            Some(None) => Ok(false),
            None => self.view.get(key, found),
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`View::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = None;
        self.with_value(key, &mut |found| value = Some(found.to_vec()))?;
        Ok(value)
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// As [`View::get`].
    pub fn has(&self, key: &[u8]) -> Result<bool> {
        match self.edits.and_then(|edits| edits.get(key)) {
            Some(edit) => Ok(edit.is_some()),
            None => self.view.has(key),
        }
    }

    /// Whether a key of a range has a value.
    ///
    /// # Errors
    /// As [`View::scan`].
    pub fn has_any(&self, range: &KeySpan) -> Result<bool> {
        let mut any = false;
        self.scan(range, &mut |_, _| {
            any = true;
            false
        })?;
        Ok(any)
    }

    /// Calls `each` with the keys of a range and their values, in order, until it returns `false`. `each` must not call
    /// the store.
    ///
    /// # Errors
    /// As [`View::scan`].
    pub fn scan(&self, range: &KeySpan, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let Some(edits) = self.edits.filter(|edits| !edits.is_empty()) else { return self.view.scan(range, each) };
        let mut edits = edits.range(range).peekable();
        let mut goes_on = true;
        self.view.scan(range, &mut |key, value| {
            while let Some((edited, new)) = edits.next_if(|(edited, _)| *edited < key) {
                goes_on = new.is_none_or(|new| each(edited, new));
                if !goes_on {
                    return false;
                }
            }
            goes_on = match edits.next_if(|(edited, _)| *edited == key) {
                Some((_, Some(new))) => each(key, new),
                Some((_, None)) => true,
                None => each(key, value),
            };
            goes_on
        })?;
        let mut rest = edits.filter_map(|(key, new)| Some((key, new?)));
        if goes_on {
            rest.all(|(key, new)| each(key, new));
        }
        Ok(())
    }

    /// The first keys of a range with their values, as many as one batch takes.
    ///
    /// # Errors
    /// As [`View::scan`].
    pub fn scan_first_batch(&self, range: &KeySpan) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        self.scan(range, &mut |key, value| {
            bytes += key.len() + value.len();
            found.push((key.to_vec(), value.to_vec()));
            found.len() < SCAN_BATCH_KEYS && bytes < SCAN_BATCH_BYTES
        })?;
        Ok(found)
    }

    /// Calls `each` with the keys of a range and the number of bytes of their values, in order, until it returns `false`.
    /// `each` may call the store, and an error of it ends the listing.
    ///
    /// # Errors
    /// As [`View::scan`], and those of `each`.
    pub fn for_each_value_len_reentrant<E: From<super::EngineError>>(
        &self,
        range: &KeySpan,
        mut each: impl FnMut(&[u8], u64) -> std::result::Result<bool, E>,
    ) -> std::result::Result<(), E> {
        let mut left = range.clone();
        loop {
            let mut batch: Vec<(Vec<u8>, u64)> = Vec::new();
            self.scan(&left, &mut |key, value| {
                batch.push((key.to_vec(), value.len() as u64));
                batch.len() < SCAN_BATCH_KEYS
            })?;
            let Some((last, _)) = batch.last() else { return Ok(()) };
            left = left.after(last);
            for (key, len) in &batch {
                if !each(key, *len)? {
                    return Ok(());
                }
            }
        }
    }

    /// Like [`ViewWithEdits::scan`], but `each` may call the store, and an error of it ends the scan.
    ///
    /// # Errors
    /// As [`View::scan`], and those of `each`.
    pub fn for_each_pair_reentrant<E: From<super::EngineError>>(
        &self,
        range: &KeySpan,
        mut each: impl FnMut(&[u8], &[u8]) -> std::result::Result<bool, E>,
    ) -> std::result::Result<(), E> {
        let mut left = range.clone();
        loop {
            let batch = self.scan_first_batch(&left)?;
            let Some((last, _)) = batch.last() else { return Ok(()) };
            left = left.after(last);
            for (key, value) in &batch {
                if !each(key, value)? {
                    return Ok(());
                }
            }
        }
    }
}
