//! The workloads that add, replace and remove links and attributes.

use h5live_model::CreationOrder::{Indexed, Untracked};

use super::Case;
use super::changes::{BEYOND_A_PAGE, EXCHANGED, LINKS_TO_AND_FRO, MANY, MOVED, REPLACED, TO_AND_FRO};
use crate::WriterSetup;
use crate::entry_changes::EntryKind::{Attributes, Links};
use crate::entry_changes::{EntryChanges, change_entries};

const NAMES: EntryChanges = EntryChanges { kind: Attributes, order: Untracked, start_count: 12, changes: MANY };

/// These workloads.
pub(super) const NAME_CASES: &[Case] = &[
    Case { name: "dense attributes come and go", record: |setup| change_entries(setup, NAMES), ..Case::PLAIN },
    Case {
        name: "dense attributes are replaced",
        record: |setup| change_entries(setup, EntryChanges { changes: REPLACED, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "attributes in order come and go",
        record: |setup| change_entries(setup, EntryChanges { order: Indexed, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "attributes move to and fro",
        record: |setup| {
            change_entries(setup, EntryChanges { order: Indexed, start_count: 7, changes: TO_AND_FRO, ..NAMES })
        },
        ..Case::PLAIN
    },
    Case {
        name: "attributes in the header are replaced",
        record: |setup| change_entries(setup, EntryChanges { start_count: 6, changes: MOVED, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "attributes exchange chunks of the header",
        record: |setup| change_entries(setup, EntryChanges { start_count: 6, changes: EXCHANGED, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "dense links come and go",
        record: |setup| change_entries(setup, EntryChanges { kind: Links, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "links in order come and go",
        record: |setup| change_entries(setup, EntryChanges { kind: Links, order: Indexed, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "links move to and fro",
        record: |setup| {
            change_entries(
                setup,
                EntryChanges { kind: Links, order: Indexed, start_count: 7, changes: LINKS_TO_AND_FRO },
            )
        },
        ..Case::PLAIN
    },
    Case {
        name: "old file, symbols come and go",
        record: |setup| change_entries(setup.with_old_format(), EntryChanges { kind: Links, ..NAMES }),
        ..Case::PLAIN
    },
    Case {
        name: "old file, names beyond a page",
        record: |setup| {
            let setup = WriterSetup { eof_headroom_bytes: 1 << 16, ..setup.with_old_format() };
            change_entries(setup, EntryChanges { kind: Links, changes: BEYOND_A_PAGE, ..NAMES })
        },
        ..Case::PLAIN
    },
];
