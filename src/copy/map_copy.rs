//! The pairs of a map on their way to its copy.

use std::ops::Bound;

use h5live_model::{Datatype, MapEdit, MapKeyBuf};

use super::element_copy::{ElementCopy, FilePair};
use super::{CopiedObject, Copier};
use crate::error::ErrorKind;
use crate::{Result, UntypedMap};

/// Bytes of keys and values that are put at a time, or one pair if it is larger.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// How values are copied.
fn value_copy(from: &Datatype, to: &Datatype) -> ElementCopy {
    match (from, to) {
        // The bytes of a value of variable length are its base elements.
        (Datatype::VarLen(from), Datatype::VarLen(to)) => ElementCopy::new(&from.base, &to.base),
        _ => ElementCopy::new(from, to),
    }
}

/// Pairs that are put together.
#[derive(Default)]
struct PairBatch {
    pairs: Vec<(MapKeyBuf, Vec<u8>)>,
    bytes: usize,
}

impl PairBatch {
    /// Puts the pairs into a map.
    fn put(&mut self, way: &FilePair<'_>, to: &CopiedObject) -> Result<(), ErrorKind> {
        let edits: Vec<_> = self.pairs.iter().map(|(key, value)| MapEdit::Put { key: key.as_key(), value }).collect();
        let maps = way.to.store().maps().ok_or_else(|| crate::map::no_maps(way.to))?;
        maps.write(to.to, &edits)?;
        *self = PairBatch::default();
        Ok(())
    }
}

impl Copier<'_> {
    /// Copies the pairs of a map.
    pub(super) fn copy_pairs(&mut self, made: &CopiedObject) -> Result<()> {
        let from = UntypedMap::open(self.files.from.clone(), made.from, made.path.clone())?;
        let to = UntypedMap::open(self.files.to.clone(), made.to, made.path.clone())?;
        let plan = value_copy(from.value_type(), to.value_type());
        let mut batch = PairBatch::default();
        let mut pages = from.pages(Bound::Unbounded, Bound::Unbounded, true);
        while let Some(pair) = pages.next_pair() {
            let (_, key, value) = pair?;
            batch.bytes += key.bytes_or_empty().len() + value.len();
            let value = plan.run(value, &self.files).map_err(|kind| self.read_error(&made.path, kind))?;
            batch.pairs.push((key.to_buf(), value));
            if batch.bytes >= MAX_BATCH_BYTES {
                let bytes = batch.bytes as u64;
                batch.put(&self.files, made).map_err(|kind| self.write_error(&made.path, kind))?;
                self.report_progress(bytes)?;
            }
        }
        let bytes = batch.bytes as u64;
        batch.put(&self.files, made).map_err(|kind| self.write_error(&made.path, kind))?;
        self.report_progress(bytes)
    }
}
