//! A store that is written here and read through a server, for the suite that every store runs.

use std::sync::Arc;

use h5live::File;
use h5live::model::conformance::StoreFixture;
use h5live::model::{
    AttributeData, ChunkBatch, ChunkCoord, ChunkReadRequest, ChunkSink, ChunkStore, DatasetSpec, FileBackedBytes, Link,
    MapStore, Name, ObjectId, ObjectInfo, ObjectKind, ObjectScope, ObjectSpec, PublishLevel, ReferenceKind,
    ReferenceType, Referent, ReferentPart, Result, SessionInfo, Stats, Store, StoreWriter, StoredChunk, Watch,
    WriterLiveness,
};

use crate::client::Served;

/// Makes files in a served folder.
pub struct ServedLab {
    served: Served,
    scheme: &'static str,
    made: std::sync::atomic::AtomicU64,
}

/// A session that writes a file, and one that reads it through the server.
#[derive(Debug, Clone)]
pub struct Paired {
    writer: Option<File>,
    reader: File,
    /// The file as it is here: the server's clients read no maps.
    maps: Option<File>,
}

impl ServedLab {
    /// With stores of this scheme.
    pub fn new(scheme: &'static str) -> Self {
        ServedLab { served: Served::new(), scheme, made: Default::default() }
    }

    fn name(&self) -> String {
        format!("{}.h5", self.made.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn local(&self) -> String {
        format!("{}{}", self.scheme, self.served.file(&self.name()).display())
    }

    fn reading(&self) -> File {
        let at = format!("h5live+http://{}/{}", self.served.address(), self.name());
        File::options().swmr_read().open(at).unwrap()
    }

    fn paired(&self, writer: File) -> Paired {
        writer.store().writer().unwrap().start_swmr().unwrap();
        Paired { reader: self.reading(), writer: Some(writer), maps: None }
    }
}

impl StoreFixture for ServedLab {
    type Store = Paired;

    fn create(&self) -> Paired {
        self.made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.paired(File::options().create().open(self.local()).unwrap())
    }

    fn reopen(&self, closed: Paired) -> Paired {
        closed.close().unwrap();
        drop(closed);
        self.paired(File::options().write().open(self.local()).unwrap())
    }

    fn open_reader(&self, writer: &Paired) -> Option<Paired> {
        // Others read it already, so nothing is published by letting them.
        writer.read();
        let maps = File::options().swmr_read().open(self.local()).unwrap();
        Some(Paired { writer: None, reader: self.reading(), maps: Some(maps) })
    }
}

impl Paired {
    /// What changes the store, or would.
    fn written(&self) -> &dyn Store {
        self.writer.as_ref().unwrap_or(&self.reader).store()
    }

    /// The reading session, which sees all that was written here.
    fn read(&self) -> &dyn Store {
        if let Some(writer) = &self.writer {
            if let Ok(changes) = writer.store().writer()
                && changes.is_dirty()
            {
                changes.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            }
            self.reader.store().refresh(ObjectScope::All).unwrap();
        }
        self.reader.store()
    }
}

impl Store for Paired {
    fn session(&self) -> &SessionInfo {
        self.written().session()
    }

    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        self.read().kind(id)
    }

    fn spec(&self, id: ObjectId) -> Result<ObjectSpec> {
        self.read().spec(id)
    }

    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        self.read().info(id)
    }

    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        self.read().link(group, name)
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        self.read().for_each_link(group, each)
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
        self.read().attribute(id, name)
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        self.read().attribute_names(id)
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()> {
        self.read().for_each_attribute(id, each)
    }

    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn ChunkStore>> {
        let written = self.written().dataset(id)?;
        let read = self.read().dataset(id)?;
        Ok(Arc::new(PairedChunks { pair: self.clone(), written, read }))
    }

    fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        self.read().read_blobs(elements, each)
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        self.read().referent(kind, element)
    }

    fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        let store = if to.part == ReferentPart::Whole { self.read() } else { self.written() };
        store.encode_reference(form, to)
    }

    fn refresh(&self, scope: ObjectScope<'_>) -> Result<()> {
        if let Some(maps) = &self.maps {
            maps.store().refresh(scope)?;
        }
        self.read().refresh(scope)
    }

    fn liveness(&self) -> Result<WriterLiveness> {
        self.written().liveness()
    }

    fn watch(&self, objects: &[ObjectId]) -> Result<Box<dyn Watch>> {
        let is_map = |store: &dyn Store| objects.iter().any(|id| matches!(store.kind(*id), Ok(ObjectKind::Map)));
        match &self.maps {
            Some(maps) if is_map(maps.store()) => maps.store().watch(objects),
            _ => self.read().watch(objects),
        }
    }

    fn stats(&self) -> Stats {
        self.written().stats()
    }

    fn close(&self) -> Result<()> {
        self.written().close()
    }

    fn writer(&self) -> Result<&dyn StoreWriter> {
        self.written().writer()
    }

    fn maps(&self) -> Option<&dyn MapStore> {
        self.writer.as_ref().or(self.maps.as_ref())?.store().maps()
    }
}

#[derive(Debug)]
struct PairedChunks {
    pair: Paired,
    written: Arc<dyn ChunkStore>,
    read: Arc<dyn ChunkStore>,
}

impl PairedChunks {
    fn read(&self) -> &dyn ChunkStore {
        self.pair.read();
        &*self.read
    }
}

impl ChunkStore for PairedChunks {
    fn id(&self) -> ObjectId {
        self.read.id()
    }

    fn spec(&self) -> Result<Arc<DatasetSpec>> {
        self.read().spec()
    }

    fn locate(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        self.read().locate(coord)
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        self.read().for_each_chunk(each)
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        self.read().read(chunk, at, into)
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> Result<()> {
        self.read().read_block(chunk, start, count, into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> Result<()> {
        self.read().read_many(wanted, budget, each)
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> Result<Option<u64>> {
        self.read().next_data(chunk, at)
    }

    fn map(&self, chunk: &StoredChunk, len: u64) -> Result<Option<FileBackedBytes>> {
        self.read().map(chunk, len)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        self.written.write(batch)
    }

    fn refresh(&self) -> Result<bool> {
        match self.pair.writer {
            Some(_) => self.read().refresh(),
            None => self.read.refresh(),
        }
    }
}
