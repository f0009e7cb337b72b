//! The workloads: what the recorded writers do.

use std::cmp::Ordering;

use h5live::Dataset;

use crate::{Series, SeriesKind, Workload, WriterRecorder, WriterSetup};

/// Appends `appends` rows, one at a time with a flush after each, to a dataset of `start` rows.
fn append_one_by_one(setup: WriterSetup, series: Series, start: u64, appends: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    drop(create_dataset_with_rows(&mut lab, series, start));
    lab.start_trace(start);
    for row in start..start + appends {
        lab.append_rows("d", row, row + 1);
        lab.flush_and_mark(&[("d", row + 1)]);
    }
    lab.finish()
}

/// A dataset with `start` rows, of which readers read the last two.
fn create_dataset_with_rows(lab: &mut WriterRecorder, series: Series, start: u64) -> Dataset {
    let first = start.saturating_sub(2);
    let dataset = lab.create_dataset(Series { first, ..series.clone() });
    if start > 0 {
        // What is stored where nobody looks makes no difference to an index that keeps a place for it all the same.
        let from = if series.max_rows() < u64::MAX { first } else { 0 };
        dataset.resize(&[from, 1][..if series.is_two_dimensional { 2 } else { 1 }]).expect("a dataset can grow");
        lab.append_rows("d", from, start);
    }
    dataset
}

/// Appends rows, each followed by a flush of the dataset: as briefly as that is done, to chunks that are there or are
/// made ready many at once.
pub fn append_repeatedly(setup: WriterSetup, what: Series, appends: u64) -> Workload {
    append_and_flush_rows(setup, Series { has_preallocated_chunks: true, ..what }, appends)
}

/// Appends rows to a new dataset, each followed by a flush of the dataset.
fn append_and_flush_rows(setup: WriterSetup, series: Series, appends: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let dataset = lab.create_dataset(series);
    lab.start_trace(0);
    for row in 0..appends {
        lab.append_rows("d", row, row + 1);
        dataset.flush().expect("a dataset in memory can be flushed");
        lab.mark_flushed("d", row + 1);
    }
    drop(dataset);
    lab.finish()
}

/// As [`append_repeatedly`], with an extensible array.
pub fn append_to_extensible_array_repeatedly(setup: WriterSetup, appends: u64, chunk: u64) -> Workload {
    append_repeatedly(setup, Series::rows("d", chunk), appends)
}

/// As [`append_repeatedly`], in chunks that go through a filter when they are full, with one or two unlimited dimensions.
pub fn append_to_growing_chunks(setup: WriterSetup, appends: u64, chunk: u64, is_two_dimensional: bool) -> Workload {
    append_and_flush_rows(
        setup,
        Series { is_checksummed: true, is_two_dimensional, ..Series::rows("d", chunk) },
        appends,
    )
}

/// As [`append_repeatedly`], with a fixed array.
pub fn append_to_fixed_array_repeatedly(setup: WriterSetup, appends: u64, chunk: u64) -> Workload {
    append_repeatedly(setup, rows_up_to(40, chunk), appends)
}

/// As [`append_repeatedly`], with a version 2 B-tree.
pub fn append_to_btree2_repeatedly(setup: WriterSetup, appends: u64, chunk: u64) -> Workload {
    append_repeatedly(setup, Series { is_two_dimensional: true, ..Series::rows("d", chunk) }, appends)
}

/// Appends rows of a chunk each to `start` rows, with a flush of the dataset after each `several` of them, which are stored
/// together.
pub fn append_chunk_rows(setup: WriterSetup, what: Series, start: u64, appends: u64, several: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let dataset = create_dataset_with_rows(&mut lab, what, start);
    lab.start_trace(start);
    for row in start..start + appends {
        lab.append_rows("d", row, row + 1);
        if (row + 1 - start).is_multiple_of(several) {
            dataset.flush().expect("a dataset in memory can be flushed");
            lab.mark_flushed("d", row + 1);
        }
    }
    drop(dataset);
    lab.finish()
}

/// As [`append_chunk_rows`], with an extensible array.
pub fn append_chunk_rows_to_extensible_array(setup: WriterSetup, appends: u64, several: u64) -> Workload {
    append_chunk_rows(setup, Series::rows("d", 1), 0, appends, several)
}

/// As [`append_chunk_rows`], with a fixed array.
pub fn append_chunk_rows_to_fixed_array(setup: WriterSetup, appends: u64, several: u64) -> Workload {
    append_chunk_rows(setup, rows_up_to(40, 1), 0, appends, several)
}

