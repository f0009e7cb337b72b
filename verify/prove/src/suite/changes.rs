//! Changes of entries that come and go.

use crate::entry_changes::EntryChange::{self, Flush, Put, Remove};

/// Many entries: some come and some go, alone and together.
pub const MANY: &[EntryChange] =
    &[Put(20, 1), Flush, Remove(3), Flush, Put(21, 3), Remove(20), Flush, Remove(21), Put(22, 2), Put(3, 1), Flush];

/// Entries are replaced: by some of the same length, longer ones, and those that no block of a heap holds.
pub const REPLACED: &[EntryChange] = &[
    Put(3, 3),
    Flush,
    Put(20, 600),
    Flush,
    Put(20, 2),
    Put(4, 600),
    Flush,
    Remove(4),
    Flush,
    Put(5, 1),
    Put(5, 2),
    Flush,
];

/// Entries become so many that they move out of the header, and so few that they move back.
pub const TO_AND_FRO: &[EntryChange] = &[
    Put(20, 1),
    Put(21, 2),
    Flush,
    Remove(20),
    Remove(21),
    Remove(0),
    Remove(1),
    Flush,
    Put(0, 2),
    Put(1, 1),
    Put(2, 3),
    Flush,
    Remove(3),
    Flush,
];

/// As [`TO_AND_FRO`], of links, which are not replaced.
pub const LINKS_TO_AND_FRO: &[EntryChange] = &[
    Put(20, 1),
    Put(21, 2),
    Flush,
    Remove(20),
    Remove(21),
    Remove(0),
    Remove(1),
    Flush,
    Put(0, 2),
    Put(1, 1),
    Put(22, 3),
    Flush,
    Remove(3),
    Flush,
];

/// Entries of a header are replaced by longer ones, which go into other chunks of it, and by shorter ones.
pub const MOVED: &[EntryChange] = &[
    Put(0, 9),
    Flush,
    Put(1, 30),
    Flush,
    Put(2, 5),
    Put(1, 2),
    Flush,
    Put(0, 40),
    Flush,
    Put(3, 12),
    Flush,
    Put(2, 1),
    Put(0, 2),
    Flush,
];

/// Entries of a header are replaced by longer ones. Of those that are replaced between two flushes, one goes from the
/// first chunk of the header to the second one, and another the other way.
pub const EXCHANGED: &[EntryChange] = &[
    Put(0, 9),
    Flush,
    Remove(2),
    Remove(3),
    Remove(4),
    Flush,
    Put(1, 30),
    Put(0, 12),
    Flush,
    Put(0, 20),
    Put(1, 4),
    Put(5, 2),
    Flush,
];

/// Names take more than a page of memory. So do redo records with them, while others are short: the end of a longer one
/// lies behind a shorter one, and before the next longer one is complete.
pub const BEYOND_A_PAGE: &[EntryChange] =
    &[Put(30, 1200), Flush, Put(21, 3), Put(22, 2), Flush, Put(23, 2), Flush, Remove(21), Flush, Put(24, 2), Flush];
