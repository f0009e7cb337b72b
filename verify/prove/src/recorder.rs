//! The recorder of a writer, on a file in memory that records the operations on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use h5live::{Dataset, File, Options};
use h5live_cache::{BarrierKind, DependencyKind, DependencyKinds, MemoryStorage, RecordingStorage};
use h5live_checker::trace::Trace;
use h5live_model::{AllocationTime, ChunkStore, FileSpaceSettings, Store};
use h5live_native::{AllowedReaders, Clock, LibVer, Mode, MutantOptions, NativeFile, OpenOptions};

use crate::entry_changes::EntryChanges;
use crate::{Series, SeriesKind};

/// A recorded writer, and the known properties of its datasets.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The trace of the writer, from when it lets readers in.
    pub trace: Trace,
    /// The prefix of the trace that only says what is there.
    pub start: usize,
    /// The datasets.
    pub series: Vec<Series>,
    /// The entries of a group that come and go.
    pub names: Option<EntryChanges>,
    /// As [`WriterSetup::without_recount`].
    pub without_recount: bool,
    /// Whether nobody can read the file while it is written.
    pub is_exclusive: bool,
    /// Whether its superblock does not say that it is open for writing, so that nobody knows when its writer has died.
    pub has_no_write_mark: bool,
}

/// How a writer is set up.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriterSetup {
    /// The kinds of flush dependencies that it breaks.
    pub disabled_edges: DependencyKinds,
    /// Whether its flushes are durable.
    pub durable: bool,
    /// Whether they do without barriers, and without what these are for: one redo record for all changes.
    pub disable_barriers: bool,
    /// The kind of barriers that they leave out, with everything else as it should be.
    pub disabled_barrier: Option<BarrierKind>,
    /// Whether changes in place have no redo record.
    pub disable_redo: bool,
    /// Whether redo records have no serial numbers.
    pub disable_redo_serials: bool,
    /// Whether it takes all space that was never allocated for zeros.
    pub trusts_zeros: bool,
    /// Whether the next writer leaves contradictions of the dead writer.
    pub without_recount: bool,
    /// Which structures it writes.
    pub profile: LibVer,
    /// Whether the writer lets nobody read meanwhile.
    pub is_exclusive: bool,
    /// How many bytes its file announces beyond its end.
    pub eof_headroom_bytes: u64,
    /// Whether the file keeps its list of free space from one session to the next.
    pub persists_free_space: bool,
    /// Whether only readers of h5live may follow, so that freed space is used again after a time.
    pub is_for_h5live: bool,
    /// Whether freed space is used again after a time, whoever may follow.
    pub reuses_by_time: bool,
}

impl WriterSetup {
    /// A writer that breaks the flush dependencies of one kind.
    pub fn without(kind: DependencyKind) -> Self {
        WriterSetup { disabled_edges: DependencyKinds::only(kind), ..WriterSetup::default() }
    }

    /// The same writer, which lets nobody read meanwhile.
    #[must_use]
    pub fn exclusive(self) -> Self {
        WriterSetup { is_exclusive: true, ..self }
    }

    /// The same writer, of files for old programs, whose structures have no checksums.
    #[must_use]
    pub fn with_old_format(self) -> Self {
        WriterSetup { profile: LibVer::Earliest, ..self }
    }

    /// The same writer, whose file announces 64 KiB beyond its end.
    #[must_use]
    pub fn with_headroom(self) -> Self {
        WriterSetup { eof_headroom_bytes: 64 << 10, ..self }
    }

    /// The same writer, whose file keeps its list of free space. It lets nobody read meanwhile.
    #[must_use]
    pub fn with_persistent_space(self) -> Self {
        WriterSetup { persists_free_space: true, ..self.exclusive() }
    }

    /// The same writer, which lets only readers of h5live follow.
    #[must_use]
    pub fn for_h5live(self) -> Self {
        WriterSetup { is_for_h5live: true, ..self }
    }

    /// A writer that uses freed space again after a time, whoever may follow.
    pub fn reusing_by_time() -> Self {
        WriterSetup { reuses_by_time: true, ..WriterSetup::default() }
    }

