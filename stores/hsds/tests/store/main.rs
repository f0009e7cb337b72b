//! The object store as its users see it. One program: each costs seconds to link.

/// Methods of an engine that asks `objects`.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result { self.objects.$name($($argument),*) })*
    };
}

mod access;
mod beside_others;
mod chunk_links;
mod conformance;
mod drafts;
mod hostile;
mod interleavings;
mod kept;
mod leftovers;
mod lost_answer;
mod lost_domains;
mod native_chunks;
mod partitions;
mod refusals;
mod requests;
mod shard_failures;
mod shards;
#[path = "../shared/mod.rs"]
mod shared;
