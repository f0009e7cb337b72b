//! Where variable-length elements are that cross the seam as tokens.
//!
//! A holder is a chunk, an attribute or a fill value. When it changes, its version changes. Tokens of an earlier version
//! still lead to their elements if the session itself has stored these again: the session remembers which tokens those
//! were. It says so before it stores them, so that whoever reads them before it has come back from storing them finds the same
//! version.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use h5live_model::{ChunkCoord, Error as ModelError, Name, ObjectId, Result};
use parking_lot::Mutex;

use crate::byte_bounded_fifo_cache::ByteBoundedFifoCache;
use crate::layout::{VarLenElementTable, VarLenToken};
use crate::run_length_token_map::RunLengthTokenMap;

/// The holder of elements that are not stored yet.
const UNSTORED: u32 = u32::MAX;
/// Most tokens of earlier versions that are remembered of a holder whose elements do not change.
const MAX_MOVED_TOKENS: usize = 1 << 16;
/// Most tokens of the versions before the last one that are remembered when a holder is stored again: so many...
const MAX_EARLIER_TOKENS: usize = 1 << 10;
/// ...or so many for each of its elements, if these are more.
const EARLIER_TOKENS_PER_ELEMENT: usize = 4;

/// Something that holds variable-length elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VarLenHolder {
    /// A chunk.
    Chunk(ObjectId, ChunkCoord),
    /// An attribute.
    Attribute(ObjectId, Name),
    /// The fill value of a dataset.
    Fill(ObjectId),
}

/// The stored elements of a holder.
#[derive(Debug, Clone)]
pub struct HolderElements {
    pub stored_elements: Arc<[u8]>,
    pub element_table: Arc<VarLenElementTable>,
}

#[derive(Debug)]
struct HolderEntry {
    holder: VarLenHolder,
    version: u32,
    hash: u64,
    /// What is being stored: its hash, and the tokens in it, in their order, with the numbers that their elements will have.
    pending: Option<(u64, Vec<(VarLenToken, u32)>)>,
    /// Tokens of earlier versions, and the numbers that their elements have now.
    moved: RunLengthTokenMap,
}

#[derive(Debug)]
struct HolderTable {
    numbers: HashMap<VarLenHolder, u32>,
    entries: Vec<HolderEntry>,
    /// Elements that were put, and are in no stored elements yet.
    put: HashMap<u64, Arc<[u8]>>,
    /// The entries in whose stored elements those are that were.
    put_in: RunLengthTokenMap,
    next_put: u64,
    /// The stored elements of entries, to look up tokens.
    kept: ByteBoundedFifoCache<usize, HolderElements>,
}

/// Where the elements of a session's tokens are.
#[derive(Debug)]
pub struct VarLenTokenTable(Mutex<HolderTable>);

/// Where an element is.
#[derive(Debug)]
pub enum VarLenElementLocation {
    /// Not stored yet: base elements, as they cross the seam.
    Unstored(Arc<[u8]>),
    /// In the stored elements of a holder, which are known, or have to be read.
    Stored {
        holder: VarLenHolder,
        /// The token, with the version and the number that are right now.
        token: VarLenToken,
        cached_elements: Option<HolderElements>,
    },
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn put_key(token: VarLenToken) -> u64 {
    u64::from(token.holder_version) << 32 | u64::from(token.element_number)
}

impl VarLenTokenTable {
    /// A table that keeps at most so many bytes of stored elements, to look up tokens.
    pub fn new(max_cached_bytes: usize) -> Self {
        VarLenTokenTable(Mutex::new(HolderTable {
            numbers: HashMap::new(),
            entries: Vec::new(),
            put: HashMap::new(),
            put_in: RunLengthTokenMap::for_shared_numbers(),
            next_put: 0,
            kept: ByteBoundedFifoCache::new(max_cached_bytes),
        }))
    }

    /// Keeps elements that are not stored yet, each with its count.
    pub fn put_unstored(&self, elements: &[(&[u8], u32)]) -> Vec<VarLenToken> {
        let mut table = self.0.lock();
        let put = |(bytes, count): &(&[u8], u32)| {
            if *count == 0 {
                return VarLenToken::default();
            }
            let key = table.next_put;
            table.next_put += 1;
            table.put.insert(key, (*bytes).into());
            VarLenToken {
                base_element_count: *count,
                holder_id: UNSTORED,
                holder_version: (key >> 32) as u32,
                element_number: key as u32,
            }
        };
        elements.iter().map(put).collect()
    }

