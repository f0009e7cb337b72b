//! The cells of the matrix: a chunk index, a kind of change, a filter and a kind of elements.

use std::fmt;
use strum::VariantArray;

/// How the chunks of a dataset are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, VariantArray)]
pub enum IndexChoice {
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

/// The kind of change of a dataset while others read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, VariantArray)]
pub enum ChangeKind {
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
    /// Datasets come into groups and leave them. The groups of files of the earliest profile are symbol tables.
    Links,
}

/// The filter of the chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FilterChoice {
    /// Nothing.
    None,
    /// Shuffle and deflate.
    Deflate,
    /// A checksum.
    Fletcher32,
}

/// The kind of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ElementKind {
    /// Numbers of 8 bytes.
    Fixed,
    /// Strings of any length, in a heap.
    Vlen,
}

/// A cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixCell {
    /// How chunks are found.
    pub index: IndexChoice,
    /// The kind of change.
    pub work: ChangeKind,
    /// The filter of the chunks.
    pub filter: FilterChoice,
    /// The kind of elements.
    pub kind: ElementKind,
}

impl IndexChoice {
    /// All of them.
    pub const ALL: &'static [IndexChoice] = <IndexChoice as VariantArray>::VARIANTS;
}

impl ChangeKind {
    /// All of them.
    pub const ALL: &'static [ChangeKind] = <ChangeKind as VariantArray>::VARIANTS;

    /// Whether elements get their value once, when the extent comes to hold them.
    pub fn grows(self) -> bool {
        matches!(self, ChangeKind::Append | ChangeKind::AppendRows | ChangeKind::Grow)
    }
}

impl MatrixCell {
    /// The cells of all these choices; where there are none, of all there are.
    pub fn all(
        indexes: &[IndexChoice],
        works: &[ChangeKind],
        filters: &[FilterChoice],
        kinds: &[ElementKind],
    ) -> Vec<MatrixCell> {
        fn or<'a, T>(some: &'a [T], all: &'a [T]) -> &'a [T] {
            if some.is_empty() { all } else { some }
        }
        let mut cells = Vec::new();
        for &index in or(indexes, IndexChoice::ALL) {
            for &work in or(works, ChangeKind::ALL) {
                for &filter in or(filters, &[FilterChoice::None, FilterChoice::Deflate, FilterChoice::Fletcher32]) {
                    for &kind in or(kinds, &[ElementKind::Fixed, ElementKind::Vlen]) {
                        cells.push(MatrixCell { index, work, filter, kind });
                    }
                }
            }
        }
        cells
    }

    /// Why there is no such dataset.
    pub fn impossible_reason(self) -> Option<&'static str> {
        match (self.index, self.work, self.filter) {
            (IndexChoice::Implicit, _, FilterChoice::Deflate | FilterChoice::Fletcher32) => {
                Some("an implicit index has no filters")
            }
            (IndexChoice::Single, ChangeKind::Append | ChangeKind::AppendRows | ChangeKind::Grow, _) => {
                Some("a single chunk does not grow")
            }
            (IndexChoice::Btree2, ChangeKind::Append, _) => Some("two unlimited dimensions are not one"),
            _ => None,
        }
    }

    /// Why libhdf5 cannot follow, though h5live can.
    pub fn libhdf5_unsupported(self) -> Option<&'static str> {
        match (self.index, self.work, self.kind) {
            (IndexChoice::Btree1, ChangeKind::Links, _) => {
                Some("libhdf5 reads symbol tables without checksums and only once")
            }
            (IndexChoice::Btree1, ..) => Some("libhdf5 reads version 1 B-trees without checksums and only once"),
            (_, ChangeKind::Links, _) => {
                Some("new objects beyond the end of file that was announced when it opened the file")
            }
            (_, _, ElementKind::Vlen) => {
                Some("heaps beyond the end of file that was announced when it opened the file")
            }
            _ => None,
        }
    }
}

impl fmt::Display for MatrixCell {
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
        let cell = MatrixCell {
            index: IndexChoice::Btree2,
            work: ChangeKind::AppendRows,
            filter: FilterChoice::Deflate,
            kind: ElementKind::Vlen,
        };
        assert_eq!(cell.to_string(), "btree2 append-rows deflate vlen");
    }

    #[test]
    fn every_index_and_every_work_has_cells() {
        let cells = MatrixCell::all(&[], &[], &[], &[]);
        assert_eq!(cells.len(), 6 * 7 * 3 * 2);
        let sensible = |cell: &&MatrixCell| cell.impossible_reason().is_none();
        for index in IndexChoice::ALL.iter().copied() {
            assert!(cells.iter().filter(sensible).any(|cell| cell.index == index));
        }
        for work in ChangeKind::ALL.iter().copied() {
            assert!(cells.iter().filter(sensible).any(|cell| cell.work == work));
        }
    }
}
