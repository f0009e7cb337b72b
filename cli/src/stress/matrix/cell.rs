//! The cells of the matrix: a chunk index, a kind of change, a filter and a kind of elements.

use std::fmt;

/// How the chunks of a dataset are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Index {
    /// One unlimited dimension.
    ExtensibleArray,
    /// Dimensions with limits.
    FixedArray,
    /// Several unlimited dimensions.
    Btree2,
    /// Files of the earliest profile.
    Btree1,
    /// Allocated early, and without filters.
    Implicit,
    /// A dataset of one chunk.
    Single,
}

/// What happens to a dataset while others read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// Elements are appended.
    Append,
    /// Rows of two dimensions are appended.
    AppendRows,
    /// Two dimensions grow by turns.
    Grow,
    /// A few elements here and there are written.
    Sparse,
    /// Whole chunks are written again and again.
    Rewrite,
    /// The extent goes down, and up again with other values.
    Shrink,
}

/// What chunks go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Filter {
    /// Nothing.
    None,
    /// Shuffle and deflate.
    Deflate,
    /// A checksum.
    Fletcher32,
}

/// What elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Type {
    /// Numbers of 8 bytes.
    Fixed,
    /// Strings of any length, in a heap.
    Vlen,
}

/// A cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// How chunks are found.
    pub index: Index,
    /// What happens.
    pub work: Work,
    /// What chunks go through.
    pub filter: Filter,
    /// What elements are.
    pub kind: Type,
}

impl Index {
    /// All of them.
    pub const ALL: [Index; 6] =
        [Index::ExtensibleArray, Index::FixedArray, Index::Btree2, Index::Btree1, Index::Implicit, Index::Single];
}

impl Work {
    /// All of them.
    pub const ALL: [Work; 6] = [Work::Append, Work::AppendRows, Work::Grow, Work::Sparse, Work::Rewrite, Work::Shrink];

    /// Whether elements get their value once, when the extent comes to hold them.
    pub fn grows(self) -> bool {
        matches!(self, Work::Append | Work::AppendRows | Work::Grow)
    }
}

impl Cell {
    /// The cells of all these choices; where there are none, of all there are.
    pub fn all(indexes: &[Index], works: &[Work], filters: &[Filter], kinds: &[Type]) -> Vec<Cell> {
        fn or<'a, T>(some: &'a [T], all: &'a [T]) -> &'a [T] {
            if some.is_empty() { all } else { some }
        }
        let mut cells = Vec::new();
        for &index in or(indexes, &Index::ALL) {
            for &work in or(works, &Work::ALL) {
                for &filter in or(filters, &[Filter::None, Filter::Deflate, Filter::Fletcher32]) {
                    for &kind in or(kinds, &[Type::Fixed, Type::Vlen]) {
                        cells.push(Cell { index, work, filter, kind });
                    }
                }
            }
        }
        cells
    }

    /// Why there is no such dataset.
    pub fn nonsense(self) -> Option<&'static str> {
        match (self.index, self.work, self.filter) {
            (Index::Implicit, _, Filter::Deflate | Filter::Fletcher32) => Some("an implicit index has no filters"),
            (Index::Single, Work::Append | Work::AppendRows | Work::Grow, _) => Some("a single chunk does not grow"),
            (Index::Btree2, Work::Append, _) => Some("two unlimited dimensions are not one"),
            _ => None,
        }
    }

    /// Why libhdf5 cannot follow, though h5live can.
    pub fn beyond_libhdf5(self) -> Option<&'static str> {
        match (self.index, self.kind) {
            (Index::Btree1, _) => Some("libhdf5 reads version 1 B-trees without checksums and only once"),
            (_, Type::Vlen) => Some("heaps beyond the end of file that was announced when it opened the file"),
            _ => None,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = name(self.index);
        write!(f, "{index} {} {} {}", name(self.work), name(self.filter), name(self.kind))
    }
}

/// The word for a choice on the command line.
pub fn name(choice: impl clap::ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_named_by_its_choices() {
        let cell = Cell { index: Index::Btree2, work: Work::AppendRows, filter: Filter::Deflate, kind: Type::Vlen };
        assert_eq!(cell.to_string(), "btree2 append-rows deflate vlen");
    }

    #[test]
    fn every_index_and_every_work_has_cells() {
        let cells = Cell::all(&[], &[], &[], &[]);
        assert_eq!(cells.len(), 6 * 6 * 3 * 2);
        let sensible = |cell: &&Cell| cell.nonsense().is_none();
        for index in Index::ALL {
            assert!(cells.iter().filter(sensible).any(|cell| cell.index == index));
        }
        for work in Work::ALL {
            assert!(cells.iter().filter(sensible).any(|cell| cell.work == work));
        }
    }
}
