//! A cache of the links of large groups by name, for many lookups in a file that nobody changes.

use h5live_format::messages::{LinkMessage, LinkValue};
use h5live_format::{Addr, Widths, decode_prefix, lookup3};
use h5live_model::{Link, Name};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// Links of a group for each one that is sought before it is worth it to gather all.
const LINKS_PER_LOOKUP: u64 = 32;

/// Most bytes that all links that are kept take.
const MAX_CACHE_BYTES: usize = 16 << 20;

/// Most groups whose lookups are counted.
const MAX_COUNTED_GROUPS: usize = 64;

/// Links for each entry of a directory.
const LINKS_PER_BUCKET: usize = 2;

/// The cached groups of a file.
#[derive(Debug, Default)]
pub(crate) struct LinkCache(RwLock<LinkCacheState>);

#[derive(Debug, Default)]
struct LinkCacheState {
    groups: FxHashMap<Addr, CachedGroup>,
    /// Bytes that all tables take.
    weight: usize,
}

#[derive(Debug)]
enum CachedGroup {
    /// The number of lookups so far.
    Counting(u64),
    Loaded(LinkTable),
    /// It is too large, or not to be read as a whole.
    Uncacheable,
}

/// All links of a group.
#[derive(Debug, Default)]
pub(super) struct LinkTable {
    /// Link messages, one after the other.
    encoded_messages: Vec<u8>,
    /// The hash of each name, and where its message begins; sorted.
    message_ranges: Vec<(u32, u32)>,
    /// The first index in `links` of each bucket of hashes, and the end. Buckets are equal ranges of hashes.
    buckets: Vec<u32>,
}

/// A link as the seam has it.
pub(super) fn link_from_message(message: LinkMessage) -> Link {
    Link { target: message.value.into(), name: message.name, creation_order: message.creation_order }
}

impl LinkCache {
    /// The link of this name; `None` if that is not known.
    pub fn find_link(&self, group: Addr, name: &Name, widths: Widths) -> Option<Option<Link>> {
        match self.0.read().groups.get(&group)? {
            CachedGroup::Loaded(table) => table.find_link(name, widths),
            CachedGroup::Counting(_) | CachedGroup::Uncacheable => None,
        }
    }

    /// Counts a lookup in the group at `addr`, which has `len` dense links. After many lookups, `load` loads all of
    /// them, unless they take more bytes than it is given.
    pub(super) fn count_lookup(
        &self,
        addr: Addr,
        len: impl FnOnce() -> Option<u64>,
        load: impl FnOnce(usize) -> Option<LinkTable>,
    ) {
        if let Some(CachedGroup::Loaded(_) | CachedGroup::Uncacheable) = self.0.read().groups.get(&addr) {
            return;
        }
        let sought = {
            let mut known = self.0.write();
            let full = known.groups.len() >= MAX_COUNTED_GROUPS;
            match known.groups.get_mut(&addr) {
                Some(CachedGroup::Counting(times)) => {
                    *times += 1;
                    *times
                }
                None if !full => {
                    known.groups.insert(addr, CachedGroup::Counting(1));
                    1
                }
                _ => return,
            }
        };
        if !sought.is_power_of_two() || len().map_or(u64::MAX, |len| len / LINKS_PER_LOOKUP) > sought {
            return;
        }
        let room = {
            let mut known = self.0.write();
            // Nobody else gathers it meanwhile.
            known.groups.insert(addr, CachedGroup::Uncacheable);
            MAX_CACHE_BYTES.saturating_sub(known.weight)
        };
        let table = load(room);
        let mut known = self.0.write();
        // Other groups may have taken some of the room.
        let table = table.filter(|table| known.weight + table.memory_bytes() <= MAX_CACHE_BYTES);
        known.weight += table.as_ref().map_or(0, LinkTable::memory_bytes);
        known.groups.insert(addr, table.map_or(CachedGroup::Uncacheable, CachedGroup::Loaded));
    }
}