/// As [`append_chunk_rows`], with a version 2 B-tree.
pub fn append_chunk_rows_to_btree2(setup: WriterSetup, appends: u64, several: u64) -> Workload {
    append_chunk_rows(setup, Series { is_two_dimensional: true, ..Series::rows("d", 1) }, 0, appends, several)
}

/// As [`append_chunk_rows`], with a version 1 B-tree.
pub fn append_chunk_rows_to_btree1(setup: WriterSetup, start: u64, appends: u64, several: u64) -> Workload {
    append_chunk_rows(setup.with_old_format(), Series::rows("d", 1), start, appends, several)
}

/// Appends rows to a dataset with one unlimited dimension.
pub fn append_to_extensible_array(setup: WriterSetup, start: u64, appends: u64, chunk: u64) -> Workload {
    append_one_by_one(setup, Series::rows("d", chunk), start, appends)
}

/// Appends rows to a dataset of at most `max_rows` rows.
pub fn append_to_fixed_array(setup: WriterSetup, max_rows: u64, start: u64, appends: u64, chunk: u64) -> Workload {
    append_one_by_one(setup, rows_up_to(max_rows, chunk), start, appends)
}

/// As [`append_to_fixed_array`], with space for all rows from the start.
pub fn append_to_implicit_index(setup: WriterSetup, max_rows: u64, start: u64, appends: u64, chunk: u64) -> Workload {
    append_one_by_one(setup, Series { allocates_early: true, ..rows_up_to(max_rows, chunk) }, start, appends)
}

fn rows_up_to(max_rows: u64, chunk: u64) -> Series {
    Series { kind: SeriesKind::Rows { max_rows: Some(max_rows) }, ..Series::rows("d", chunk) }
}

/// Appends rows to a dataset with two unlimited dimensions.
pub fn append_to_btree2(setup: WriterSetup, start: u64, appends: u64, chunk: u64) -> Workload {
    append_one_by_one(setup, Series { is_two_dimensional: true, ..Series::rows("d", chunk) }, start, appends)
}

/// Appends several rows before each flush, one at a time unless they fill a chunk.
pub fn append_batches(setup: WriterSetup, flushes: u64, rows: u64, chunk: u64) -> Workload {
    append_batches_of(setup, Series::rows("d", chunk), flushes, rows)
}

/// As [`append_batches`], with space for 40 rows from the start.
pub fn append_batches_to_implicit_index(setup: WriterSetup, flushes: u64, rows: u64, chunk: u64) -> Workload {
    append_batches_of(setup, Series { allocates_early: true, ..rows_up_to(40, chunk) }, flushes, rows)
}

fn append_batches_of(setup: WriterSetup, series: Series, flushes: u64, rows: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let chunk = series.chunk;
    lab.create_dataset(series);
    lab.start_trace(0);
    for flush in 0..flushes {
        match chunk.cmp(&rows) {
            Ordering::Less => (flush * rows..(flush + 1) * rows).for_each(|row| lab.append_rows("d", row, row + 1)),
            _ => lab.append_rows("d", flush * rows, (flush + 1) * rows),
        }
        lab.flush_and_mark(&[("d", (flush + 1) * rows)]);
    }
    lab.finish()
}

/// Writes a dataset again and again; the first time, nothing is allocated yet.
pub fn rewrite_dataset(setup: WriterSetup, kind: SeriesKind, chunk: u64, times: u64) -> Workload {
    rewrite_dataset_of_rank(setup, kind, false, chunk, times)
}

/// As [`rewrite_dataset`], with two unlimited dimensions.
pub fn rewrite_two_dimensional_dataset(setup: WriterSetup, kind: SeriesKind, chunk: u64, times: u64) -> Workload {
    rewrite_dataset_of_rank(setup, kind, true, chunk, times)
}

fn rewrite_dataset_of_rank(
    setup: WriterSetup,
    kind: SeriesKind,
    is_two_dimensional: bool,
    chunk: u64,
    times: u64,
) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    lab.create_dataset(Series { kind, is_two_dimensional, ..Series::rows("d", chunk) });
    lab.start_trace(0);
    for version in 1..=times {
        lab.rewrite_rows("d", version);
        lab.flush_and_mark(&[("d", version)]);
    }
    lab.finish()
}

/// Overwrites rows of every chunk of a dataset of two chunks `times` times, or of one without any: they cannot move.
pub fn rewrite_chunks_in_place(setup: WriterSetup, contiguous: bool, chunk: u64, times: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let rows = if contiguous { chunk } else { 2 * chunk };
    lab.create_dataset(Series { kind: SeriesKind::InPlace { rows, contiguous }, ..Series::rows("d", chunk) });
    lab.rewrite_rows("d", 1);
    lab.start_trace(1);
    for version in 2..2 + times {
        lab.rewrite_rows("d", version);
        lab.flush_and_mark(&[("d", version)]);
    }
    lab.finish()
}

