//! The workloads that free space while time passes, and those that keep it from being freed.

use super::{Case, ReaderKind};
use crate::{ReadStrategy, workloads};

/// These workloads.
pub(super) const REUSE_CASES: &[Case] = &[
    Case {
        name: "rewritten, single chunk",
        record: |setup| workloads::rewrite_filtered_chunks(setup, 2, 2, 5, 6000),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows), ReaderKind::Rows(ReadStrategy::IndexFirst)],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "rewritten, fixed array",
        record: |setup| workloads::rewrite_filtered_chunks(setup, 4, 2, 4, 6000),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows), ReaderKind::Rows(ReadStrategy::IndexFirst)],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "growing chunks, extensible array",
        record: |setup| workloads::append_to_growing_chunks(setup, 8, 3, false),
        readers: &[
            ReaderKind::Rows(ReadStrategy::Rows),
            ReaderKind::Rows(ReadStrategy::IndexFirst),
            ReaderKind::Rows(ReadStrategy::BeyondExtent),
        ],
        passes: 2,
        torn: Some((|setup| workloads::append_to_growing_chunks(setup, 4, 3, false), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "growing chunks, B-tree",
        record: |setup| workloads::append_to_growing_chunks(setup, 8, 3, true),
        readers: &[
            ReaderKind::Rows(ReadStrategy::Rows),
            ReaderKind::Rows(ReadStrategy::IndexFirst),
            ReaderKind::Rows(ReadStrategy::BeyondExtent),
        ],
        passes: 2,
        torn: Some((|setup| workloads::append_to_growing_chunks(setup, 4, 3, true), 1)),
        ..Case::PLAIN
    },
    Case {
        name: "space used again, single chunk",
        record: |setup| workloads::rewrite_filtered_chunks(setup.for_h5live(), 2, 2, 5, 2500),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows), ReaderKind::Rows(ReadStrategy::IndexFirst)],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "space used again, fixed array",
        record: |setup| workloads::rewrite_filtered_chunks(setup.for_h5live(), 4, 2, 4, 2500),
        readers: &[ReaderKind::Rows(ReadStrategy::Rows), ReaderKind::Rows(ReadStrategy::IndexFirst)],
        passes: 2,
        ..Case::PLAIN
    },
    Case {
        name: "space used again, deleted datasets",
        record: |setup| workloads::create_and_delete_datasets(setup.for_h5live(), 4, 2500),
        readers: &[ReaderKind::Transient],
        passes: 1,
        ..Case::PLAIN
    },
];
