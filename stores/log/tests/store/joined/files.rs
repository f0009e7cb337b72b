//! Files with a log that writers join, opened by their paths.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use h5live_log::local_multi_writer_files::LocalMultiWriterFiles;
use h5live_log::multi_writer_files::{AppendLock, MainFileLease, MultiWriterFiles};
use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_model::{
    AllocationLimit, ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, Connector, ConnectorRegistry,
    DatasetSpec, Dataspace, Datatype, Layout, LinkTarget, Mode, Name, NewObject, NoFilters, ObjectSpec, OpenError,
    OpenRequest, Result, Shape, Sign, Store, UNLIMITED,
};
use h5live_native::{Native, NativeConnector};

/// How long writers wait for each other.
const PATIENCE: Duration = Duration::from_secs(30);

/// The files of the main file at a path, which are opened by this connector.
pub fn files_of(main: &Path, connector: impl Connector) -> Arc<LocalMultiWriterFiles> {
    files_with_patience(main, connector, PATIENCE)
}

/// The same for a writer that waits so long for others.
pub fn files_with_patience(main: &Path, connector: impl Connector, patience: Duration) -> Arc<LocalMultiWriterFiles> {
    let request = OpenRequest {
        mode: Mode::Read,
        root: &ObjectSpec::group(),
        options: &Native::default(),
        max_allocation: AllocationLimit::new(1 << 20),
        filter_engine: Arc::new(NoFilters),
        registry: &ConnectorRegistry::new(NativeConnector),
    };
    Arc::new(LocalMultiWriterFiles::new(Arc::new(connector), main.to_owned(), patience, &request))
}

/// What is done instead of opening a subfile, of which the number, the mode and whether it stays live are given; `None`: it is
/// opened, later than what was done.
type OpenStep = dyn Fn(u32, Mode, bool) -> Option<Arc<dyn Store>> + Send + Sync;

/// The files of a main file, of which a test opens the subfiles, or does something before they are opened.
pub struct SteppedFiles {
    pub files: Arc<LocalMultiWriterFiles>,
    pub step: Box<OpenStep>,
}

impl std::fmt::Debug for SteppedFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.files.fmt(f)
    }
}

impl MultiWriterFiles for SteppedFiles {
    fn lease(&self) -> std::result::Result<Box<dyn MainFileLease>, OpenError> {
        self.files.lease()
    }

    fn open_main(&self, mode: Mode) -> std::result::Result<Arc<dyn Store>, OpenError> {
        self.files.open_main(mode)
    }

    fn open_subfile(
        &self,
        number: u32,
        mode: Mode,
        stays_live: bool,
    ) -> std::result::Result<Arc<dyn Store>, OpenError> {
        let opened = (self.step)(number, mode, stays_live);
        opened.map_or_else(|| self.files.open_subfile(number, mode, stays_live), Ok)
    }

    fn release_presence(&self) {
        self.files.release_presence();
    }

    fn take_next_batch_order(
        &self,
        own: u32,
        last: u64,
        knows_all: bool,
    ) -> std::result::Result<Option<u64>, OpenError> {
        self.files.take_next_batch_order(own, last, knows_all)
    }

    fn set_last_batch_order(&self, own: u32, last: u64) -> std::result::Result<(), OpenError> {
        self.files.set_last_batch_order(own, last)
    }

    fn last_batch_orders(&self) -> Vec<Option<u64>> {
        self.files.last_batch_orders()
    }

    fn lock_appends(&self) -> std::result::Result<Box<dyn AppendLock>, OpenError> {
        self.files.lock_appends()
    }
}

/// How writers in small pieces join.
pub fn request() -> LogOpenRequest {
    let options = Log { join: true, staging: 300, min_log_size: 1 << 10, max_log_size: 1 << 12, ..Log::default() };
    LogOpenRequest { max_allocation: AllocationLimit::new(1 << 20), ..LogOpenRequest::new(options) }
}

/// A writer that joins, or why it cannot.
pub fn try_join(main: &Path, creates: bool) -> std::result::Result<LogStore, OpenError> {
    LogStore::join_as_writer(files_of(main, NativeConnector), creates, request())
}

/// A writer that joins.
pub fn join(main: &Path, creates: bool) -> LogStore {
    try_join(main, creates).unwrap()
}

/// A reader, or why the log cannot be read.
pub fn try_read(main: &Path, mode: Mode) -> std::result::Result<LogStore, OpenError> {
    let files = files_of(main, NativeConnector);
    Ok(LogStore::open_or_create(
        files.open_main(mode)?,
        Some(files),
        LogOpenRequest { options: Log::default(), ..request() },
    )?)
}

/// A reader.
pub fn read(main: &Path, mode: Mode) -> LogStore {
    try_read(main, mode).unwrap()
}

/// Makes a dataset of 16-bit integers that can grow, in chunks of four elements.
pub fn create(store: &LogStore, name: &str, extent: u64) -> Arc<dyn ChunkStore> {
    let spec = DatasetSpec {
        datatype: Datatype::integer(2, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[extent], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![4]),
        ..DatasetSpec::default()
    };
    let name = Name::from(name);
    let id = store.writer().unwrap().create(&NewObject::linked(store.session().root, &name, &spec.into())).unwrap();
    store.dataset(id).unwrap()
}

/// Opens a dataset of the root group.
pub fn dataset(store: &LogStore, name: &str) -> Result<Arc<dyn ChunkStore>> {
    let link = store.link(store.session().root, &Name::from(name))?.unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    store.dataset(id)
}

/// Writes an element; nothing is published.
pub fn put(data: &dyn ChunkStore, at: u64, value: u16) {
    let coord = ChunkCoord::new(&[at / 4]);
    let writes =
        [ChunkWrite::ElementBlock { coord: &coord, start: &[at % 4], count: &[1], bytes: &value.to_le_bytes() }];
    data.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() }).unwrap();
}

/// The element at a place.
pub fn element(data: &dyn ChunkStore, at: u64) -> Result<u16> {
    let mut bytes = [0; 8];
    if let Some(chunk) = data.locate(&ChunkCoord::new(&[at / 4]))? {
        data.read(&chunk, 0, &mut bytes)?;
    }
    let at = 2 * (at % 4) as usize;
    Ok(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}
