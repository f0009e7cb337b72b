//! Values by key.

use std::borrow::Borrow;

/// Values that are looked up by a key, in as many steps as the binary logarithm of their number. The first one of a key
/// counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyTable<K, V>(Vec<(K, V)>);

impl<K: Ord, V> KeyTable<K, V> {
    pub fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let at = self.0.partition_point(|(known, _)| known.borrow() < key);
        self.0.get(at).filter(|(known, _)| known.borrow() == key).map(|(_, value)| value)
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for KeyTable<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        // Stable, so that the first one of a key stays the first.
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        KeyTable(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_of_a_key_is_found() {
        let table: KeyTable<Vec<u8>, u32> =
            [(3u8, 0), (1, 1), (2, 2), (1, 3)].map(|(key, n)| (vec![key], n)).into_iter().collect();
        assert_eq!(
            [0u8, 1, 2, 3, 4].map(|key| table.find(&[key][..]).copied()),
            [None, Some(1), Some(2), Some(0), None]
        );
    }
}