    /// Gives up elements.
    pub fn remove_put_tokens(&self, tokens: impl Iterator<Item = VarLenToken>) {
        let mut table = self.0.lock();
        for token in tokens.filter(|token| token.holder_id == UNSTORED) {
            if table.put.remove(&put_key(token)).is_none() {
                table.put_in.remove(token);
            }
        }
    }

    /// The version that a holder has, which is to be known before its elements are read.
    pub fn version(&self, holder: &VarLenHolder) -> u32 {
        let table = self.0.lock();
        let index = table.numbers.get(holder).map(|number| *number as usize);
        index.and_then(|index| table.entries.get(index)).map_or(0, |entry| entry.version)
    }

    /// The number and the version of a holder whose elements were read, when it had the version `seen_version`. `None` if it was stored
    /// anew meanwhile: nobody knows then whether these are the older elements, and they are to be read again.
    pub fn register_holder_elements_if_current(
        &self,
        holder: VarLenHolder,
        seen_version: u32,
        stored: &[u8],
    ) -> Option<(u32, u32)> {
        let mut table = self.0.lock();
        let index = table.entry(holder);
        let hash = hash_of(stored);
        let entry = table.entries.get(index)?;
        match &entry.pending {
            _ if entry.hash == hash => {}
            Some((pending, _)) if *pending == hash => table.end_storing(index),
            _ if entry.version == seen_version => {
                table.renew(index, hash, RunLengthTokenMap::for_consecutive_numbers())
            }
            _ => return None,
        }
        let version = table.entries.get(index)?.version;
        Some((index as u32 + 1, version))
    }

    /// The number and the version of a holder whose elements are in a document of the session.
    pub fn register_holder_elements(&self, holder: VarLenHolder, stored: &[u8]) -> (u32, u32) {
        let mut table = self.0.lock();
        let index = table.entry(holder);
        let hash = hash_of(stored);
        if table.entries.get(index).is_some_and(|entry| entry.hash != hash) {
            table.renew(index, hash, RunLengthTokenMap::for_consecutive_numbers());
        }
        let version = table.entries.get(index).map_or(0, |entry| entry.version);
        (index as u32 + 1, version)
    }

    /// Keeps the elements that a holder had in this version, to look up tokens.
    pub fn cache_elements_if_current(&self, holder: &VarLenHolder, version: u32, elements: HolderElements) {
        let mut table = self.0.lock();
        let Some(index) = table.numbers.get(holder).map(|number| *number as usize) else { return };
        // Elements of another version have other places: a token would lead to the value of another element.
        if table.entries.get(index).is_none_or(|entry| entry.version != version) {
            return;
        }
        let bytes = elements.stored_elements.len();
        table.kept.insert(index, elements, bytes);
    }

    /// Says which tokens are about to be stored in a holder, with their numbers. Of a token that is there twice, the last
    /// number counts.
    pub fn announce_storing(&self, holder: VarLenHolder, stored: &[u8], mut tokens: Vec<(VarLenToken, u32)>) {
        tokens.sort_by_key(|(token, _)| (token.holder_id, token.holder_version, token.element_number));
        let mut table = self.0.lock();
        let index = table.entry(holder);
        if let Some(entry) = table.entries.get_mut(index) {
            entry.pending = Some((hash_of(stored), tokens));
        }
    }

    /// Says that they were stored.
    pub fn note_stored(&self, holder: &VarLenHolder) {
        let mut table = self.0.lock();
        if let Some(index) = table.numbers.get(holder).map(|number| *number as usize) {
            table.end_storing(index);
        }
    }

