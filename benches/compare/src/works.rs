//! The works, in the order of the table.

mod alone;
mod append;
mod bare_frames;
mod codecs;
mod contiguous;
mod convert;
mod copies;
mod filtered;
mod flush;
mod follower_memory;
mod followers;
mod kv;
mod kv_maps;
mod latency;
mod live_cost;
mod log_join;
mod log_read;
mod log_write;
mod objects;
mod select;
mod sizes;
mod threads;
mod training;
mod training_import;
mod training_read;

use crate::work::Work;

pub fn all() -> Vec<Work> {
    [
        append::works(),
        live_cost::works(),
        filtered::works(),
        codecs::works(),
        contiguous::works(),
        select::works(),
        convert::works(),
        objects::works(),
        threads::works(),
        flush::works(),
        latency::works(),
        followers::works(),
        follower_memory::works(),
        log_write::works(),
        log_read::works(),
        log_join::works(),
        kv::works(),
        kv_maps::works(),
        training_import::works(),
        training_read::works(),
        sizes::works(),
        copies::works(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
