//! The map of the used bytes of a file.

use std::collections::BTreeMap;

/// An object, by its position among those that were found. The first stands for the file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ObjectIndex(pub u32);

impl ObjectIndex {
    /// The file as a whole.
    pub const FILE: ObjectIndex = ObjectIndex(0);
}

/// A range of bytes, from the base address, with its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpaceUse {
    pub start: u64,
    pub len: u64,
    pub owner: ObjectIndex,
    structure_index: u16,
}

impl SpaceUse {
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    fn is_continued_by(&self, other: &SpaceUse) -> bool {
        self.owner == other.owner && self.structure_index == other.structure_index && self.end() == other.start
    }
}

/// More ranges of raw data are not kept apart, so that a hostile file cannot use up the memory.
const MAX_RAW_RANGES: usize = 1 << 24;

/// The map of the file. Neighbours of one kind and owner count as one.
#[derive(Debug)]
pub(super) struct SpaceMap {
    structure_names: Vec<&'static str>,
    metadata: BTreeMap<u64, SpaceUse>,
    raw_data: Vec<SpaceUse>,
    free_space: Vec<SpaceUse>,
    /// Pieces that were left out.
    pub skipped_uses: u64,
    /// Most ranges of raw data, and of free space.
    pub max_ranges: usize,
}

impl Default for SpaceMap {
    fn default() -> Self {
        SpaceMap {
            structure_names: Vec::new(),
            metadata: BTreeMap::new(),
            raw_data: Vec::new(),
            free_space: Vec::new(),
            skipped_uses: 0,
            max_ranges: MAX_RAW_RANGES,
        }
    }
}

impl SpaceMap {
    fn structure_index(&mut self, name: &'static str) -> u16 {
        let found = self.structure_names.iter().position(|known| std::ptr::eq(*known, name) || *known == name);
        let number = found.unwrap_or_else(|| {
            self.structure_names.push(name);
            self.structure_names.len() - 1
        });
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    /// The name of the structure in a range.
    pub fn structure_name(&self, piece: &SpaceUse) -> &'static str {
        self.structure_names.get(usize::from(piece.structure_index)).copied().unwrap_or("?")
    }

    fn new_use(&mut self, start: u64, len: u64, owner: ObjectIndex, what: &'static str) -> SpaceUse {
        SpaceUse { start, len, owner, structure_index: self.structure_index(what) }
    }

    /// Claims bytes for a structure. If some of them are used already, returns their user.
    pub fn claim_metadata(
        &mut self,
        start: u64,
        len: u64,
        owner: ObjectIndex,
        what: &'static str,
    ) -> Result<(), SpaceUse> {
        let mut piece = self.new_use(start, len, owner, what);
        if let Some((_, taken)) = self.metadata.range(..piece.end()).next_back().filter(|(_, t)| t.end() > start) {
            return Err(*taken);
        }
        if let Some((at, before)) = self.metadata.range(..start).next_back().filter(|(_, b)| b.is_continued_by(&piece))
        {
            let at = *at;
            piece = SpaceUse { start: at, len: before.len.saturating_add(len), ..piece };
            self.metadata.remove(&at);
        }
        if let Some(after) = self.metadata.get(&piece.end()).copied().filter(|after| piece.is_continued_by(after)) {
            self.metadata.remove(&after.start);
            piece.len = piece.len.saturating_add(after.len);
        }
        self.metadata.insert(piece.start, piece);
        Ok(())
    }

    /// Claims bytes for raw data. Overlaps are found at the end.
    pub fn add_raw_data(&mut self, start: u64, len: u64, owner: ObjectIndex, what: &'static str) {
        let piece = self.new_use(start, len, owner, what);
        self.skipped_uses += u64::from(!push_or_extend(&mut self.raw_data, piece, self.max_ranges));
    }

    /// Notes that bytes are free.
    pub fn add_free_space(&mut self, start: u64, len: u64, owner: ObjectIndex, what: &'static str) {
        let piece = self.new_use(start, len, owner, what);
        self.skipped_uses += u64::from(!push_or_extend(&mut self.free_space, piece, self.max_ranges));
    }

    /// Bytes of metadata, raw data and free space.
    pub fn metadata_raw_and_free_bytes(&self) -> (u64, u64, u64) {
        let sum = |list: &[SpaceUse]| list.iter().fold(0u64, |n, piece| n.saturating_add(piece.len));
        (
            self.metadata.values().fold(0u64, |n, piece| n.saturating_add(piece.len)),
            sum(&self.raw_data),
            sum(&self.free_space),
        )
    }