    /// The same writer, whose flushes are durable.
    #[must_use]
    pub fn with_durable_flushes(self) -> Self {
        WriterSetup { durable: true, ..self }
    }

    /// A writer whose flushes are durable.
    pub fn durable() -> Self {
        WriterSetup { durable: true, ..WriterSetup::default() }
    }
}

/// Records a writer.
#[derive(Debug)]
pub struct WriterRecorder {
    storage: Arc<RecordingStorage<MemoryStorage>>,
    setup: WriterSetup,
    native: Option<Arc<NativeFile>>,
    file: Option<File>,
    base: Vec<u8>,
    series: Vec<Series>,
    /// The time, in milliseconds.
    time: Arc<AtomicU64>,
}

impl WriterRecorder {
    /// A new file.
    pub fn new(setup: WriterSetup) -> Self {
        let storage = Arc::new(RecordingStorage::new(MemoryStorage::new()));
        let mut lab = WriterRecorder {
            storage,
            setup,
            native: None,
            file: None,
            base: Vec::new(),
            series: Vec::new(),
            time: Arc::default(),
        };
        lab.open(Mode::Create);
        lab
    }

    fn open(&mut self, mode: Mode) {
        let WriterSetup {
            disabled_edges,
            durable,
            disable_barriers: without_barriers,
            disabled_barrier,
            disable_redo: without_intents,
            disable_redo_serials,
            trusts_zeros,
            profile,
            ..
        } = self.setup;
        let mut trial = MutantOptions::default();
        trial.cache.violated_edges = disabled_edges;
        trial.cache.disabled_barrier = disabled_barrier;
        trial.cache.disable_redo = without_intents;
        trial.cache.disable_redo_serials = disable_redo_serials;
        trial.disable_barriers = without_barriers;
        trial.assumes_unallocated_is_zero = trusts_zeros;
        trial.reuses_space_despite_libhdf5_readers = self.setup.reuses_by_time;
        trial.simulates_other_handles = !self.setup.is_exclusive;
        let readers = if self.setup.is_for_h5live { AllowedReaders::H5live } else { AllowedReaders::Any };
        let time = self.time.clone();
        let clock = Clock::new(move || Duration::from_millis(time.load(Relaxed)));
        let WriterSetup { eof_headroom_bytes: headroom, persists_free_space: persist, .. } = self.setup;
        let space = FileSpaceSettings { persist, ..FileSpaceSettings::default() };
        let options = OpenOptions {
            mode,
            clock,
            mutant: trial,
            durable_flushes: durable,
            profile,
            eof_headroom_bytes: headroom,
            space,
            ..OpenOptions::default()
        };
        let options = OpenOptions { take_over_if_unknown: true, readers, ..options };
        let native =
            Arc::new(NativeFile::open_storage(self.storage.clone(), &options).expect("a file in memory opens"));
        self.file = Some(File::with_store(native.clone(), "prove", Options::default()).expect("no option is unused"));
        self.native = Some(native);
    }

    /// The file, open for writing.
    pub fn file(&self) -> &File {
        self.file.as_ref().expect("the file is open")
    }

