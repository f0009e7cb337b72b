//! Writers of logs, recorded.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use h5live_cache::{MemoryStorage, RecordingStorage, Storage, StorageOp};
use h5live_checker::trace::Trace;
use h5live_log::{Log, LogMutant, LogOpenRequest, LogStore};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout, Mode, Name,
    NewObject, ObjectScope, ObjectSpec, PublishLevel, Shape, Sign, Store, UNLIMITED,
};

use super::regions::{REGION_BYTES, RegionFiles};

/// The mark of a batch that is acknowledged.
pub const ACKNOWLEDGED: &str = "batches";
/// Batches of one writer.
pub const BATCHES: u16 = 4;
/// Groups that are in the root group beside the datasets.
const OTHER_LINKS: u16 = 8;
/// Cells that are written again and again.
pub const CELLS: u64 = 2;

/// What a reader of a workload knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// One writer of batches.
    One,
    /// Two writers, with a batch each.
    Two,
}

/// A recorded writer, or several.
#[derive(Debug)]
pub struct LogWorkload {
    /// What is done to the storage.
    pub trace: Trace,
    /// From where on a reader may come.
    pub start: usize,
    /// Which writers there are.
    pub writers: Writers,
    /// Whether each second batch makes a dataset.
    pub makes_datasets: bool,
    /// The rule that is not kept.
    pub mutant: LogMutant,
}

impl LogWorkload {
    /// Writes behind the start.
    pub fn writes(&self) -> usize {
        self.trace.len() - self.start
    }

    /// The workload cut at its marks: each part begins with the file as the parts before have left it.
    ///
    /// # Errors
    /// Those of making the files.
    pub fn parts(&self) -> std::io::Result<Vec<LogWorkload>> {
        // Each begins with its mark.
        let begins: Vec<usize> = self.trace.numbered_marks(ACKNOWLEDGED).iter().map(|(end, _)| end - 1).collect();
        let ends = begins.iter().skip(1).copied().chain([self.trace.len()]);
        let part = |(begin, end): (&usize, usize)| {
            let trace = Trace::new(self.trace.image_after(*begin)?, self.trace.operations()[*begin..end].to_vec());
            let LogWorkload { writers, makes_datasets, mutant, .. } = *self;
            Ok(LogWorkload { trace, start: 0, writers, makes_datasets, mutant })
        };
        begins.iter().zip(ends).map(part).collect()
    }

    /// Parts in which any `len` operations that follow each other are, together in one of them. Each begins with what was
    /// acknowledged before.
    ///
    /// # Errors
    /// Those of making the files.
    pub fn windows(&self, len: usize) -> std::io::Result<Vec<LogWorkload>> {
        /// From one to the next. The last operations of each are the first ones of the next.
        const STEP: usize = 2;
        let (operations, marks) = (self.trace.operations(), self.trace.numbered_marks(ACKNOWLEDGED));
        let window = |begin: usize| {
            let mark = marks.iter().rev().map(|(end, _)| end - 1).find(|at| *at <= begin);
            let mark = mark.filter(|at| *at < begin).map(|at| operations[at].clone());
            let end = operations.len().min(begin + len + STEP - 1);
            let operations = mark.into_iter().chain(operations[begin..end].iter().cloned()).collect();
            let LogWorkload { writers, makes_datasets, mutant, .. } = *self;
            let trace = Trace::new(self.trace.image_after(begin)?, operations);
            Ok(LogWorkload { trace, start: 0, writers, makes_datasets, mutant })
        };
        (0..operations.len().saturating_sub(len - 1)).step_by(STEP).map(window).collect()
    }
}

type Recording = RecordingStorage<MemoryStorage>;

/// How the log is opened: with log datasets that are full after a few entries.
pub fn request(mutant: LogMutant) -> LogOpenRequest {
    request_with_size(mutant, FULL_LOG_BYTES)
}

fn request_with_size(mutant: LogMutant, log_bytes: u64) -> LogOpenRequest {
    let options = Log { staging: 200, min_log_size: log_bytes, max_log_size: log_bytes, ..Log::default() };
    LogOpenRequest { mutant, ..LogOpenRequest::new(options) }
}

/// Bytes of a log dataset that is full after a few entries, and of one that has room for all.
const FULL_LOG_BYTES: u64 = 400;
const ROOMY_LOG_BYTES: u64 = 8000;

/// What one writer does.
#[derive(Debug, Clone, Copy)]
pub struct WriterPlan {
    /// Whether each batch is durable.
    pub durable: bool,
    /// Whether log datasets become full.
    pub fills_logs: bool,
    /// Whether each second batch makes a dataset.
    pub makes_datasets: bool,
}

