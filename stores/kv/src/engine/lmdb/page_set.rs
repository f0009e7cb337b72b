//! A set of numbers of pages.

use std::collections::HashMap;

/// Numbers of pages in one block of the set.
const BLOCK_PAGES: u64 = 4096;
const WORDS: usize = BLOCK_PAGES as usize / 64;

/// Numbers of pages, one bit for each, in blocks: what a file states of pages that it does not have takes no memory.
#[derive(Debug, Default)]
pub struct PageSet {
    blocks: HashMap<u64, [u64; WORDS]>,
    len: u64,
}

impl PageSet {
    /// Adds a number. Whether it was not in the set.
    pub fn insert(&mut self, page: u64) -> bool {
        let block = self.blocks.entry(page / BLOCK_PAGES).or_insert([0; WORDS]);
        let bit = 1u64 << (page % 64);
        let Some(word) = block.get_mut((page % BLOCK_PAGES / 64) as usize) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        self.len += u64::from(is_new);
        is_new
    }

    /// How many numbers it has.
    pub fn len(&self) -> u64 {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_each_number_once() {
        let mut set = PageSet::default();
        let pages = [0, 63, 64, 4095, 4096, u64::MAX];
        assert!(pages.iter().all(|page| set.insert(*page)));
        assert!(pages.iter().all(|page| !set.insert(*page)));
        assert_eq!(set.len(), pages.len() as u64);
    }
}
