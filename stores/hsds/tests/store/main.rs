//! The object store as its users see it. One program: each costs seconds to link.

mod access;
mod chunk_links;
mod conformance;
mod hostile;
mod interleavings;
mod native_chunks;
mod requests;
#[path = "../shared/mod.rs"]
mod shared;