impl WriterPlan {
    /// Everything, and no batch is durable.
    pub const MAKES_DATASETS_AND_FILLS_LOGS: WriterPlan =
        WriterPlan { durable: false, fills_logs: true, makes_datasets: true };

    /// Plans that each do at most one thing beside writing batches, so that all schedules of their readers can be looked
    /// at.
    pub const AT_MOST_ONE_EXTRA: [WriterPlan; 3] = [
        WriterPlan { fills_logs: false, makes_datasets: false, ..WriterPlan::MAKES_DATASETS_AND_FILLS_LOGS },
        WriterPlan { makes_datasets: false, ..WriterPlan::MAKES_DATASETS_AND_FILLS_LOGS },
        WriterPlan { fills_logs: false, ..WriterPlan::MAKES_DATASETS_AND_FILLS_LOGS },
    ];
}

fn u16le() -> Datatype {
    Datatype::integer(2, ByteOrder::Little, Sign::Unsigned)
}

fn create(store: &LogStore, name: &str, len: u64) -> Arc<dyn ChunkStore> {
    let spec = DatasetSpec {
        datatype: u16le(),
        dataspace: Dataspace::Simple(Shape::with_max(&[len], &[UNLIMITED]).unwrap_or_default()),
        layout: Layout::Chunked(vec![1]),
        ..DatasetSpec::default()
    };
    let (root, name) = (store.session().root, Name::from(name));
    let writer = store.writer().expect("a session that writes");
    let id = writer.create(&NewObject::linked(root, &name, &spec.into())).expect("a new dataset");
    store.dataset(id).expect("the new dataset")
}

/// Writes an element, and makes the extent reach behind it; nothing is published.
fn put(data: &dyn ChunkStore, at: u64, value: u16) {
    let (coord, bytes) = (ChunkCoord::new(&[at]), value.to_le_bytes());
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &bytes }];
    let now = data.spec().map_or(0, |spec| spec.dataspace.dims()[0]);
    let extent = [now.max(at + 1)];
    let batch = ChunkBatch { writes: &writes, extent: Some(&extent), ..ChunkBatch::default() };
    data.write(&batch).expect("a write");
}

fn recording() -> Arc<Recording> {
    Arc::new(RecordingStorage::new(MemoryStorage::from(vec![0; 3 * REGION_BYTES as usize])))
}

fn image(storage: &Recording) -> Vec<u8> {
    let mut image = vec![0; 3 * REGION_BYTES as usize];
    storage.read_zero_padded(&mut image, 0).expect("memory");
    image
}

/// The name of the dataset that a batch makes.
pub fn new_name(batch: u16) -> String {
    format!("new{batch}")
}

/// One writer of batches. Each adds an element to `a` and to `b`, and writes a cell anew; each second one may make a
/// dataset. At the end the log is closed.
pub fn one_writer(mutant: LogMutant, plan: WriterPlan) -> LogWorkload {
    let storage = recording();
    let files = RegionFiles::new(storage.clone());
    let file = Arc::new(files.open(0, Mode::Create, false).expect("a new file"));
    let log_bytes = if plan.fills_logs { FULL_LOG_BYTES } else { ROOMY_LOG_BYTES };
    let store = LogStore::open_or_create(file, None, request_with_size(mutant, log_bytes)).expect("a new log");
    let (a, b, grid) = (create(&store, "a", 0), create(&store, "b", 0), create(&store, "grid", CELLS));
    let writer = store.writer().expect("a session that writes");
    // So many links are in a heap and a B-tree, which are not written in one piece.
    for number in 0..OTHER_LINKS {
        let (name, group) = (Name::from(format!("g{number}")), ObjectSpec::group());
        writer.create(&NewObject::linked(store.session().root, &name, &group)).expect("a new group");
    }
    writer.start_swmr().expect("a live file");
    let publish = if plan.durable { PublishLevel::Durable } else { PublishLevel::Visible };
    writer.commit(ObjectScope::All, publish).expect("a commit");
    storage.take_log();
    let base = image(&storage);
    storage.log_mark(format!("{ACKNOWLEDGED} 0"));
    for batch in 0..BATCHES {
        put(&*a, batch.into(), batch + 1);
        put(&*grid, u64::from(batch) % CELLS, batch + 1);
        put(&*b, batch.into(), batch + 1);
        if batch % 2 == 1 && plan.makes_datasets {
            put(&*create(&store, &new_name(batch), 0), 0, batch + 1);
        }
        writer.commit(ObjectScope::All, publish).expect("a commit");
        storage.log_mark(format!("{ACKNOWLEDGED} {}", batch + 1));
    }
    // What is not committed is, when the log is closed.
    put(&*a, BATCHES.into(), BATCHES + 1);
    put(&*grid, u64::from(BATCHES) % CELLS, BATCHES + 1);
    put(&*b, BATCHES.into(), BATCHES + 1);
    store.close().expect("a closed log");
    LogWorkload {
        trace: Trace::new(base, storage.take_log()),
        start: 0,
        writers: Writers::One,
        makes_datasets: plan.makes_datasets,
        mutant,
    }
}

