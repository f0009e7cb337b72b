//! The workloads that add, replace and remove links and attributes.

use h5live_model::CreationOrder::{Indexed, Untracked};

use super::Case;
use super::changes::{BEYOND_A_PAGE, EXCHANGED, LINKS_TO_AND_FRO, MANY, MOVED, REPLACED, TO_AND_FRO};
use crate::WriterSetup;
use crate::names::Kind::{Attributes, Links};
use crate::names::{Names, names};

const NAMES: Names = Names { kind: Attributes, order: Untracked, start: 12, changes: MANY };

/// These workloads.
pub(super) const NAME_CASES: &[Case] = &[
    Case { name: "dense attributes come and go", record: |setup| names(setup, NAMES), ..Case::PLAIN },
    Case {
        name: "dense attributes are replaced",
        record: |setup| names(setup, Names { changes: REPLACED, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "attributes in order come and go",
        record: |setup| names(setup, Names { order: Indexed, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "attributes move to and fro",
        record: |setup| names(setup, Names { order: Indexed, start: 7, changes: TO_AND_FRO, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "attributes in the header are replaced",
        record: |setup| names(setup, Names { start: 6, changes: MOVED, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "attributes exchange chunks of the header",
        record: |setup| names(setup, Names { start: 6, changes: EXCHANGED, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "dense links come and go",
        record: |setup| names(setup, Names { kind: Links, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "links in order come and go",
        record: |setup| names(setup, Names { kind: Links, order: Indexed, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "links move to and fro",
        record: |setup| names(setup, Names { kind: Links, order: Indexed, start: 7, changes: LINKS_TO_AND_FRO }),
        ..Case::PLAIN
    },
    Case {
        name: "old file, symbols come and go",
        record: |setup| names(setup.with_old_format(), Names { kind: Links, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "old file, names beyond a page",
        record: |setup| {
            let setup = WriterSetup { headroom: 1 << 16, ..setup.with_old_format() };
            names(setup, Names { kind: Links, changes: BEYOND_A_PAGE, ..NAMES })
        },
        ..Case::PLAIN
    },
];
