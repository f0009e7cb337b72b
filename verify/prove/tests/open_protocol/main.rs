//! Who gets in: the protocol of locks, status flags, leases and the beacon, between processes with h5live and with
//! libhdf5, as a model of its own (`native/src/open.rs`, `begin.rs`, `locking.rs`). And what may be used again at once
//! while nobody is in.

mod model;
mod space_reuse;

use stateright::{Checker, Model};

use model::{Mutant, Protocol};
use space_reuse::{FOUND, Fault, Reuse};

/// Goes through all states; returns how many there are. The numbers are pinned so that a change of the model that
/// leaves some out does not go unnoticed.
fn states(protocol: Protocol) -> usize {
    let checked = protocol.checker().threads(2).spawn_bfs().join();
    checked.assert_properties();
    checked.unique_state_count()
}

#[test]
fn two_processes_in_any_roles_keep_to_the_rules() {
    assert_eq!(states(Protocol::of(2, None)), 11_231);
}

#[test]
fn three_processes_in_any_roles_keep_to_the_rules() {
    assert_eq!(states(Protocol::of(3, None)), 528_593);
}

/// What is found out about a protocol with a fault.
fn found(mutant: Mutant) -> Vec<&'static str> {
    let checked = Protocol::of(2, Some(mutant)).checker().threads(2).spawn_bfs().join();
    let mut found: Vec<_> = checked.discoveries().into_keys().collect();
    found.sort_unstable();
    found
}

#[test]
fn every_fault_in_the_protocol_is_found_out() {
    for mutant in Mutant::ALL {
        assert!(found(mutant).contains(&mutant.breaks()), "{mutant:?}");
    }
}

#[test]
fn what_is_used_again_while_nobody_has_the_file_open_misleads_no_reader() {
    let reuse = Reuse { flushes: 6, readers: 3, fault: None };
    let checked = reuse.checker().threads(2).spawn_bfs().join();
    checked.assert_properties();
    assert_eq!(checked.unique_state_count(), 17_312);
}

#[test]
fn a_writer_that_does_not_ask_whether_the_file_is_open_or_too_early_is_found_out() {
    for fault in [Fault::NeverAsks, Fault::AsksTooEarly] {
        let checked = Reuse { flushes: 6, readers: 1, fault: Some(fault) }.checker().spawn_bfs().join();
        assert!(checked.discovery(FOUND).is_some(), "{fault:?}");
    }
}