/// Writes one row into each of some large chunks, which lie apart in a large dataset: in space that was never written,
/// and behind the former announced end, where redo records may have been.
pub fn write_sparse_rows(setup: WriterSetup, fixed: bool, is_two_dimensional: bool) -> Workload {
    let (chunk, rows) = (2048, 1100 * 2048);
    let order = &[1092, 1098, 1090, 1095, 1099, 1091, 1097, 1093];
    let kind = SeriesKind::Sparse { rows, order, part: 1, fixed };
    let mut lab = WriterRecorder::new(setup);
    lab.create_dataset(Series { kind, is_two_dimensional, first: 1090 * chunk, ..Series::rows("d", chunk) });
    lab.start_trace(0);
    for version in 1..=order.len() as u64 {
        lab.rewrite_rows("d", version);
        lab.flush_and_mark(&[("d", version)]);
    }
    lab.finish()
}

/// Writes chunks of a large fixed array with pages that are larger than one of memory. After a death, the next writer
/// writes parts of the chunks of another dataset, which come to lie where redo records were.
pub fn write_where_redo_records_were(setup: WriterSetup) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let small = SeriesKind::Sparse { rows: 16 * 128, order: &[3, 1, 15, 0, 7, 5, 12, 9, 2, 14], part: 1, fixed: true };
    lab.create_dataset(Series { kind: small, ..Series::rows("e", 128) });
    let large = SeriesKind::Sparse { rows: 2048 * 8, order: &[0, 250, 500], part: 8, fixed: true };
    lab.create_dataset(Series { kind: large, ..Series::rows("d", 8) });
    lab.start_trace(0);
    for version in 1..=3 {
        lab.rewrite_rows("d", version);
        lab.flush_and_mark(&[("d", version)]);
    }
    lab.finish()
}

/// Appends to two datasets by turns.
pub fn append_to_two_datasets(setup: WriterSetup, appends: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    lab.create_dataset(Series::rows("d", 1));
    lab.create_dataset(Series { kind: SeriesKind::Rows { max_rows: Some(10) }, ..Series::rows("e", 2) });
    lab.start_trace(0);
    for row in 0..appends {
        lab.append_rows("d", row, row + 1);
        lab.append_rows("e", row, row + 1);
        lab.flush_and_mark(&[("d", row + 1), ("e", row + 1)]);
    }
    lab.finish()
}

/// Appends, closes, opens again, and appends.
pub fn append_and_reopen(setup: WriterSetup, appends: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    lab.create_dataset(Series::rows("d", 1));
    lab.start_trace(0);
    for row in 0..appends {
        lab.append_rows("d", row, row + 1);
        lab.flush_and_mark(&[("d", row + 1)]);
        lab.close();
        lab.reopen();
    }
    lab.finish()
}

/// A step of a writer of any rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterStep {
    /// Appends this many rows, without flushing them.
    Append(u64),
    /// Flushes.
    Flush,
    /// Closes the file, and opens it again.
    Reopen,
    /// Dies, and another writer goes on.
    Crash,
}

/// Takes any steps.
pub fn run_writer_steps(
    setup: WriterSetup,
    max_rows: Option<u64>,
    is_two_dimensional: bool,
    chunk: u64,
    steps: &[WriterStep],
) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    lab.create_dataset(Series { is_two_dimensional, kind: SeriesKind::Rows { max_rows }, ..Series::rows("d", chunk) });
    lab.start_trace(0);
    let (mut rows, mut flushed) = (0, 0);
    for step in steps {
        match step {
            WriterStep::Append(count) => {
                let end = max_rows.map_or(rows + count, |max_rows| max_rows.min(rows + count));
                if end > rows {
                    lab.append_rows("d", rows, end);
                }
                rows = end;
                continue;
            }
            WriterStep::Flush => lab.flush_and_mark(&[]),
            WriterStep::Reopen => {
                lab.close();
                lab.reopen();
            }
            WriterStep::Crash => {
                lab.crash();
                lab.reopen();
                rows = flushed;
            }
        }
        flushed = rows;
        lab.mark_flushed("d", rows);
    }
    lab.finish()
}

