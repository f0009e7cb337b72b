//! The rules that every store must keep, as one test suite that each store runs.
//!
//! A store implements [`Lab`] and calls [`suite!`](suite), which makes a test of each group. A group panics with the
//! sentence that does not hold. Which groups apply follows from the [`Capabilities`](crate::Capabilities) of the store:
//! what it claims has to work, and what it does not claim has to be refused.

mod batches;
mod claims;
mod damaged_objects;
mod data;
mod element_types;
mod injected_faults;
mod lab;
mod later_objects;
mod maps;
mod objects;
mod read_all;
mod refused_objects;
mod sessions;
mod types;

pub use batches::*;
pub use claims::unclaimed_features;
pub use damaged_objects::*;
pub use data::*;
pub use element_types::*;
pub use injected_faults::*;
pub use lab::Lab;
pub use later_objects::*;
pub use maps::*;
pub use objects::*;
pub use read_all::read_all;
pub use refused_objects::*;
pub use sessions::*;
pub use types::*;

pub use crate::{
    conformance_damage_suite as damage_suite, conformance_fault_suite as fault_suite, conformance_suite as suite,
};

/// Makes a test of each group, for the store of a [`Lab`]: `suite!(Lab::new())`. None is left out by hand. Where a lab is
/// worth having once only, `suite!(called lab)` within a test calls all groups.
#[macro_export]
macro_rules! conformance_suite {
    ($lab:expr) => {
        $crate::conformance_suite!(@groups tests $lab);
    };
    (called $lab:expr) => {
        $crate::conformance_suite!(@groups called $lab);
    };
    (@groups $form:ident $lab:expr) => {
        $crate::conformance_suite!(@$form $lab; groups links link_removal attributes committed_types contiguous compact
            types_that_are_read_back elements_of_every_type chunks filtered_chunks extents shrinking heap many_blobs removed_blobs references region_references renaming created_without_links creation_order
            uses_of_committed_types comments refused_objects batches refused_batches parts staged_writes
            reads_of_many reads_of_blocks ordering commits threads unclaimed_features
            map_pairs refused_map_edits map_ranges map_key_types kept_maps live_maps persistence live later_objects);
    };
    (@called $lab:expr; $($group:ident)*) => {
        $(
            println!("{}", stringify!($group));
            $crate::conformance::$group(&$lab);
        )*
    };
    (@tests $lab:expr; $($group:ident)*) => {
        $(
            #[test]
            fn $group() {
                $crate::conformance::$group(&$lab);
            }
        )*
    };
}

/// Makes a test of each group about faults: `fault_suite!(Lab::new())`.
#[macro_export]
macro_rules! conformance_fault_suite {
    ($lab:expr) => {
        #[test]
        fn failed_batches_before_the_death_of_the_writer() {
            $crate::conformance::failed_batches_before_death(&$lab);
        }

        #[test]
        fn failed_batches_that_are_given_again() {
            $crate::conformance::failed_batches_given_again(&$lab);
        }
    };
}
