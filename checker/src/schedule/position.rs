//! Positions of a writer.

use std::fmt;
use std::num::NonZeroU32;

/// Bytes of a page: what operating systems copy at once.
pub const OS_PAGE_BYTES: u64 = 4096;

/// Which part of the write that is under way can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Tear {
    /// None of it.
    #[default]
    None,
    /// The first bytes: this number of them.
    Cut(u32),
    /// The pages whose bit is set. Bit 0 is the first page that the write touches.
    PageMask(u64),
}

/// A position of a writer: a number of whole operations, and a part of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WriterPosition {
    /// The number of operations that are complete.
    pub prefix: u32,
    /// The visible part of the next operation.
    pub tear: Tear,
}

impl WriterPosition {
    /// Between two operations.
    pub fn after(prefix: usize) -> Self {
        WriterPosition { prefix: u32::try_from(prefix).unwrap_or(u32::MAX), tear: Tear::None }
    }

    /// Whether it is in the middle of an operation.
    pub fn is_torn(self) -> bool {
        self.tear != Tear::None
    }
}

impl fmt::Display for WriterPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tear {
            Tear::None => write!(f, "{}", self.prefix),
            Tear::Cut(bytes) => write!(f, "{}+{bytes}", self.prefix),
            Tear::PageMask(pages) => write!(f, "{}+p{pages:b}", self.prefix),
        }
    }
}

/// Which parts of a write may be seen before the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AllowedTears {
    /// Writes go from low to high addresses, and stop at multiples of this.
    pub cut_unit_bytes: Option<NonZeroU32>,
    /// The pages of a write appear in any order.
    pub reorders_pages: bool,
    /// Most torn positions on one path. To stay at one, for ever if need be, is free.
    pub max_torn_positions_per_run: u32,
    /// Whether readers must cope with a write that stays half-done, because its writer is dead.
    pub torn_writes_may_last: bool,
}

/// Most pages of one write that a read may find in any order; of more, one at a time is missing or alone.
const MAX_REORDERED_PAGES: u32 = 6;

impl AllowedTears {
    /// Every write is seen whole.
    pub const NONE: AllowedTears = AllowedTears {
        cut_unit_bytes: None,
        reorders_pages: false,
        max_torn_positions_per_run: 0,
        torn_writes_may_last: false,
    };

    /// Writes that stop at multiples of `unit` bytes, seen at most twice on a path.
    pub fn cut_at_multiples_of(unit: u32) -> Self {
        AllowedTears {
            cut_unit_bytes: NonZeroU32::new(unit),
            reorders_pages: false,
            max_torn_positions_per_run: 2,
            torn_writes_may_last: false,
        }
    }

    /// Writes whose pages appear in any order, at most twice on a path.
    pub fn pages_in_any_order() -> Self {
        AllowedTears {
            cut_unit_bytes: None,
            reorders_pages: true,
            max_torn_positions_per_run: 2,
            torn_writes_may_last: false,
        }
    }

    /// The parts of a write of `len` bytes at `at` that may make a difference between `from` and `to` (bytes from the
    /// start of the file), in ascending order.
    pub(crate) fn possible_tears(&self, at: u64, len: u64, from: u64, to: u64) -> Vec<Tear> {
        let mut tears = Vec::new();
        if self.max_torn_positions_per_run == 0 || len == 0 {
            return tears;
        }
        let end = at.saturating_add(len);
        if let Some(unit) = self.cut_unit_bytes.map(|unit| u64::from(unit.get())) {
            // A cut before `from` shows the old bytes there, the first one at or behind `to` the new ones.
            let first = at.max(from).saturating_add(1).next_multiple_of(unit);
            let cuts = (0..).map_while(|n| first.checked_add(n * unit)).take_while(|cut| *cut < end);
            let mut reached = false;
            for cut in cuts {
                if std::mem::replace(&mut reached, cut >= to) {
                    break;
                }
                tears.extend(u32::try_from(cut - at).ok().map(Tear::Cut));
            }
        }
        let (first, last) = (at / OS_PAGE_BYTES, (end - 1) / OS_PAGE_BYTES);
        if self.reorders_pages && first < last {
            let touched = (from.max(at) / OS_PAGE_BYTES, to.min(end).saturating_sub(1) / OS_PAGE_BYTES);
            let bits: Vec<u32> = (touched.0..=touched.1).filter_map(|n| u32::try_from(n - first).ok()).collect();
            tears.extend(subsets(&bits).into_iter().map(Tear::PageMask));
        }
        tears
    }
}

/// Sets of some of `bits`, as masks, the empty one left out.
fn subsets(bits: &[u32]) -> Vec<u64> {
    let bits: Vec<u32> = bits.iter().copied().filter(|bit| *bit < u64::BITS).collect();
    let mask = |chosen: u64| {
        bits.iter().enumerate().filter(|(n, _)| chosen >> n & 1 == 1).fold(0, |mask, (_, bit)| mask | 1 << bit)
    };
    let count = bits.len() as u32;
    if count <= MAX_REORDERED_PAGES {
        return (1..1u64 << count).map(mask).collect();
    }
    let all = bits.iter().fold(0, |mask, bit| mask | 1u64 << bit);
    let single = bits.iter().map(|bit| 1u64 << bit);
    let mut sets: Vec<u64> = single.clone().chain(single.map(|bit| all & !bit)).chain([all]).collect();
    sets.sort_unstable_by_key(|set| (set.count_ones(), *set));
    sets
}
