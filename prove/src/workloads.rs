//! What the writer does.

use h5live_cache::EdgeKinds;

use crate::lab::{Lab, Series, Workload};

/// Appends to a dataset with one unlimited dimension, in chunks of one row, from `start` rows on, a flush after each.
pub fn extensible_array(disabled: EdgeKinds, start: u64, appends: u64, chunk: u64) -> Workload {
    let mut lab = Lab::new(disabled);
    let series = Series { name: "d", chunk, first: start.saturating_sub(2) };
    let builder = lab.file().new_dataset::<u64>().growing(&[]).chunk(&[chunk]);
    let dataset = builder.create("d").expect("a dataset can be made");
    if start > 0 {
        lab.append(&dataset, &series, 0, start);
    }
    lab.flush(&[]);
    lab.begin();
    lab.mark("issued", &series, start);
    lab.mark("flushed", &series, start);
    for row in start..start + appends {
        lab.append(&dataset, &series, row, row + 1);
        lab.flush(&[(&series, row + 1)]);
    }
    drop(dataset);
    lab.finish("extensible array", vec![series])
}