    /// Where the element of a token is.
    ///
    /// # Errors
    /// [`ModelError::Moved`] if its holder has been stored anew since, without it.
    pub fn find(&self, token: VarLenToken) -> Result<VarLenElementLocation> {
        let table = self.0.lock();
        let index = match token.holder_id {
            UNSTORED => match table.put.get(&put_key(token)) {
                Some(bytes) => return Ok(VarLenElementLocation::Unstored(bytes.clone())),
                None => table.put_in.get(token).ok_or(ModelError::Moved)?,
            },
            holder => holder - 1,
        };
        let entry = table.entries.get(index as usize).ok_or(ModelError::Moved)?;
        let number = match token.holder_id != UNSTORED && token.holder_version == entry.version {
            true => token.element_number,
            false => entry.moved.get(token).ok_or(ModelError::Moved)?,
        };
        let token = VarLenToken {
            base_element_count: token.base_element_count,
            holder_id: index + 1,
            holder_version: entry.version,
            element_number: number,
        };
        Ok(VarLenElementLocation::Stored {
            holder: entry.holder.clone(),
            token,
            cached_elements: table.kept.get(&(index as usize)).cloned(),
        })
    }
}

impl HolderEntry {
    /// The tokens whose elements are among those that are being stored, with the numbers that they will have. Whoever has read the
    /// holder meanwhile has other tokens of the same elements than whoever stores them.
    fn tokens_that_stay(&self, index: usize, stored: &[(VarLenToken, u32)]) -> RunLengthTokenMap {
        let own = |number| VarLenToken {
            base_element_count: 0,
            holder_id: index as u32 + 1,
            holder_version: self.version,
            element_number: number,
        };
        let number =
            |token: VarLenToken| match token.holder_id == index as u32 + 1 && token.holder_version == self.version {
                true => Some(token.element_number),
                false => self.moved.get(token),
            };
        let new_of_old: BTreeMap<u32, u32> =
            stored.iter().filter_map(|(token, new)| Some((number(*token)?, *new))).collect();
        let mut stay = RunLengthTokenMap::for_consecutive_numbers();
        new_of_old.iter().for_each(|(old, new)| stay.insert(own(*old), *new));
        // Those of versions before, unless that would take longer than the elements themselves.
        if self.moved.len() <= MAX_EARLIER_TOKENS.max(EARLIER_TOKENS_PER_ELEMENT * stored.len()) {
            for (token, old) in self.moved.iter() {
                if let Some(new) = new_of_old.get(&old) {
                    stay.insert(token, *new);
                }
            }
        }
        stay
    }
}

impl HolderTable {
    fn entry(&mut self, holder: VarLenHolder) -> usize {
        if let Some(number) = self.numbers.get(&holder) {
            return *number as usize;
        }
        let index = self.entries.len();
        self.numbers.insert(holder.clone(), index as u32);
        let moved = RunLengthTokenMap::for_consecutive_numbers();
        self.entries.push(HolderEntry { holder, version: 0, hash: 0, pending: None, moved });
        index
    }

    /// Takes up what was being stored in a holder.
    fn end_storing(&mut self, index: usize) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        let Some((hash, tokens)) = entry.pending.take() else { return };
        // The same elements stored again need no other version, unless too many tokens lead to them.
        if entry.hash != hash || entry.moved.len() >= MAX_MOVED_TOKENS {
            let stay = entry.tokens_that_stay(index, &tokens);
            self.renew(index, hash, stay);
        }
        for (token, _) in tokens.iter().filter(|(token, _)| token.holder_id == UNSTORED) {
            self.put.remove(&put_key(*token));
            self.put_in.insert(*token, index as u32);
        }
        if let Some(entry) = self.entries.get_mut(index) {
            tokens.into_iter().for_each(|(token, number)| entry.moved.insert(token, number));
        }
    }

    /// Gives a holder its next version, to which some tokens of earlier ones lead.
    fn renew(&mut self, index: usize, hash: u64, moved: RunLengthTokenMap) {
        self.kept.remove(&index);
        let Some(entry) = self.entries.get_mut(index) else { return };
        entry.version = entry.version.wrapping_add(1);
        entry.hash = hash;
        let earlier = std::mem::replace(&mut entry.moved, moved);
        for (token, _) in earlier.iter().filter(|(token, _)| token.holder_id == UNSTORED) {
            if entry.moved.get(token).is_none() && self.put_in.get(token) == Some(index as u32) {
                self.put_in.remove(token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorder stores texts for days: what is remembered grows with the chunks, and not with the texts.
    #[test]
    fn many_texts_of_a_chunk_take_the_memory_of_few() {
        let locations = VarLenTokenTable::new(1 << 20);
        for chunk in 0..3u64 {
            let holder = VarLenHolder::Chunk(ObjectId(1), ChunkCoord::new(&[chunk]));
            let mut tokens = Vec::new();
            // A chunk is stored again whenever some texts have come.
            for flush in 0..4u8 {
                tokens.extend(locations.put_unstored(&[(b"text".as_slice(), 4); 1_000]));
                let numbered = tokens.iter().enumerate().map(|(number, token)| (*token, number as u32 + 1));
                locations.announce_storing(holder.clone(), &[chunk as u8, flush], numbered.collect());
                locations.note_stored(&holder);
            }
            for (at, token) in tokens.iter().enumerate() {
                let found = locations.find(*token).unwrap();
                assert!(
                    matches!(found, VarLenElementLocation::Stored { token, .. } if token.element_number == at as u32 + 1)
                );
            }
        }
        let table = locations.0.lock();
        assert!(table.put.is_empty());
        assert_eq!((table.put_in.len(), table.put_in.run_count()), (12_000, 3));
        let runs: Vec<usize> = table.entries.iter().map(|entry| entry.moved.run_count()).collect();
        assert!(runs.iter().all(|runs| *runs <= 5), "{runs:?}");
    }
}
