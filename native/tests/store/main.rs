//! The native store as its users see it, beside libhdf5 and after crashes. One program: each costs seconds to link.

mod attribute_lookups;
mod attributes;
mod conformance;
mod corpus;
mod damaged_addresses;
mod generation_records;
mod generations;
mod h5py_lab;
mod in_place_raw_data;
mod killed_link_edits;
mod links;
mod random_changes_followed;
mod reads_while_writing;
mod recovery;
mod removed_blobs;
mod reuse_grace;
mod slow_lists;
mod waits;
