//! Values that can be read again, within a number of bytes.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

#[derive(Debug)]
struct KeptValue<V> {
    value: V,
    bytes: usize,
    /// When it was kept: the key of its place in the order.
    time: u64,
}

/// Values within a number of bytes: the one that was kept first goes first, and the last one always stays. Every operation
/// takes steps in proportion to the logarithm of their number.
#[derive(Debug)]
pub struct ByteBoundedFifoCache<K, V> {
    values: BTreeMap<K, KeptValue<V>>,
    order: BTreeMap<u64, K>,
    next_time: u64,
    bytes: usize,
    max_bytes: usize,
}

impl<K: Ord + Clone, V> ByteBoundedFifoCache<K, V> {
    /// For at most so many bytes.
    pub fn new(max_bytes: usize) -> Self {
        ByteBoundedFifoCache { values: BTreeMap::new(), order: BTreeMap::new(), next_time: 0, bytes: 0, max_bytes }
    }

    /// A value that is kept.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key).map(|kept| &kept.value)
    }

    /// Keeps a value of so many bytes, in place of one with the same key.
    pub fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.remove(&key);
        let time = self.next_time;
        self.next_time += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.order.insert(time, key.clone());
        self.values.insert(key, KeptValue { value, bytes, time });
        while self.bytes > self.max_bytes && self.values.len() > 1 {
            let Some((_, oldest)) = self.order.first_key_value().map(|(time, key)| (*time, key.clone())) else { break };
            self.remove(&oldest);
        }
    }

    /// Forgets a value.
    pub fn remove(&mut self, key: &K) {
        if let Some(kept) = self.values.remove(key) {
            self.order.remove(&kept.time);
            self.bytes = self.bytes.saturating_sub(kept.bytes);
        }
    }

    /// Forgets the values of a range of keys.
    pub fn remove_range(&mut self, keys: impl RangeBounds<K>) {
        let gone: Vec<K> = self.values.range(keys).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| self.remove(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_the_last_one_stays() {
        let mut kept = ByteBoundedFifoCache::new(10);
        (0..5).for_each(|key| kept.insert(key, key * 2, 3));
        assert_eq!(
            (0..5).map(|key| kept.get(&key).copied()).collect::<Vec<_>>(),
            [None, None, Some(4), Some(6), Some(8)]
        );
        kept.insert(2, 5, 3);
        kept.insert(5, 10, 3);
        assert_eq!((kept.get(&2), kept.get(&3)), (Some(&5), None), "what is kept again is the newest");
        kept.insert(6, 12, 100);
        assert_eq!((kept.values.len(), kept.order.len(), kept.get(&6)), (1, 1, Some(&12)));
    }

    #[test]
    fn ranges_go_and_give_their_bytes_back() {
        let mut kept = ByteBoundedFifoCache::new(1_000);
        (0..10).for_each(|key| kept.insert((key / 5, key), (), 7));
        kept.remove_range((1, 0)..);
        assert_eq!((kept.values.len(), kept.order.len(), kept.bytes), (5, 5, 35));
        kept.remove_range(..);
        assert_eq!(kept.bytes, 0);
    }
}