    /// All pieces of metadata, raw data and free space, by their place.
    pub fn used_and_free_by_start(&self) -> Vec<SpaceUse> {
        let mut all: Vec<SpaceUse> =
            self.metadata.values().chain(&self.raw_data).chain(&self.free_space).copied().collect();
        all.sort_by_key(|piece| piece.start);
        all
    }

    /// Goes over all pieces by their place: `overlap` gets each that begins before one before it ends, with that one;
    /// `gap` the unused bytes (start, end) between pieces, up to `end`. Stops when `overlap` says so.
    pub fn for_each_overlap_and_gap(
        &mut self,
        end: u64,
        mut overlap: impl FnMut(&SpaceUse, &SpaceUse) -> bool,
        mut gap: impl FnMut(u64, u64),
    ) {
        self.raw_data.sort_unstable_by_key(|piece| (piece.start, piece.len));
        self.free_space.sort_unstable_by_key(|piece| (piece.start, piece.len));
        let mut lists = [
            Box::new(self.metadata.values()) as Box<dyn Iterator<Item = &SpaceUse>>,
            Box::new(self.raw_data.iter()),
            Box::new(self.free_space.iter()),
        ]
        .map(Iterator::peekable);
        let mut last: Option<SpaceUse> = None;
        loop {
            let starts = lists.iter_mut().enumerate().filter_map(|(i, list)| Some((list.peek()?.start, i)));
            let Some((_, first)) = starts.min() else { break };
            let Some(piece) = lists.get_mut(first).and_then(Iterator::next) else { break };
            if let Some(before) = last.filter(|before| before.end() > piece.start) {
                if !overlap(piece, &before) {
                    return;
                }
            } else {
                let from = last.map_or(0, |before| before.end());
                if from < piece.start {
                    gap(from, piece.start);
                }
            }
            if last.is_none_or(|before| before.end() < piece.end()) {
                last = Some(*piece);
            }
        }
        let from = last.map_or(0, |before| before.end());
        if from < end {
            gap(from, end);
        }
    }
}

/// Adds a piece to a list of at most `max_ranges`, or to its last piece. `false` if the list is full.
fn push_or_extend(list: &mut Vec<SpaceUse>, piece: SpaceUse, max_ranges: usize) -> bool {
    if let Some(last) = list.last_mut().filter(|last| last.is_continued_by(&piece)) {
        last.len = last.len.saturating_add(piece.len);
        return true;
    }
    let fits = list.len() < max_ranges;
    if fits {
        list.push(piece);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Vec<(u64, u64)>;

    fn swept(space: &mut SpaceMap, end: u64) -> (Pairs, Pairs) {
        let (mut overlaps, mut gaps) = (Vec::new(), Vec::new());
        space.for_each_overlap_and_gap(
            end,
            |piece, before| {
                overlaps.push((piece.start, before.start));
                true
            },
            |from, to| gaps.push((from, to)),
        );
        (overlaps, gaps)
    }

    #[test]
    fn refuses_bytes_that_are_taken() {
        let mut space = SpaceMap::default();
        space.claim_metadata(100, 50, ObjectIndex::FILE, "a").unwrap();
        for (start, len) in [(100, 50), (149, 1), (0, 101), (50, 200), (120, 1)] {
            assert_eq!(space.claim_metadata(start, len, ObjectIndex(1), "b").unwrap_err().start, 100);
        }
        space.claim_metadata(150, 10, ObjectIndex(1), "b").unwrap();
        space.claim_metadata(90, 10, ObjectIndex(1), "b").unwrap();
    }

    #[test]
    fn neighbours_of_one_kind_are_one() {
        let mut space = SpaceMap::default();
        for start in [0, 20, 10, 30] {
            space.claim_metadata(start, 10, ObjectIndex::FILE, "a").unwrap();
            space.add_raw_data(start + 100, 10, ObjectIndex::FILE, "r");
        }
        assert_eq!((space.metadata.len(), space.raw_data.len()), (1, 4));
        assert_eq!(space.metadata_raw_and_free_bytes(), (40, 40, 0));
        assert_eq!(swept(&mut space, 200), (vec![], vec![(40, 100), (140, 200)]));
    }

    #[test]
    fn finds_what_overlaps_in_the_end() {
        let mut space = SpaceMap::default();
        space.claim_metadata(0, 10, ObjectIndex::FILE, "a").unwrap();
        space.add_raw_data(5, 20, ObjectIndex(1), "r");
        space.add_raw_data(6, 2, ObjectIndex(1), "r");
        space.add_free_space(24, 10, ObjectIndex::FILE, "f");
        assert_eq!(swept(&mut space, 34), (vec![(5, 0), (6, 5), (24, 5)], vec![]));
    }
}