impl LinkTable {
    /// Adds the message of a link with this name.
    pub fn add_link(&mut self, message: &[u8], name: &[u8]) {
        self.message_ranges.push((lookup3(name, 0), self.encoded_messages.len() as u32));
        self.encoded_messages.extend_from_slice(message);
    }

    /// All links were added.
    pub fn build_hash_buckets(&mut self) {
        self.encoded_messages.shrink_to_fit();
        self.message_ranges.shrink_to_fit();
        self.message_ranges.sort_unstable();
        let buckets = self.message_ranges.len() / LINKS_PER_BUCKET + 1;
        self.buckets = vec![0; buckets + 1];
        self.message_ranges.iter().for_each(|(hash, _)| self.buckets[hash_bucket(*hash, buckets) + 1] += 1);
        (0..buckets).for_each(|index| self.buckets[index + 1] += self.buckets[index]);
    }

    /// Bytes that the table takes.
    pub fn memory_bytes(&self) -> usize {
        self.encoded_messages.capacity() + self.message_ranges.capacity() * (size_of::<(u32, u32)>() + size_of::<u32>())
    }

    fn find_link(&self, name: &Name, widths: Widths) -> Option<Option<Link>> {
        let hash = lookup3(name.as_bytes(), 0);
        let index = hash_bucket(hash, self.buckets.len() - 1);
        let links = self.message_ranges.get(self.buckets[index] as usize..self.buckets[index + 1] as usize)?;
        for (_, at) in links.iter().filter(|(stored, _)| *stored == hash) {
            let message = self.encoded_messages.get(*at as usize..)?;
            if let Some((stored, addr)) = LinkMessage::peek_plain_hard_link(message, widths) {
                if stored == name.as_bytes() {
                    let target = LinkValue::Hard(addr).into();
                    return Some(Some(Link { name: name.clone(), target, creation_order: None }));
                }
                continue;
            }
            let (message, _) = decode_prefix::<LinkMessage>(message, widths).ok()?;
            if message.name == *name {
                return Some(Some(link_from_message(message)));
            }
        }
        Some(None)
    }
}

/// The bucket of a hash, if the hashes are divided into `buckets` equal ranges.
fn hash_bucket(hash: u32, buckets: usize) -> usize {
    ((u64::from(hash) * buckets as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(messages: impl Iterator<Item = LinkMessage>) -> LinkTable {
        let mut table = LinkTable::default();
        for message in messages {
            table.add_link(&h5live_format::encode(&message, Widths::default()).unwrap(), message.name.as_bytes());
        }
        table.build_hash_buckets();
        table
    }

    #[test]
    fn finds_each_name_and_no_other() {
        for len in [0, 1, 2, 3, 1000] {
            // Of each ten links one is soft, one has an order of creation, one leads nowhere and one has a long name.
            let name = |number: u64| match number % 10 {
                7 => Name::from(format!("{number:0300}")),
                _ => Name::from(format!("name {number}")),
            };
            let message = |number: u64| LinkMessage {
                name: name(number),
                value: match number % 10 {
                    4 => LinkValue::Soft(Name::from(format!("/{number}"))),
                    6 => LinkValue::Hard(Addr::UNDEFINED),
                    _ => LinkValue::Hard(Addr::new(number)),
                },
                creation_order: (number % 10 == 5).then_some(number as i64),
                ..LinkMessage::default()
            };
            let table = table((0..len).map(message));
            for number in 0..len {
                let found = table.find_link(&name(number), Widths::default()).unwrap();
                assert_eq!(found, Some(link_from_message(message(number))));
            }
            assert!(
                (len..2 * len + 10).all(|number| table.find_link(&name(number), Widths::default()).unwrap().is_none())
            );
        }
    }

    #[test]
    fn hashes_from_end_to_end_have_a_bucket() {
        for buckets in [1, 2, 3, 1000] {
            assert_eq!((hash_bucket(0, buckets), hash_bucket(u32::MAX, buckets)), (0, buckets - 1));
        }
    }
}