    /// Makes a dataset that readers will follow.
    pub fn create_dataset(&mut self, series: Series) -> Dataset {
        let builder = self.file().new_dataset::<u64>();
        let builder = if series.is_two_dimensional {
            builder.chunk_shape(&[series.chunk, 1])
        } else {
            builder.chunk_shape(&[series.chunk])
        };
        let builder = match series.kind {
            SeriesKind::Rows { max_rows: None } | SeriesKind::Cut { max_rows: None } if series.is_two_dimensional => {
                builder.shape(&[0, 1]).resizable()
            }
            SeriesKind::Sparse { rows, .. } if series.is_two_dimensional => builder.shape(&[rows, 1]).resizable(),
            SeriesKind::Rows { max_rows: None }
            | SeriesKind::Cut { max_rows: None }
            | SeriesKind::Sparse { fixed: false, .. } => builder.unlimited_rows(&[]),
            SeriesKind::Rows { max_rows: Some(max_rows) } | SeriesKind::Cut { max_rows: Some(max_rows) } => {
                builder.shape(&[0]).max_shape(&[max_rows])
            }
            SeriesKind::InPlace { rows, contiguous } => {
                let builder = builder.shape(&[rows]).alloc_time(AllocationTime::Early);
                if contiguous { builder.contiguous() } else { builder }
            }
            SeriesKind::Versions { rows } | SeriesKind::Filtered { rows } | SeriesKind::Sparse { rows, .. } => {
                builder.shape(&[rows])
            }
        };
        let builder = if matches!(series.kind, SeriesKind::Filtered { .. }) { builder.deflate(1) } else { builder };
        let builder = if series.is_checksummed { builder.fletcher32() } else { builder };
        let builder = if series.allocates_early { builder.alloc_time(AllocationTime::Early) } else { builder };
        let dataset = builder.create(series.name).expect("a dataset can be made");
        if let (SeriesKind::Sparse { rows, fixed: false, .. }, false) = (series.kind, series.is_two_dimensional) {
            dataset.resize(&[rows]).expect("a dataset can grow");
        }
        self.series.push(series);
        dataset
    }

    /// The dataset of that name.
    pub fn dataset(&self, name: &str) -> Dataset {
        self.file().dataset(name).expect("the dataset is there")
    }

    /// The stored chunks of the dataset of that name.
    pub fn chunk_store(&self, name: &str) -> Arc<dyn ChunkStore> {
        let native = self.native.as_ref().expect("the file is open");
        let id = crate::find_in_root(native, name).expect("the root group can be read").expect("the dataset is there");
        native.dataset(id).expect("the dataset opens")
    }

    /// Lets readers in: the trace begins here, with `rows` rows.
    pub fn start_trace(&mut self, rows: u64) {
        match self.setup.is_exclusive {
            true => self.file().flush().expect("a file in memory can be flushed"),
            false => self.file().start_swmr().expect("a file in memory can be followed"),
        }
        self.base = self.storage.inner().to_vec();
        drop(self.storage.take_log());
        for series in &self.series {
            self.mark_series("issued", series, rows);
            self.mark_series("flushed", series, rows);
            self.mark_series("durable", series, rows);
        }
    }

    /// Lets time go by.
    pub fn advance_clock(&self, milliseconds: u64) {
        let now = self.time.fetch_add(milliseconds, Relaxed) + milliseconds;
        self.mark_count("time", now);
    }

    /// Says something in the trace that can be counted.
    pub fn mark_count(&self, what: &str, count: u64) {
        self.storage.log_mark(format!("{what} {count}"));
    }

    /// Says in the trace how many rows of a dataset, or which version of it, have been written, or flushed.
    pub fn mark_series(&self, what: &str, series: &Series, count: u64) {
        self.storage.log_mark(format!("{}.{what} {count}", series.name));
    }

    /// Writes the rows from `from` to `to` of a series, without flushing them.
    pub fn append_rows(&self, name: &str, from: u64, to: u64) {
        let series = self.series(name);
        let rows: Vec<u64> = (from..to).map(|row| series.value(row, 1)).collect();
        self.mark_series("issued", series, to);
        self.dataset(name).append(&rows).expect("rows can be appended");
    }

