//! What only the whole library shows: each file has a concern. They are one test program, because linking takes longer
//! than compiling them.

mod chunk_rows;
mod copy_objects;
mod error_messages;
mod errors;
mod faults;
mod file_changes;
mod file_size;
mod file_space_strategies;
mod follow_groups;
mod full_disk;
mod held;
mod indexes;
mod killed_after_each_call;
mod kv_maps;
mod kv_transactions;
mod large_chunks;
mod linked_stores;
mod live_sessions;
mod locations;
mod log_filters;
mod log_room;
mod maps;
mod mmap_append;
mod mmap_publish_btree2;
mod other_programs;
mod overwritten_strings;
mod preallocated_chunks;
mod publish_order;
mod read_h5py_files;
mod read_only;
mod reads_while_writing;
mod references;
mod refresh_header;
mod serde_rows;
mod written_files_h5py;
