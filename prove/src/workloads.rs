//! What the writer does.

use std::cmp::Ordering;

use h5live_cache::EdgeKinds;

use crate::{Kind, Lab, Series, Workload};

/// Appends `appends` rows, one at a time with a flush after each, to a dataset of `start` rows in chunks of `chunk`.
pub fn append(disabled: EdgeKinds, most: Option<u64>, start: u64, appends: u64, chunk: u64) -> Workload {
    let mut lab = Lab::new(disabled);
    lab.add(Series { name: "d", chunk, first: start.saturating_sub(2), kind: Kind::Rows { most } });
    if start > 0 {
        lab.append("d", 0, start);
    }
    lab.begin(start);
    for row in start..start + appends {
        lab.append("d", row, row + 1);
        lab.flush(&[("d", row + 1)]);
    }
    lab.finish()
}

/// Appends rows to a dataset with one unlimited dimension.
pub fn extensible_array(disabled: EdgeKinds, start: u64, appends: u64, chunk: u64) -> Workload {
    append(disabled, None, start, appends, chunk)
}

/// Appends rows to a dataset of at most `most` rows.
pub fn fixed_array(disabled: EdgeKinds, most: u64, start: u64, appends: u64, chunk: u64) -> Workload {
    append(disabled, Some(most), start, appends, chunk)
}

/// Appends several rows before each flush, one at a time unless they fill a chunk.
pub fn batches(disabled: EdgeKinds, most: Option<u64>, flushes: u64, rows: u64, chunk: u64) -> Workload {
    let mut lab = Lab::new(disabled);
    lab.add(Series { name: "d", chunk, first: 0, kind: Kind::Rows { most } });
    lab.begin(0);
    for flush in 0..flushes {
        match chunk.cmp(&rows) {
            Ordering::Less => (flush * rows..(flush + 1) * rows).for_each(|row| lab.append("d", row, row + 1)),
            _ => lab.append("d", flush * rows, (flush + 1) * rows),
        }
        lab.flush(&[("d", (flush + 1) * rows)]);
    }
    lab.finish()
}

/// Writes a dataset again and again; the first time, nothing is allocated yet.
pub fn rewrite(disabled: EdgeKinds, kind: Kind, chunk: u64, times: u64) -> Workload {
    let mut lab = Lab::new(disabled);
    lab.add(Series { name: "d", chunk, first: 0, kind });
    lab.begin(0);
    for version in 1..=times {
        lab.rewrite("d", version);
        lab.flush(&[("d", version)]);
    }
    lab.finish()
}

/// Appends to two datasets by turns.
pub fn two_datasets(disabled: EdgeKinds, appends: u64) -> Workload {
    let mut lab = Lab::new(disabled);
    lab.add(Series { name: "d", chunk: 1, first: 0, kind: Kind::Rows { most: None } });
    lab.add(Series { name: "e", chunk: 2, first: 0, kind: Kind::Rows { most: Some(10) } });
    lab.begin(0);
    for row in 0..appends {
        lab.append("d", row, row + 1);
        lab.append("e", row, row + 1);
        lab.flush(&[("d", row + 1), ("e", row + 1)]);
    }
    lab.finish()
}

/// Appends, closes, opens again, and appends.
pub fn reopen(disabled: EdgeKinds, appends: u64) -> Workload {
    let mut lab = Lab::new(disabled);
    lab.add(Series { name: "d", chunk: 1, first: 0, kind: Kind::Rows { most: None } });
    lab.begin(0);
    for row in 0..appends {
        lab.append("d", row, row + 1);
        lab.flush(&[("d", row + 1)]);
        lab.close();
        lab.reopen();
    }
    lab.finish()
}

/// Appends, dies with a row unwritten, and another writer goes on.
pub fn takeover(disabled: EdgeKinds, appends: u64) -> Workload {
    let mut lab = Lab::new(disabled);
    lab.add(Series { name: "d", chunk: 1, first: 0, kind: Kind::Rows { most: None } });
    lab.begin(0);
    for row in 0..appends {
        lab.append("d", row, row + 1);
        lab.flush(&[("d", row + 1)]);
        lab.append("d", row + 1, row + 2);
        lab.die();
        lab.reopen();
    }
    lab.finish()
}

/// Adds attributes to a dataset, until its header has to be continued elsewhere.
pub fn attributes(disabled: EdgeKinds, count: u64) -> Workload {
    let mut lab = Lab::new(disabled);
    let name = Series { name: "d", chunk: 1, first: 0, kind: Kind::Rows { most: None } };
    let dataset = lab.add(name);
    let counted = Series { name: "a", chunk: 1, first: 0, kind: Kind::Rows { most: None } };
    lab.begin(0);
    for number in 0..count {
        lab.mark("issued", &counted, number + 1);
        dataset.set_attribute(&format!("a{number}"), &number).expect("an attribute can be set");
        lab.flush(&[]);
        lab.mark("flushed", &counted, number + 1);
    }
    drop(dataset);
    lab.finish()
}

/// What the new datasets of [`links`] hold.
pub(crate) fn object(first: u64) -> Series {
    Series { name: "o", chunk: 2, first, kind: Kind::Rows { most: None } }
}

/// Makes datasets in the root group, each with its rows.
pub fn links(disabled: EdgeKinds, count: u64) -> Workload {
    let mut lab = Lab::new(disabled);
    lab.begin(0);
    let counted = object(0);
    for number in 0..count {
        lab.mark("issued", &counted, number + 1);
        let builder = lab.file().new_dataset::<u64>().growing(&[]).chunk(&[2]);
        let dataset = builder.create(&format!("o{number}")).expect("a dataset can be made");
        dataset.append(&[counted.value(0, 1), counted.value(1, 1)]).expect("rows can be appended");
        lab.flush(&[]);
        lab.mark("flushed", &counted, number + 1);
    }
    lab.finish()
}

/// Makes groups in groups, `depth` deep, all at once: the file grows by nothing but structures.
pub fn deep_groups(disabled: EdgeKinds, depth: usize) -> Workload {
    let mut lab = Lab::new(disabled);
    lab.begin(0);
    lab.file().create_group(&vec!["g"; depth].join("/")).expect("groups can be made");
    lab.flush(&[]);
    lab.finish()
}
