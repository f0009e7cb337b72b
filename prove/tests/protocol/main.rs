//! Who gets in: the protocol of locks, status flags, leases and the beacon, between processes with h5live and with
//! libhdf5, as a model of its own (`swmr/src/open.rs`, `begin.rs`, `locking.rs`).

mod model;

use stateright::{Checker, Model};

use model::{Mutant, Protocol};

/// Goes through all states; returns how many there are. The numbers are pinned so that a change of the model that
/// leaves some out does not go unnoticed.
fn states(protocol: Protocol) -> usize {
    let checked = protocol.checker().threads(2).spawn_bfs().join();
    checked.assert_properties();
    checked.unique_state_count()
}

#[test]
fn two_processes_in_any_roles_keep_to_the_rules() {
    assert_eq!(states(Protocol::of(2, None)), 11_173);
}

#[test]
fn three_processes_in_any_roles_keep_to_the_rules() {
    assert_eq!(states(Protocol::of(3, None)), 521_313);
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
