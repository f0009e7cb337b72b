//! The key-value store as its users see it. One program: each costs seconds to link.

mod check;
mod check_values;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod corpus;
mod cut_files;
mod damaged_pages;
mod deletions;
mod engine_keys;
mod golden;
mod golden_container;
mod libhdf5;
mod pair_counts;
mod power_failure;
mod round_trips;
#[path = "../shared/mod.rs"]
mod shared;
mod uncommitted;