    /// Overwrites all rows of a series, or writes its next chunk, without flushing them.
    pub fn rewrite_rows(&self, name: &str, version: u64) {
        let series = self.series(name);
        self.mark_series("issued", series, version);
        match series.kind {
            SeriesKind::Filtered { rows } => {
                let chunks = self.chunk_store(name);
                for chunk in 0..rows.div_ceil(series.chunk) {
                    let rows = chunk * series.chunk..(chunk + 1) * series.chunk;
                    let bytes: Vec<u8> = rows.flat_map(|row| series.value(row, version).to_le_bytes()).collect();
                    let stored = stored_zlib_stream(&bytes, version);
                    chunks.write_whole_chunk(&series.coord(chunk), 0, &stored).expect("a chunk is written");
                }
            }
            SeriesKind::InPlace { rows, .. } if version > 1 => {
                let chunks = self.chunk_store(name);
                for row in (0..rows).filter(|row| !series.is_constant(*row)) {
                    let (coord, at) = (series.coord(row / series.chunk), row % series.chunk * 8);
                    let value = series.value(row, version).to_le_bytes();
                    chunks.write_byte_range(&coord, at, &value).expect("a part of a chunk is written");
                }
            }
            SeriesKind::Versions { rows } | SeriesKind::InPlace { rows, .. } => {
                let rows: Vec<u64> = (0..rows).map(|row| series.value(row, version)).collect();
                self.dataset(name).write(&rows).expect("rows can be written");
            }
            SeriesKind::Sparse { order, part, .. } => {
                let first = order[version as usize - 1] * series.chunk;
                let rows_written = first..first + part;
                let rows: Vec<u64> = rows_written.clone().map(|row| series.value(row, 1)).collect();
                let dataset = self.dataset(name);
                let done = match series.is_two_dimensional {
                    true => dataset.write_slice((rows_written, ..), &rows),
                    false => dataset.write_slice(rows_written, &rows),
                };
                done.expect("rows can be written");
            }
            SeriesKind::Rows { .. } | SeriesKind::Cut { .. } => panic!("rows that are appended have one version"),
        }
    }

    /// Flushes the file. `counts` has the rows, or the version, of each series.
    pub fn flush_and_mark(&self, counts: &[(&str, u64)]) {
        self.file().flush().expect("a file in memory can be flushed");
        for (name, count) in counts {
            self.mark_flushed(name, *count);
        }
    }

    /// Says in the trace how many of something have been flushed.
    pub fn mark_flushed(&self, name: &str, count: u64) {
        self.mark_count(&format!("{name}.flushed"), count);
        if self.setup.durable {
            self.mark_count(&format!("{name}.durable"), count);
        }
    }

    fn series(&self, name: &str) -> &Series {
        self.series.iter().find(|series| series.name == name).expect("the series was added")
    }

    /// Closes the file.
    pub fn close(&mut self) {
        self.native = None;
        self.file.take().expect("the file is open").close().expect("a file in memory closes");
    }

    /// Opens the file again, for writing under readers.
    pub fn reopen(&mut self) {
        self.open(if self.setup.is_exclusive { Mode::Write } else { Mode::SwmrWrite });
    }

    /// The writer dies: its unwritten changes are lost. (Its memory is leaked, because dropping it would close the
    /// file.)
    pub fn crash(&mut self) {
        std::mem::forget((self.file.take(), self.native.take()));
    }

    /// The recorded workload.
    pub fn finish(self) -> Workload {
        let start = 3 * self.series.len();
        self.finish_after(start)
    }

    /// The recorded workload. The first `start` operations are marks about what was there.
    pub fn finish_after(mut self, start: usize) -> Workload {
        let operations = self.storage.take_log();
        let (base, series) = (std::mem::take(&mut self.base), std::mem::take(&mut self.series));
        let unmarked = self.setup.profile == LibVer::Earliest;
        let (trace, without_recount) = (Trace::new(base, operations), self.setup.without_recount);
        Workload {
            trace,
            start,
            series,
            names: None,
            without_recount,
            is_exclusive: self.setup.is_exclusive,
            has_no_write_mark: unmarked,
        }
    }
}

/// The bytes as an uncompressed zlib stream after `blocks` empty blocks, so that each stream has another size.
fn stored_zlib_stream(bytes: &[u8], blocks: u64) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).expect("a chunk is small").to_le_bytes();
    let [low, high] = len;
    let mut stream = vec![0x78, 0x01];
    (0..blocks).for_each(|_| stream.extend([0, 0, 0, 0xff, 0xff]));
    stream.extend([1, low, high, !low, !high]);
    stream.extend(bytes);
    let (a, b) = bytes.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    stream.extend((b << 16 | a).to_be_bytes());
    stream
}
