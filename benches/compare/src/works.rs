//! The works, in the order of the table.

mod alone;
mod append;
mod codecs;
mod contiguous;
mod convert;
mod filtered;
mod flush;
mod kv;
mod kv_maps;
mod latency;
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
        filtered::works(),
        codecs::works(),
        contiguous::works(),
        select::works(),
        convert::works(),
        objects::works(),
        threads::works(),
        flush::works(),
        latency::works(),
        log_write::works(),
        log_read::works(),
        log_join::works(),
        kv::works(),
        kv_maps::works(),
        training_import::works(),
        training_read::works(),
        sizes::works(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
