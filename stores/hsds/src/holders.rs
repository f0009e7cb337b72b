//! Where variable-length elements are that cross the seam as tokens.
//!
//! A holder is a chunk, an attribute or a fill value. When it changes, its version changes. Tokens of an earlier version
//! still lead to their elements if the session itself has stored these again: the session remembers which tokens those
//! were. It says so before it stores them, so that whoever reads them before it has come back from storing them finds the same
//! version.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use h5live_model::{ChunkCoord, Error as ModelError, Name, ObjectId, Result};
use parking_lot::Mutex;

use crate::layout::{NodeTable, Token};

/// The holder of elements that are not stored yet.
const UNSTORED: u32 = u32::MAX;
/// Most tokens of earlier versions that are remembered of a holder whose elements do not change.
const MAX_MOVED_TOKENS: usize = 1 << 16;
/// Most tokens of the versions before the last one that are remembered when a holder is stored again: so many...
const MAX_EARLIER_TOKENS: usize = 1 << 10;
/// ...or so many for each of its elements, if these are more.
const EARLIER_TOKENS_PER_ELEMENT: usize = 4;
/// Most bytes of stored elements that are kept to look up tokens.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Something that holds variable-length elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VarLenLocation {
    /// A chunk.
    Chunk(ObjectId, ChunkCoord),
    /// An attribute.
    Attribute(ObjectId, Name),
    /// The fill value of a dataset.
    Fill(ObjectId),
}

/// The stored elements of a holder.
#[derive(Debug, Clone)]
pub struct CachedElements {
    pub stored: Arc<[u8]>,
    pub nodes: Arc<NodeTable>,
}

#[derive(Debug)]
struct HolderEntry {
    holder: VarLenLocation,
    version: u32,
    hash: u64,
    /// What is being stored: its hash, and the tokens in it, with the numbers that their elements will have.
    pending: Option<(u64, HashMap<Token, u32>)>,
    /// Tokens of earlier versions, and the numbers that their elements have now.
    moved: HashMap<Token, u32>,
    held: Option<CachedElements>,
}

/// An element that was put, and is in no stored elements yet, or in those of a holder.
#[derive(Debug)]
enum PutElement {
    Bytes(Arc<[u8]>),
    In(u32),
}

#[derive(Debug, Default)]
struct HolderTable {
    numbers: HashMap<VarLenLocation, u32>,
    entries: Vec<HolderEntry>,
    put: HashMap<u64, PutElement>,
    next_put: u64,
    /// Entries that keep their elements, the oldest first, and the bytes of all.
    kept: VecDeque<usize>,
    kept_bytes: usize,
}

/// Where the elements of a session's tokens are.
#[derive(Debug, Default)]
pub struct VarLenLocations(Mutex<HolderTable>);

/// Where an element is.
#[derive(Debug)]
pub enum FoundElement {
    /// Not stored yet: base elements, as they cross the seam.
    Put(Arc<[u8]>),
    /// In the stored elements of a holder, which are known, or have to be read.
    Stored {
        holder: VarLenLocation,
        /// The token, with the version and the number that are right now.
        token: Token,
        held: Option<CachedElements>,
    },
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn put_key(token: Token) -> u64 {
    u64::from(token.version) << 32 | u64::from(token.number)
}

/// A token without its count: what is remembered.
fn place_of(token: Token) -> Token {
    Token { count: 0, ..token }
}

impl VarLenLocations {
    /// Keeps elements that are not stored yet, each with its count.
    pub fn put(&self, elements: &[(&[u8], u32)]) -> Vec<Token> {
        let mut table = self.0.lock();
        let put = |(bytes, count): &(&[u8], u32)| {
            if *count == 0 {
                return Token::default();
            }
            let key = table.next_put;
            table.next_put += 1;
            table.put.insert(key, PutElement::Bytes((*bytes).into()));
            Token { count: *count, holder: UNSTORED, version: (key >> 32) as u32, number: key as u32 }
        };
        elements.iter().map(put).collect()
    }

    /// Gives up elements.
    pub fn remove(&self, tokens: impl Iterator<Item = Token>) {
        let mut table = self.0.lock();
        for token in tokens.filter(|token| token.holder == UNSTORED) {
            table.put.remove(&put_key(token));
        }
    }

    /// The version that a holder has, which is to be known before its elements are read.
    pub fn version(&self, holder: &VarLenLocation) -> u32 {
        let table = self.0.lock();
        let index = table.numbers.get(holder).map(|number| *number as usize);
        index.and_then(|index| table.entries.get(index)).map_or(0, |entry| entry.version)
    }

    /// The number and the version of a holder whose elements were read, when it had the version `seen`. `None` if it was stored
    /// anew meanwhile: nobody knows then whether these are the older elements, and they are to be read again.
    pub fn enter_seen(&self, holder: VarLenLocation, seen: u32, stored: &[u8]) -> Option<(u32, u32)> {
        let mut table = self.0.lock();
        let index = table.entry(holder);
        let hash = hash_of(stored);
        let entry = table.entries.get(index)?;
        match &entry.pending {
            _ if entry.hash == hash => {}
            Some((pending, _)) if *pending == hash => table.end_storing(index),
            _ if entry.version == seen => table.renew(index, hash, HashMap::new()),
            _ => return None,
        }
        let version = table.entries.get(index)?.version;
        Some((index as u32 + 1, version))
    }

    /// The number and the version of a holder whose elements are in a document of the session.
    pub fn enter(&self, holder: VarLenLocation, stored: &[u8]) -> (u32, u32) {
        let mut table = self.0.lock();
        let index = table.entry(holder);
        let hash = hash_of(stored);
        if table.entries.get(index).is_some_and(|entry| entry.hash != hash) {
            table.renew(index, hash, HashMap::new());
        }
        let version = table.entries.get(index).map_or(0, |entry| entry.version);
        (index as u32 + 1, version)
    }

