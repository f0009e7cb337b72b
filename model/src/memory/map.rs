//! A map in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{MapEdit, MapSpec, OrderPreservingKeyCodec, Result};

/// The values by the ordered bytes of their keys.
pub(super) type MemoryPairs = BTreeMap<Vec<u8>, Arc<[u8]>>;

#[derive(Debug)]
pub(super) struct MemoryMap {
    pub(super) spec: MapSpec,
    pub(super) order: OrderPreservingKeyCodec,
    /// As the writer sees them.
    pub(super) pairs: Arc<MemoryPairs>,
    /// As of the last commit.
    pub(super) published: Arc<MemoryPairs>,
}

impl MemoryMap {
    pub(super) fn new(spec: MapSpec) -> Self {
        let order = OrderPreservingKeyCodec::new(&spec.key_type);
        MemoryMap { spec, order, pairs: Arc::default(), published: Arc::default() }
    }

    pub(super) fn publish(&mut self) {
        self.published = self.pairs.clone();
    }

    pub(super) fn forget_unpublished(&mut self) {
        self.pairs = self.published.clone();
    }

    /// Changes pairs, all or none.
    pub(super) fn write(&mut self, edits: &[MapEdit<'_>]) -> Result<()> {
        let check = |edit: &MapEdit<'_>| {
            self.spec.check_key(edit.key())?;
            let value = match edit {
                MapEdit::Put { value, .. } => Some(Arc::from(*value)),
                MapEdit::Remove { .. } => None,
            };
            value.as_deref().map(|value| self.spec.check_value(value)).transpose()?;
            Ok((self.order.encode_to_vec(edit.key())?, value))
        };
        let edits = edits.iter().map(check).collect::<Result<Vec<_>>>()?;
        let pairs = Arc::make_mut(&mut self.pairs);
        for (key, value) in edits {
            match value {
                Some(value) => drop(pairs.insert(key, value)),
                None => drop(pairs.remove(&key)),
            }
        }
        Ok(())
    }
}