/// Appends, dies with a row unwritten, and another writer goes on.
pub fn append_and_take_over(setup: WriterSetup, appends: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    lab.create_dataset(Series::rows("d", 1));
    lab.start_trace(0);
    for row in 0..appends {
        lab.append_rows("d", row, row + 1);
        lab.flush_and_mark(&[("d", row + 1)]);
        lab.append_rows("d", row + 1, row + 2);
        lab.crash();
        lab.reopen();
    }
    lab.finish()
}

/// Adds `count` attributes to a dataset that has `start` of them: its header has to be continued elsewhere, and in the
/// end they move out of it.
pub fn add_attributes(setup: WriterSetup, start: u64, count: u64) -> Workload {
    add_attributes_of(setup, start, count, false)
}

/// As [`add_attributes`], with values of variable length.
pub fn add_vlen_attributes(setup: WriterSetup, start: u64, count: u64) -> Workload {
    add_attributes_of(setup, start, count, true)
}

fn add_attributes_of(setup: WriterSetup, start: u64, count: u64, texts: bool) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let dataset = lab.create_dataset(Series::rows("d", 1));
    let counted = Series::rows("a", 1);
    let set = |number: u64| {
        let name = format!("a{number}");
        let done = if texts {
            dataset.set_attribute(&name, &string_of_row(number))
        } else {
            dataset.set_attribute(&name, &number)
        };
        done.expect("an attribute can be set");
    };
    (0..start).for_each(set);
    lab.start_trace(0);
    lab.mark_series("issued", &counted, start);
    lab.mark_series("flushed", &counted, start);
    for number in start..start + count {
        lab.mark_series("issued", &counted, number + 1);
        set(number);
        lab.flush_and_mark(&[]);
        lab.mark_flushed(counted.name, number + 1);
    }
    drop(dataset);
    Workload { series: vec![Series::rows("d", 1)], ..lab.finish_after(5) }
}

/// The contents of the new datasets of [`add_linked_datasets`].
pub(crate) fn linked_object_series() -> Series {
    Series::rows("o", 2)
}

/// Makes `count` datasets in the root group, which has `start` of them, each with its rows.
pub fn add_linked_datasets(setup: WriterSetup, start: u64, count: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let counted = linked_object_series();
    let make = |lab: &WriterRecorder, number: u64| {
        let builder = lab.file().new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[2]);
        let dataset = builder.create(&format!("o{number}")).expect("a dataset can be made");
        dataset.append(&[counted.value(0, 1), counted.value(1, 1)]).expect("rows can be appended");
    };
    (0..start).for_each(|number| make(&lab, number));
    lab.start_trace(0);
    lab.mark_series("issued", &counted, start);
    lab.mark_series("flushed", &counted, start);
    for number in start..start + count {
        lab.mark_series("issued", &counted, number + 1);
        make(&lab, number);
        lab.flush_and_mark(&[]);
        lab.mark_flushed(counted.name, number + 1);
    }
    lab.finish_after(2)
}

/// Makes groups in groups, `depth` deep, all at once: the file grows by nothing but structures.
pub fn create_nested_groups(setup: WriterSetup, depth: usize) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    lab.start_trace(0);
    lab.file().create_group(&vec!["g"; depth].join("/")).expect("groups can be made");
    lab.flush_and_mark(&[]);
    lab.finish()
}

/// The text of row `row` in the dataset of [`append_strings`].
pub(crate) fn string_of_row(row: u64) -> String {
    format!("row {row} ").repeat(4 + row as usize % 3)
}

/// Appends rows of variable length to the dataset `s`, one at a time with a flush after each.
pub fn append_strings(setup: WriterSetup, start: u64, appends: u64, chunk: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let builder = lab.file().new_dataset::<String>().unlimited_rows(&[]).chunk_shape(&[chunk]);
    let dataset = builder.create("s").expect("a dataset can be made");
    let append = |row| dataset.append(&[string_of_row(row)]).expect("rows can be appended");
    (0..start).for_each(append);
    lab.start_trace(start);
    for what in ["s.issued", "s.flushed", "s.durable"] {
        lab.mark_count(what, start);
    }
    for row in start..start + appends {
        lab.mark_count("s.issued", row + 1);
        append(row);
        lab.flush_and_mark(&[]);
        lab.mark_flushed("s", row + 1);
    }
    drop(dataset);
    lab.finish_after(3)
}