    /// Keeps the elements that a holder had in this version, to look up tokens.
    pub fn keep(&self, holder: &VarLenLocation, version: u32, held: CachedElements) {
        let mut table = self.0.lock();
        let Some(index) = table.numbers.get(holder).map(|number| *number as usize) else { return };
        // Elements of another version have other places: a token would lead to the value of another element.
        if table.entries.get(index).is_none_or(|entry| entry.version != version) {
            return;
        }
        table.forget_elements(index);
        table.kept_bytes += held.stored.len();
        table.kept.push_back(index);
        if let Some(entry) = table.entries.get_mut(index) {
            entry.held = Some(held);
        }
        while table.kept_bytes > MAX_KEPT_BYTES && table.kept.len() > 1 {
            if let Some(oldest) = table.kept.front().copied() {
                table.forget_elements(oldest);
            }
        }
    }

    /// Says which tokens are about to be stored in a holder, with their numbers.
    pub fn begin_storing(&self, holder: VarLenLocation, stored: &[u8], tokens: Vec<(Token, u32)>) {
        let mut table = self.0.lock();
        let index = table.entry(holder);
        if let Some(entry) = table.entries.get_mut(index) {
            entry.pending = Some((hash_of(stored), tokens.into_iter().collect()));
        }
    }

    /// Says that they were stored.
    pub fn end_storing(&self, holder: &VarLenLocation) {
        let mut table = self.0.lock();
        if let Some(index) = table.numbers.get(holder).map(|number| *number as usize) {
            table.end_storing(index);
        }
    }

    /// Where the element of a token is.
    ///
    /// # Errors
    /// [`ModelError::Moved`] if its holder has been stored anew since, without it.
    pub fn find(&self, token: Token) -> Result<FoundElement> {
        let table = self.0.lock();
        let index = match token.holder {
            UNSTORED => match table.put.get(&put_key(token)) {
                Some(PutElement::Bytes(bytes)) => return Ok(FoundElement::Put(bytes.clone())),
                Some(PutElement::In(index)) => *index,
                None => return Err(ModelError::Moved),
            },
            holder => holder - 1,
        };
        let entry = table.entries.get(index as usize).ok_or(ModelError::Moved)?;
        let number = match token.holder != UNSTORED && token.version == entry.version {
            true => token.number,
            false => *entry.moved.get(&place_of(token)).ok_or(ModelError::Moved)?,
        };
        let token = Token { count: token.count, holder: index + 1, version: entry.version, number };
        Ok(FoundElement::Stored { holder: entry.holder.clone(), token, held: entry.held.clone() })
    }
}

impl HolderEntry {
    /// The tokens whose elements are among those that are being stored, with the numbers that they will have. Whoever has read the
    /// holder meanwhile has other tokens of the same elements than whoever stores them.
    fn tokens_that_stay(&self, index: usize, stored: &HashMap<Token, u32>) -> HashMap<Token, u32> {
        let own = |number| Token { count: 0, holder: index as u32 + 1, version: self.version, number };
        let number = |token: Token| match token.holder == index as u32 + 1 && token.version == self.version {
            true => Some(token.number),
            false => self.moved.get(&place_of(token)).copied(),
        };
        let new_of_old: HashMap<u32, u32> =
            stored.iter().filter_map(|(token, new)| Some((number(*token)?, *new))).collect();
        let mut stay: HashMap<Token, u32> = new_of_old.iter().map(|(old, new)| (own(*old), *new)).collect();
        // Those of versions before, unless that would take longer than the elements themselves.
        if self.moved.len() <= MAX_EARLIER_TOKENS.max(EARLIER_TOKENS_PER_ELEMENT * stored.len()) {
            stay.extend(self.moved.iter().filter_map(|(token, old)| Some((*token, *new_of_old.get(old)?))));
        }
        stay
    }
}

impl HolderTable {
    fn entry(&mut self, holder: VarLenLocation) -> usize {
        if let Some(number) = self.numbers.get(&holder) {
            return *number as usize;
        }
        let index = self.entries.len();
        self.numbers.insert(holder.clone(), index as u32);
        let moved = HashMap::new();
        self.entries.push(HolderEntry { holder, version: 0, hash: 0, pending: None, moved, held: None });
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
        for token in tokens.keys().filter(|token| token.holder == UNSTORED) {
            self.put.insert(put_key(*token), PutElement::In(index as u32));
        }
        if let Some(entry) = self.entries.get_mut(index) {
            entry.moved.extend(tokens.into_iter().map(|(token, number)| (place_of(token), number)));
        }
    }

    /// Gives a holder its next version, to which some tokens of earlier ones lead.
    fn renew(&mut self, index: usize, hash: u64, moved: HashMap<Token, u32>) {
        self.forget_elements(index);
        let Some(entry) = self.entries.get_mut(index) else { return };
        entry.version = entry.version.wrapping_add(1);
        entry.hash = hash;
        let earlier = std::mem::replace(&mut entry.moved, moved);
        let is_gone = |token: &&Token| token.holder == UNSTORED && !entry.moved.contains_key(*token);
        for key in earlier.keys().filter(is_gone).map(|token| put_key(*token)) {
            if matches!(self.put.get(&key), Some(PutElement::In(holder)) if *holder as usize == index) {
                self.put.remove(&key);
            }
        }
    }

    fn forget_elements(&mut self, index: usize) {
        if let Some(held) = self.entries.get_mut(index).and_then(|entry| entry.held.take()) {
            self.kept_bytes = self.kept_bytes.saturating_sub(held.stored.len());
        }
        self.kept.retain(|kept| *kept != index);
    }
}
