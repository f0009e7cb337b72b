//! The rules that every store must keep, as one test suite that each store runs.
//!
//! A store implements [`StoreFixture`] and calls [`suite!`](suite), which makes a test of each group. A group panics with the
//! sentence that does not hold. Which groups apply follows from the [`Capabilities`](crate::Capabilities) of the store:
//! what it claims has to work, and what it does not claim has to be refused.

mod batches;
mod claims;
mod damaged_objects;
mod data;
mod element_types;
mod injected_faults;
mod later_objects;
mod maps;
mod objects;
mod read_all;
mod refused_objects;
mod sessions;
mod store_fixture;
mod types;

pub use batches::*;
pub use claims::test_unclaimed_features;
pub use damaged_objects::*;
pub use data::*;
pub use element_types::*;
pub use injected_faults::*;
pub use later_objects::*;
pub use maps::*;
pub use objects::*;
pub use read_all::sample_reads_ignoring_errors;
pub use refused_objects::*;
pub use sessions::*;
pub use store_fixture::StoreFixture;
pub use types::*;

pub use crate::{
    conformance_damage_suite as damage_suite, conformance_fault_suite as fault_suite, conformance_suite as suite,
};

/// Makes a test of each group, for the store of a [`StoreFixture`]: `suite!(Lab::new())`. None is left out by hand. Where a lab is
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
        $crate::conformance_suite!(@$form $lab;
            test_groups test_links test_last_link_removal test_attributes test_committed_types test_unchunked_datasets
            test_compact_created_with_elements test_types_read_back test_every_element_type test_chunks test_filtered_chunks
            test_growing_extents test_shrinking_extents test_blobs test_blob_batches test_removed_blobs test_object_references
            test_region_and_standard_references test_link_renaming test_objects_created_unlinked test_creation_order
            test_committed_type_uses test_comments test_refused_names_and_shapes test_write_batches test_refused_batches
            test_partial_chunk_writes test_uncommitted_writes test_multi_chunk_reads test_block_reads
            test_dataset_publish_order test_commit_levels test_concurrent_writes test_unclaimed_features test_map_pairs
            test_refused_map_edits test_map_range_scans test_map_key_types test_map_persistence test_live_map_reads
            test_persistence test_live_reads test_watch_for_new_objects);
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
            $crate::conformance::test_failed_batch_then_crash(&$lab);
        }

        #[test]
        fn failed_batches_that_are_given_again() {
            $crate::conformance::test_failed_batch_retry(&$lab);
        }
    };
}

/// Makes a test: `damage_suite!(Lab::new())`.
#[macro_export]
macro_rules! conformance_damage_suite {
    ($lab:expr) => {
        #[test]
        fn damaged_objects() {
            $crate::conformance::test_damaged_bytes(&$lab);
        }
    };
}
