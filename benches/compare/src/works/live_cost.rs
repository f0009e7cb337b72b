//! What it costs that others may read a file while it is written: h5live in a live file beside h5live in one that is not.

use super::append::{self, Append, CHUNKS, ROWS};
use crate::work::{Done, Ground, Unit, WRITING, Work};
use crate::{Result, Side};

/// Rows with a flush for each hundred.
const ROW_BATCHES: Append = Append { every: 100, times: 4_000_000, ..ROWS };

/// The bare side is h5live, too: it writes a file that is not live.
fn run(what: Append, side: Side, ground: &Ground) -> Result<Done> {
    match side {
        Side::Bare => append::run(Append { is_live: false, ..what }, Side::H5live, ground),
        _ => append::run(what, side, ground),
    }
}

pub fn works() -> Vec<Work> {
    let chunks = Work {
        name: "live-4k",
        title: "append of a 4 KiB chunk, flush each, in a live file (bare: h5live in a file that is not live)",
        unit: Unit::Things("chunks"),
        aim: 5.0,
        bare_aim: Some(0.9),
        budget: WRITING,
        sides: &[Side::H5live, Side::Libhdf5, Side::Bare],
        run: |side, ground| run(CHUNKS, side, ground),
        ..Work::PLAIN
    };
    vec![
        chunks,
        Work {
            name: "live-rows",
            title: "append of 64-byte rows into 4,096-row chunks, flush per 100, in a live file (bare: h5live in a file that is not live)",
            unit: Unit::Things("rows"),
            run: |side, ground| run(ROW_BATCHES, side, ground),
            ..chunks
        },
    ]
}