/// Appends rows, makes the dataset smaller, and appends rows again, which hold the same as those that were cut off.
pub fn shrink_and_append_again(setup: WriterSetup, max_rows: Option<u64>, chunk: u64, times: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let dataset = lab.create_dataset(Series { kind: SeriesKind::Cut { max_rows }, ..Series::rows("d", chunk) });
    lab.start_trace(0);
    let mut rows = 0;
    for _ in 0..times {
        lab.append_rows("d", rows, rows + 5);
        lab.flush_and_mark(&[("d", rows + 5)]);
        rows += 2;
        lab.mark_series("issued", &Series::rows("d", chunk), rows);
        dataset.resize(&[rows]).expect("a dataset can be made smaller");
        lab.flush_and_mark(&[("d", rows)]);
    }
    drop(dataset);
    lab.finish()
}

/// The contents of the datasets of [`create_and_delete_datasets`], and the number of their rows.
pub(crate) fn transient_series() -> (Series, u64) {
    (Series::rows("x", 4), 12)
}

/// Makes datasets and removes them again, each time all but the newest; its space is used again, if the `pause_ms`
/// (milliseconds) after each is long enough for that.
pub fn create_and_delete_datasets(setup: WriterSetup, times: u64, pause_ms: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    lab.create_dataset(Series::rows("d", 2));
    lab.start_trace(0);
    for time in 0..times {
        replace_dataset(&lab, time);
        if pause_ms > 0 {
            lab.advance_clock(pause_ms);
        }
    }
    lab.finish()
}

/// Makes a dataset, and removes the one that was made before.
fn replace_dataset(lab: &WriterRecorder, time: u64) {
    let (series, count) = transient_series();
    let builder = lab.file().new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[series.chunk]);
    let dataset = builder.create(&format!("x{time}")).expect("a dataset can be made");
    let rows: Vec<u64> = (0..count).map(|row| series.value(row, 1)).collect();
    dataset.append(&rows).expect("rows can be appended");
    lab.append_rows("d", time, time + 1);
    lab.flush_and_mark(&[("d", time + 1)]);
    if let Some(before) = time.checked_sub(1) {
        lab.file().root().unlink(&format!("x{before}")).expect("a dataset can be removed");
        lab.flush_and_mark(&[]);
    }
}

/// As [`create_and_delete_datasets`], and the file is closed and opened again each time.
pub fn create_delete_and_reopen(setup: WriterSetup, times: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    lab.create_dataset(Series::rows("d", 2));
    lab.start_trace(0);
    for time in 0..times {
        replace_dataset(&lab, time);
        lab.close();
        lab.reopen();
    }
    lab.finish()
}

/// Writes chunks of other sizes again and again, `pause_ms` milliseconds apart: with pauses that are longer than what
/// readers count on, the space of old ones is used again under them.
pub fn rewrite_filtered_chunks(setup: WriterSetup, rows: u64, chunk: u64, times: u64, pause_ms: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    lab.create_dataset(Series { kind: SeriesKind::Filtered { rows }, ..Series::rows("d", chunk) });
    lab.start_trace(0);
    for version in 1..=times {
        lab.rewrite_rows("d", version);
        lab.flush_and_mark(&[("d", version)]);
        lab.advance_clock(pause_ms);
    }
    lab.finish()
}

/// Appends to `e` and to `d`, which is published before it.
pub fn append_in_publish_order(setup: WriterSetup, appends: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let earlier = lab.create_dataset(Series::rows("d", 1));
    let later = lab.create_dataset(Series::rows("e", 2));
    lab.start_trace(0);
    later.publish_after(&earlier).expect("datasets can be ordered");
    for row in 0..appends {
        lab.append_rows("e", row, row + 1);
        lab.append_rows("d", row, row + 1);
        later.flush().expect("a file in memory can be flushed");
        lab.mark_flushed("d", row + 1);
        lab.mark_flushed("e", row + 1);
    }
    drop((earlier, later));
    lab.finish()
}

/// Appends to `d` and then `e` in transactions.
pub fn append_in_transactions(setup: WriterSetup, appends: u64) -> Workload {
    let mut lab = WriterRecorder::new(setup);
    let (d, e) = (Series::rows("d", 1), Series::rows("e", 2));
    let sets = [lab.create_dataset(d.clone()), lab.create_dataset(e.clone())];
    lab.start_trace(0);
    for row in 0..appends {
        lab.mark_series("issued", &d, row + 1);
        lab.mark_series("issued", &e, row + 1);
        let done = lab.file().transaction(|step| {
            step.append(&sets[0], &[d.value(row, 1)])?;
            step.append(&sets[1], &[e.value(row, 1)])
        });
        done.expect("a transaction can be made");
        lab.mark_flushed("d", row + 1);
        lab.mark_flushed("e", row + 1);
    }
    drop(sets);
    lab.finish()
}
