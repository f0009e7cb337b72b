//! The workloads that change elements, objects and whole files.

use super::name_cases::NAME_CASES;
use super::reuse_cases::REUSE_CASES;
use super::{Case, ReaderKind};
use crate::{ReadStrategy, SeriesKind, workloads};

const ROWS: &[ReaderKind] = &[
    ReaderKind::Rows(ReadStrategy::Rows),
    ReaderKind::Rows(ReadStrategy::IndexFirst),
    ReaderKind::Rows(ReadStrategy::BeyondExtent),
];

/// Six of twenty chunks of three rows, two rows of each.
const SPARSE: SeriesKind = SeriesKind::Sparse { rows: 60, order: &[9, 1, 5, 0, 19, 4], part: 2, fixed: false };

/// All workloads.
pub fn all_cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(REUSE_CASES).chain(NAME_CASES)
}

/// These workloads.
const CASES: &[Case] = &[
    Case {
        name: "extensible array, from nothing",
        record: |setup| workloads::append_to_extensible_array(setup, 0, 8, 1),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_extensible_array(setup, 0, 3, 1), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "extensible array, chunks of 3 rows",
        record: |setup| workloads::append_to_extensible_array(setup, 0, 8, 3),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_extensible_array(setup, 1, 3, 3), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "extensible array, rows in a row",
        record: |setup| workloads::append_to_extensible_array_repeatedly(setup, 10, 6),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_extensible_array_repeatedly(setup, 5, 4), 2)),
        cut: Some((|setup| workloads::append_to_extensible_array_repeatedly(setup, 5, 4), 1)),
    },
    Case {
        name: "extensible array, chunks in a row",
        record: |setup| workloads::append_to_extensible_array_repeatedly(setup, 9, 1),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_extensible_array_repeatedly(setup, 4, 1), 1)),
        cut: Some((|setup| workloads::append_to_extensible_array_repeatedly(setup, 5, 1), 1)),
    },
    Case {
        name: "fixed array, chunks in a row",
        record: |setup| workloads::append_to_fixed_array_repeatedly(setup, 9, 1),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_fixed_array_repeatedly(setup, 4, 1), 1)),
        cut: Some((|setup| workloads::append_to_fixed_array_repeatedly(setup, 5, 1), 1)),
    },
    Case {
        name: "version 2 B-tree, chunks in a row",
        record: |setup| workloads::append_to_btree2_repeatedly(setup, 9, 1),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_btree2_repeatedly(setup, 4, 1), 1)),
        cut: Some((|setup| workloads::append_to_btree2_repeatedly(setup, 5, 1), 1)),
    },
    Case {
        name: "extensible array, chunks several at a time",
        record: |setup| workloads::append_chunk_rows_to_extensible_array(setup, 9, 3),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_chunk_rows_to_extensible_array(setup, 4, 2), 1)),
        cut: Some((|setup| workloads::append_chunk_rows_to_extensible_array(setup, 6, 3), 1)),
    },
    Case {
        name: "fixed array, chunks several at a time",
        record: |setup| workloads::append_chunk_rows_to_fixed_array(setup, 9, 3),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_chunk_rows_to_fixed_array(setup, 4, 2), 1)),
        cut: Some((|setup| workloads::append_chunk_rows_to_fixed_array(setup, 6, 3), 1)),
    },
    Case {
        name: "version 2 B-tree, chunks several at a time",
        record: |setup| workloads::append_chunk_rows_to_btree2(setup, 9, 3),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_chunk_rows_to_btree2(setup, 4, 2), 1)),
        cut: Some((|setup| workloads::append_chunk_rows_to_btree2(setup, 6, 3), 1)),
    },
    Case {
        name: "extensible array, first super block",
        record: |setup| workloads::append_to_extensible_array(setup, 242, 8, 1),
        readers: ROWS,
        passes: 2,
        torn: Some((|setup| workloads::append_to_extensible_array(setup, 243, 3, 1), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "extensible array, first paged block",
        record: |setup| workloads::append_to_extensible_array(setup, 131_058, 8, 1),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows), ReaderKind::Rows(ReadStrategy::BeyondExtent)],
        passes: 2,
        torn: Some((|setup| workloads::append_to_extensible_array(setup, 131_059, 3, 1), 1)),
        cut: Some((|setup| workloads::append_to_extensible_array(setup, 131_059, 3, 1), 1)),
    },
    Case {
        name: "extensible array, 3 rows a flush",
        record: |setup| workloads::append_batches(setup, 8, 3, 1),
        readers: ROWS,
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "extensible array, large chunks",
        record: |setup| workloads::append_batches(setup, 5, 2048, 2048),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows), ReaderKind::EndOfFile],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "fixed array",
        record: |setup| workloads::append_to_fixed_array(setup, 40, 0, 8, 1),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_fixed_array(setup, 40, 0, 3, 1), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "fixed array, second page",
        record: |setup| workloads::append_to_fixed_array(setup, 3000, 1020, 8, 1),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_fixed_array(setup, 3000, 1023, 3, 1), 1)),
        cut: Some((|setup| workloads::append_to_fixed_array(setup, 3000, 1022, 3, 1), 1)),
    },
    Case {
        name: "implicit index",
        record: |setup| workloads::append_to_implicit_index(setup, 40, 0, 8, 1),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_implicit_index(setup, 40, 0, 3, 1), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "implicit index, 3 rows a flush",
        record: |setup| workloads::append_batches_to_implicit_index(setup, 4, 3, 2),
        readers: ROWS,
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "single chunk",
        record: |setup| workloads::rewrite_dataset(setup, SeriesKind::Versions { rows: 4 }, 4, 8),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::rewrite_dataset(setup, SeriesKind::Versions { rows: 4 }, 4, 3), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "single chunk that moves",
        record: |setup| workloads::rewrite_dataset(setup, SeriesKind::Filtered { rows: 4 }, 4, 8),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::rewrite_dataset(setup, SeriesKind::Filtered { rows: 4 }, 4, 3), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "overwritten chunks",
        record: |setup| workloads::rewrite_dataset(setup, SeriesKind::Versions { rows: 4 }, 2, 6),
        readers: ROWS,
        passes: 3,
        ..Case::PLAIN
    },
    Case {
        name: "implicit rewrite",
        record: |setup| workloads::rewrite_chunks_in_place(setup, false, 3, 2),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows), ReaderKind::Rows(ReadStrategy::IndexFirst)],
        passes: 1,
        torn: Some((|setup| workloads::rewrite_chunks_in_place(setup, false, 3, 1), 1)),
        cut: Some((|setup| workloads::rewrite_chunks_in_place(setup, false, 600, 1), 1)),
    },
    Case {
        name: "contiguous rewrite",
        record: |setup| workloads::rewrite_chunks_in_place(setup, true, 3, 3),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 2,
        torn: Some((|setup| workloads::rewrite_chunks_in_place(setup, true, 3, 2), 2)),
        cut: Some((|setup| workloads::rewrite_chunks_in_place(setup, true, 600, 2), 2)),
    },
    Case {
        name: "contiguous rewrite, durable flushes",
        record: |setup| workloads::rewrite_chunks_in_place(setup.with_durable_flushes(), true, 3, 3),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 2,
        torn: Some((|setup| workloads::rewrite_chunks_in_place(setup.with_durable_flushes(), true, 3, 2), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "old file, contiguous rewrite",
        record: |setup| workloads::rewrite_chunks_in_place(setup.with_old_format(), true, 3, 3),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 2,
        torn: Some((|setup| workloads::rewrite_chunks_in_place(setup.with_old_format(), true, 3, 2), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "chunks that move",
        record: |setup| workloads::rewrite_dataset(setup, SeriesKind::Filtered { rows: 4 }, 2, 6),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::rewrite_dataset(setup, SeriesKind::Filtered { rows: 4 }, 2, 3), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "extensible array, sparse",
        record: |setup| workloads::rewrite_dataset(setup, SPARSE, 3, 6),
        readers: ROWS,
        passes: 2,
        torn: Some((|setup| workloads::rewrite_dataset(setup, SPARSE, 3, 3), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "rows in parts of chunks",
        record: |setup| workloads::append_batches(setup.with_durable_flushes(), 6, 1500, 2048),
        readers: ROWS,
        passes: 1,
        ..Case::PLAIN
    },
    Case {
        name: "parts of new chunks, fixed array",
        record: |setup| workloads::write_sparse_rows(setup, true, false),
        readers: ROWS,
        passes: 1,
        ..Case::PLAIN
    },
    Case {
        name: "parts of new chunks, extensible array",
        record: |setup| workloads::write_sparse_rows(setup.with_durable_flushes(), false, false),
        readers: ROWS,
        passes: 1,
        ..Case::PLAIN
    },
    Case {
        name: "parts of new chunks, B-tree",
        record: |setup| workloads::write_sparse_rows(setup.with_durable_flushes(), false, true),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 1,
        ..Case::PLAIN
    },
    Case {
        name: "two datasets",
        record: |setup| workloads::append_to_two_datasets(setup, 4),
        readers: ROWS,
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "close and open again",
        record: |setup| workloads::append_and_reopen(setup, 2),
        readers: ROWS,
        passes: 2,
        torn: Some((|setup| workloads::append_and_reopen(setup, 1), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "a dead writer's successor",
        record: |setup| workloads::append_and_take_over(setup, 3),
        readers: ROWS,
        passes: 2,
        torn: Some((|setup| workloads::append_and_take_over(setup, 1), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "attributes, continued header",
        record: |setup| workloads::add_attributes(setup, 0, 6),
        readers: &[ReaderKind::Attributes],
        passes: 2,
        torn: Some((|setup| workloads::add_attributes(setup, 0, 4), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "B-tree, from nothing",
        record: |setup| workloads::append_to_btree2(setup, 0, 8, 1),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_btree2(setup, 0, 3, 1), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "B-tree, root splits",
        record: |setup| workloads::append_to_btree2(setup, 80, 8, 1),
        readers: ROWS,
        passes: 3,
        torn: Some((|setup| workloads::append_to_btree2(setup, 83, 3, 1), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "B-tree, sparse",
        record: |setup| workloads::rewrite_two_dimensional_dataset(setup, SPARSE, 3, 6),
        readers: ROWS,
        passes: 2,
        torn: Some((|setup| workloads::rewrite_two_dimensional_dataset(setup, SPARSE, 3, 3), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "attributes become many",
        record: |setup| workloads::add_attributes(setup, 6, 6),
        readers: &[ReaderKind::Attributes],
        passes: 2,
        torn: Some((|setup| workloads::add_attributes(setup, 7, 3), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "links become many",
        record: |setup| workloads::add_linked_datasets(setup, 6, 6),
        readers: &[ReaderKind::Links],
        passes: 2,
        torn: Some((|setup| workloads::add_linked_datasets(setup, 7, 3), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "200 groups at once",
        record: |setup| workloads::create_nested_groups(setup, 200),
        readers: &[ReaderKind::EndOfFile],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "new datasets",
        record: |setup| workloads::add_linked_datasets(setup, 0, 3),
        readers: &[ReaderKind::Links, ReaderKind::EndOfFile],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "new datasets, with headroom",
        record: |setup| workloads::add_linked_datasets(setup.with_headroom(), 0, 3),
        readers: &[ReaderKind::Links, ReaderKind::EndOfFile],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "datasets come and go under readers",
        record: |setup| workloads::create_and_delete_datasets(setup, 4, 0),
        readers: &[ReaderKind::Transient, ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 2,
        torn: Some((|setup| workloads::create_and_delete_datasets(setup, 2, 0), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "a dataset after another",
        record: |setup| workloads::append_in_publish_order(setup, 5),
        readers: &[ReaderKind::Ordered, ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "transactions",
        record: |setup| workloads::append_in_transactions(setup, 5),
        readers: &[ReaderKind::Ordered, ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "texts",
        record: |setup| workloads::append_strings(setup, 0, 5, 2),
        readers: &[ReaderKind::Strings],
        passes: 2,
        torn: Some((|setup| workloads::append_strings(setup, 0, 2, 2), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "attributes that are texts",
        record: |setup| workloads::add_vlen_attributes(setup, 0, 4),
        readers: &[ReaderKind::Attributes],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "extensible array that shrinks",
        record: |setup| workloads::shrink_and_append_again(setup.exclusive(), None, 1, 4),
        ..Case::PLAIN
    },
    Case {
        name: "fixed array that shrinks",
        record: |setup| workloads::shrink_and_append_again(setup.exclusive(), Some(30), 1, 4),
        ..Case::PLAIN
    },
    Case {
        name: "datasets that come and go",
        record: |setup| workloads::create_and_delete_datasets(setup.exclusive(), 5, 0),
        ..Case::PLAIN
    },
    Case { name: "a dead writer's redo records", record: workloads::write_where_redo_records_were, ..Case::PLAIN },
    Case {
        name: "free space that the file keeps",
        record: |setup| workloads::create_delete_and_reopen(setup.with_persistent_space(), 4),
        ..Case::PLAIN
    },
    Case {
        name: "old file, a leaf splits",
        record: |setup| workloads::append_to_extensible_array(setup.with_old_format(), 121, 3, 1),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 1,
        ..Case::PLAIN
    },
    Case {
        name: "old file, from nothing",
        record: |setup| workloads::append_to_extensible_array(setup.with_old_format(), 0, 8, 1),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 3,
        torn: Some((|setup| workloads::append_to_extensible_array(setup.with_old_format(), 0, 3, 1), 2)),
        ..Case::PLAIN
    },
    Case {
        name: "old file, a few rows",
        record: |setup| workloads::append_to_extensible_array(setup.with_old_format(), 0, 4, 1),
        readers: ROWS,
        passes: 2,
        torn: Some((|setup| workloads::append_to_extensible_array(setup.with_old_format(), 0, 2, 1), 1)),
        cut: Some((|setup| workloads::append_to_extensible_array(setup.with_old_format(), 0, 2, 1), 1)),
    },
    Case {
        name: "old file, chunks stored together",
        record: |setup| workloads::append_chunk_rows_to_btree1(setup, 0, 6, 3),
        readers: ROWS,
        passes: 2,
        torn: Some((|setup| workloads::append_chunk_rows_to_btree1(setup, 0, 3, 3), 1)),
        cut: Some((|setup| workloads::append_chunk_rows_to_btree1(setup, 0, 3, 3), 1)),
    },
    Case {
        name: "old file, a leaf splits between chunks stored together",
        record: |setup| workloads::append_chunk_rows_to_btree1(setup, 62, 6, 6),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows), ReaderKind::Rows(ReadStrategy::IndexFirst)],
        passes: 1,
        torn: Some((|setup| workloads::append_chunk_rows_to_btree1(setup, 62, 6, 6), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "old file, root splits",
        record: |setup| workloads::append_to_extensible_array(setup.with_old_format(), 62, 3, 1),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows), ReaderKind::Rows(ReadStrategy::IndexFirst)],
        passes: 2,
        torn: Some((|setup| workloads::append_to_extensible_array(setup.with_old_format(), 63, 2, 1), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "old file, sparse",
        record: |setup| workloads::rewrite_dataset(setup.with_old_format(), SPARSE, 3, 3),
        readers: ROWS,
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "old file, chunks that move",
        record: |setup| workloads::rewrite_dataset(setup.with_old_format(), SeriesKind::Filtered { rows: 4 }, 2, 2),
        readers: ROWS,
        passes: 2,
        torn: Some((
            |setup| workloads::rewrite_dataset(setup.with_old_format(), SeriesKind::Filtered { rows: 4 }, 2, 2),
            1,
        )),
        ..Case::PLAIN
    },
    Case {
        name: "old file, two datasets",
        record: |setup| workloads::append_to_two_datasets(setup.with_old_format(), 3),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "old file, close and open again",
        record: |setup| workloads::append_and_reopen(setup.with_old_format(), 2),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "old file, a dead writer's successor",
        record: |setup| workloads::append_and_take_over(setup.with_old_format(), 2),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "old file, attributes",
        record: |setup| workloads::add_attributes(setup.with_old_format(), 0, 4),
        readers: &[ReaderKind::Attributes],
        passes: 2,
        torn: Some((|setup| workloads::add_attributes(setup.with_old_format(), 0, 2), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "old file, texts",
        record: |setup| workloads::append_strings(setup.with_old_format(), 0, 2, 2),
        readers: &[ReaderKind::Strings],
        passes: 2,
        torn: Some((|setup| workloads::append_strings(setup.with_old_format(), 0, 2, 2), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "old file, new datasets",
        record: |setup| workloads::add_linked_datasets(setup.with_old_format(), 0, 3),
        readers: &[ReaderKind::Links],
        passes: 2,
        torn: Some((|setup| workloads::add_linked_datasets(setup.with_old_format(), 0, 2), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "old file, node of symbols splits",
        record: |setup| workloads::add_linked_datasets(setup.with_old_format(), 6, 4),
        readers: &[ReaderKind::Links],
        passes: 1,
        ..Case::PLAIN
    },
    Case {
        name: "old file, space used again",
        record: |setup| workloads::rewrite_filtered_chunks(setup.with_old_format(), 2, 2, 3, 2500),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows)],
        passes: 1,
        ..Case::PLAIN
    },
    Case {
        name: "B-tree of version 1, alone, from nothing",
        record: |setup| workloads::append_to_extensible_array(setup.with_old_format().exclusive(), 0, 8, 1),
        ..Case::PLAIN
    },
    Case {
        name: "B-tree of version 1, alone, root splits",
        record: |setup| workloads::append_to_extensible_array(setup.with_old_format().exclusive(), 60, 8, 1),
        ..Case::PLAIN
    },
    Case {
        name: "B-tree of version 1, alone, sparse",
        record: |setup| workloads::rewrite_dataset(setup.with_old_format().exclusive(), SPARSE, 3, 6),
        ..Case::PLAIN
    },
    Case {
        name: "B-tree of version 1 that shrinks",
        record: |setup| workloads::shrink_and_append_again(setup.with_old_format().exclusive(), None, 1, 4),
        ..Case::PLAIN
    },
    Case {
        name: "symbol table, alone",
        record: |setup| workloads::add_linked_datasets(setup.with_old_format().exclusive(), 0, 12),
        ..Case::PLAIN
    },
];
