//! A hash table from names to entries, as it is stored in the file (`docs/tar.md`, "name_index").

use twox_hash::XxHash3_64;

/// Bits of a slot that are the number of an entry, plus one.
const ENTRY_BITS: u32 = 40;

/// The part of a path that lookups compare: without `./` in front and slashes behind.
pub fn normalized_path(path: &[u8]) -> &[u8] {
    let mut key = path;
    while let Some(rest) = key.strip_prefix(b"./") {
        key = rest;
    }
    while let Some(rest) = key.strip_suffix(b"/") {
        key = rest;
    }
    key
}

/// A hash table with open addressing. A slot is 0, or the low 24 bits of the hash above the number of the entry plus one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameIndex {
    slots: Vec<u64>,
}

impl NameIndex {
    /// The table of so many entries, whose paths `path` gives. If several have one name, it leads to the last one. `None` if
    /// there are more than a slot can say, or there is no memory.
    pub fn build<'a>(entries: u64, path: impl Fn(u64) -> &'a [u8]) -> Option<Self> {
        if entries >= 1 << ENTRY_BITS {
            return None;
        }
        let capacity = usize::try_from(entries + entries / 4 + 1).ok()?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(capacity).ok()?;
        slots.resize(capacity, 0);
        let mut index = NameIndex { slots };
        for entry in 0..entries {
            let key = normalized_path(path(entry));
            let hash = XxHash3_64::oneshot(key);
            let at = index.slot_of(hash, |other| normalized_path(path(other)) == key);
            if let Some(slot) = index.slots.get_mut(at) {
                *slot = (hash << ENTRY_BITS) | (entry + 1);
            }
        }
        Some(index)
    }

    /// The table that a file has. Any slots do no harm: what they lead to is compared.
    pub fn from_slots(slots: Vec<u64>) -> Self {
        NameIndex { slots }
    }

    /// The slots, as a file has them.
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// The slot of a name: one with an entry of it, or the first free one.
    fn slot_of(&self, hash: u64, is_same: impl Fn(u64) -> bool) -> usize {
        let capacity = self.slots.len();
        let mut at = ((u128::from(hash) * capacity as u128) >> 64) as usize;
        for _ in 0..capacity {
            let slot = self.slots.get(at).copied().unwrap_or(0);
            let entry = slot & ((1 << ENTRY_BITS) - 1);
            if entry == 0 || (slot >> ENTRY_BITS == (hash << ENTRY_BITS) >> ENTRY_BITS && is_same(entry - 1)) {
                return at;
            }
            at = if at + 1 == capacity { 0 } else { at + 1 };
        }
        capacity
    }

    /// The entry of a name, where `is_same` says whether an entry has it.
    pub fn find_entry(&self, name: &[u8], is_same: impl Fn(u64) -> bool) -> Option<u64> {
        let at = self.slot_of(XxHash3_64::oneshot(normalized_path(name)), is_same);
        let entry = self.slots.get(at)? & ((1 << ENTRY_BITS) - 1);
        entry.checked_sub(1)
    }
}