/// Two writers that have joined. Both write all of `cells` and an element of `own`, at the same time: the first one has
/// the lower number in the order of batches. Their writes are interleaved in all ways.
pub fn joined_writers(mutant: LogMutant) -> Vec<LogWorkload> {
    let storage = recording();
    let join = |creates: bool, taken: u64| {
        let files = Arc::new(RegionFiles::new(storage.clone()));
        files.taken.store(taken, Relaxed);
        (LogStore::join_as_writer(files.clone(), creates, request(mutant)).expect("a writer joins"), files)
    };
    let (first, first_files) = join(true, u64::MAX);
    let (cells, own) = (create(&first, "cells", CELLS), create(&first, "own", 2));
    (0..CELLS).for_each(|cell| put(&*cells, cell, 1));
    first.writer().and_then(|writer| writer.commit(ObjectScope::All, PublishLevel::Visible)).expect("a commit");
    let (second, second_files) = join(false, 1);
    storage.take_log();
    let base = image(&storage);
    let flush = |store: &LogStore, files: &RegionFiles<Recording>, number: u16| {
        let find = |data: &Arc<dyn ChunkStore>| store.dataset(data.id()).expect("a dataset");
        let (cells, own) = (find(&cells), find(&own));
        (0..CELLS).for_each(|cell| put(&*cells, cell, number));
        put(&*own, u64::from(number) - 2, number);
        files.next_order.store(number.into(), Relaxed);
        store.writer().and_then(|writer| writer.commit(ObjectScope::All, PublishLevel::Visible)).expect("a commit");
        storage.take_log()
    };
    let (one, two) = (flush(&first, &first_files, 2), flush(&second, &second_files, 3));
    let workload = |operations: Vec<StorageOp>| LogWorkload {
        trace: Trace::new(base.clone(), operations),
        start: 0,
        writers: Writers::Two,
        makes_datasets: false,
        mutant,
    };
    let all = interleavings(&one, &two).into_iter().map(workload).collect();
    // What they do when they are closed is another matter.
    std::mem::forget((first, second));
    all
}

/// All ways to bring two sequences into one.
fn interleavings(one: &[StorageOp], two: &[StorageOp]) -> Vec<Vec<StorageOp>> {
    let mut all = vec![Vec::new()];
    let steps = one.len() + two.len();
    for _ in 0..steps {
        let longer = |begun: Vec<bool>| {
            let first = begun.iter().filter(|is_first| **is_first).count();
            let (may_first, may_second) = (first < one.len(), begun.len() - first < two.len());
            let with = |is_first: bool| [begun.clone(), vec![is_first]].concat();
            [may_first.then(|| with(true)), may_second.then(|| with(false))].into_iter().flatten().collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    let merge = |order: Vec<bool>| {
        let (mut one, mut two) = (one.iter(), two.iter());
        order.into_iter().filter_map(|is_first| if is_first { one.next() } else { two.next() }).cloned().collect()
    };
    all.into_iter().map(merge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sequences_come_together_in_all_ways() {
        let mark = |text: &str| StorageOp::Mark(text.to_owned());
        let found = interleavings(&[mark("a"), mark("b")], &[mark("c")]);
        assert_eq!(found.len(), 3);
        assert!(found.contains(&vec![mark("a"), mark("c"), mark("b")]));
    }

    #[test]
    fn workloads_are_small() {
        let (one, two) =
            (one_writer(LogMutant::None, WriterPlan::MAKES_DATASETS_AND_FILLS_LOGS), joined_writers(LogMutant::None));
        assert!(one.writes() < 150 && two[0].writes() < 12, "{}, {}", one.writes(), two[0].writes());
        assert_eq!(two.len(), 252, "five writes of each, in all orders");
        let parts = one.parts().unwrap();
        let writes = parts.iter().map(LogWorkload::writes).sum::<usize>();
        assert_eq!((parts.len(), writes), (usize::from(BATCHES) + 1, one.writes()));
        let windows = one.windows(4).unwrap();
        assert_eq!(windows.len(), (one.writes() - 3).div_ceil(2));
        // Each has its operations, and the mark of what was acknowledged before.
        assert!(windows.iter().all(|window| (4..=6).contains(&window.writes())));
    }
}
