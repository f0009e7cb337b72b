//! The works, in the order of the table.

mod append;
mod contiguous;
mod convert;
mod filtered;
mod flush;
mod latency;
mod objects;
mod select;
mod threads;

use crate::work::Work;

pub fn all() -> Vec<Work> {
    [
        append::works(),
        filtered::works(),
        contiguous::works(),
        select::works(),
        convert::works(),
        objects::works(),
        threads::works(),
        flush::works(),
        latency::works(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
