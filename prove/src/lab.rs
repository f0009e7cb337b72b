//! The writer, on a file in memory that records what is done to it.

use std::sync::Arc;

use h5live::{Dataset, File, Options};
use h5live_cache::{EdgeKinds, MemoryStorage, RecordingStorage};
use h5live_checker::trace::Trace;
use h5live_model::Objects;
use h5live_swmr::{Mode, NativeFile, OpenOptions, Trial};

/// A recorded writer, and what is known of the datasets that it writes.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// What the writer did, from when it let readers in.
    pub trace: Trace,
    /// The datasets.
    pub series: Vec<Series>,
}

/// A dataset of rows of one number each, which tells the row and how often it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Its name in the root group.
    pub name: &'static str,
    /// Rows of a chunk.
    pub chunk: u64,
    /// The first row that readers look at.
    pub first: u64,
}

impl Series {
    /// What a row holds once it has been written `version` times, from 1.
    pub fn value(&self, row: u64, version: u64) -> u64 {
        let name = self.name.bytes().fold(7, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name << 56 ^ version
    }

    /// The version of a row that holds `value`; `None` if it is none of its values.
    pub fn version(&self, row: u64, value: u64) -> Option<u64> {
        let version = value ^ self.value(row, 0);
        (1..=9).contains(&version).then_some(version)
    }
}

/// Where a writer is recorded.
#[derive(Debug)]
pub struct Lab {
    storage: Arc<RecordingStorage<MemoryStorage>>,
    disabled: EdgeKinds,
    file: Option<File>,
    base: Vec<u8>,
}

impl Lab {
    /// A new file, whose writer breaks the flush dependencies of some kinds.
    pub fn new(disabled: EdgeKinds) -> Self {
        let storage = Arc::new(RecordingStorage::new(MemoryStorage::new()));
        let mut lab = Lab { storage, disabled, file: None, base: Vec::new() };
        lab.open(Mode::Create);
        lab
    }

    fn open(&mut self, mode: Mode) {
        let options = OpenOptions {
            mode,
            trial: Trial { disabled_edges: self.disabled, ..Trial::default() },
            take_over: true,
            ..OpenOptions::default()
        };
        let file = NativeFile::on(self.storage.clone(), &options).expect("a file in memory opens");
        self.file = Some(File::with_store(Arc::new(file), "prove", Options::default()));
    }

    /// The file, open for writing.
    pub fn file(&self) -> &File {
        self.file.as_ref().expect("the file is open")
    }

    /// Lets readers in: what is done from now on is the trace.
    pub fn begin(&mut self) {
        self.file().start_swmr().expect("a file in memory can be followed");
        self.base = self.storage.inner().to_vec();
        drop(self.storage.take_log());
    }

    /// Says in the trace how many rows of a dataset have been written, or flushed.
    pub fn mark(&self, what: &str, series: &Series, rows: u64) {
        self.storage.mark(format!("{}.{what} {rows}", series.name));
    }

    /// Writes the rows from `from` to `to`, without flushing them.
    pub fn append(&self, dataset: &Dataset, series: &Series, from: u64, to: u64) {
        let rows: Vec<u64> = (from..to).map(|row| series.value(row, 1)).collect();
        self.mark("issued", series, to);
        dataset.append(&rows).expect("rows can be appended");
    }

    /// Flushes the file, which now has so many rows in each dataset.
    pub fn flush(&self, rows: &[(&Series, u64)]) {
        self.file().flush().expect("a file in memory can be flushed");
        rows.iter().for_each(|(series, rows)| self.mark("flushed", series, *rows));
    }

    /// Closes the file.
    pub fn close(&mut self) {
        self.file.take().expect("the file is open").close().expect("a file in memory closes");
    }

    /// Opens the file again, for writing under readers.
    pub fn reopen(&mut self) {
        self.open(Mode::SwmrWrite);
    }

    /// The writer dies: what it has not written is lost.
    pub fn die(&mut self) {
        let file = self.file.take().expect("the file is open");
        let log = self.storage.log();
        let image = self.storage.inner().to_vec();
        drop(file);
        drop(log);
        drop(image);
    }

    /// What was recorded.
    pub fn finish(self, name: &'static str, series: Vec<Series>) -> Workload {
        let operations = self.storage.take_log();
        // Dropping the file closes it, which is not part of what was asked for.
        let base = self.base.clone();
        drop(self);
        Workload { name, trace: Trace::new(base, operations), series }
    }
}

/// The object that a name in the root group leads to.
pub(crate) fn find(file: &NativeFile, name: &str) -> h5live_model::Result<Option<h5live_model::ObjectId>> {
    let link = file.link(file.root(), &name.into())?;
    Ok(link.and_then(|link| match link.target {
        h5live_model::LinkTarget::Hard(id) => Some(id),
        _ => None,
    }))
}
