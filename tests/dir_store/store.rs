//! A store that is a directory of plain files, to show what writing a store takes.
//!
//! A group is a directory. So is a dataset, with its description in the file `dataset` and each chunk in a file of its own
//! (`c1.0` is the chunk at [1, 0]). An attribute is a file, too (`@name`). One process uses a directory at a time.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use h5live::model::*;
use h5live_format::messages::{DatatypeMessage, FillValueMessage, FilterPipelineMessage};
use h5live_format::{LibVer, Record, Widths, decode, encode};

pub const CAPABILITIES: Capabilities = Capabilities {
    features: StoreFeatures::SHRINK,
    partial_writes: PartialWrites::Bytes { multiple_of: 1 },
    staging: SmallWritesStagedBy::Caller,
    encoding: ChunkEncodedBy::Pipeline,
    reads: ChunkReadStrategy::Direct { atomic_read_bytes: 0 },
    commit: ConsistencyScope::Chunk,
    view: ConsistencyScope::Chunk,
    durability: DurabilitySupport::Never,
    supports_live_reads: false,
    limits: StoreSizeLimits::NONE,
};

/// A session. The identity of an object is its number among the directories that were met so far.
#[derive(Debug)]
pub struct DirStore {
    session: SessionInfo,
    directories: Mutex<Vec<PathBuf>>,
    is_closed: Arc<AtomicBool>,
    is_dirty: Arc<AtomicBool>,
}

/// The chunks of a dataset.
#[derive(Debug)]
struct DirChunks {
    id: ObjectId,
    directory: PathBuf,
    is_closed: Arc<AtomicBool>,
    is_dirty: Arc<AtomicBool>,
}

fn io(error: std::io::Error) -> Error {
    let kind = if error.kind() == std::io::ErrorKind::NotFound { StoreErrorKind::NotFound } else { StoreErrorKind::Io };
    Error::store(kind, error)
}

/// A name as that of a file: bytes that are neither digits nor letters become `%` and two digits.
fn escaped(name: &Name) -> String {
    let escape = |byte: &u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02x}"),
    };
    name.as_bytes().iter().map(escape).collect()
}

fn unescaped(file: &str) -> Name {
    let mut parts = file.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (byte, rest) = part.split_at(2.min(part.len()));
        bytes.push(u8::from_str_radix(byte, 16).unwrap_or_default());
        bytes.extend(rest.as_bytes());
    }
    Name::from(&bytes[..])
}

/// Entries of a directory: their names, as far as `strip` finds them to be wanted.
fn entries(directory: &Path, strip: impl Fn(&str) -> Option<&str>) -> Result<Vec<String>> {
    let names = fs::read_dir(directory).map_err(io)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter_map(|name| strip(&name).map(str::to_owned)).collect())
}

/// Records of the format, each behind its length.
fn put(bytes: &mut Vec<u8>, record: &(impl Record + Clone)) -> Result<()> {
    let record = encode(record, Widths::default()).map_err(|error| Error::Invalid(error.to_string()))?;
    bytes.extend((record.len() as u32).to_le_bytes());
    bytes.extend(record);
    Ok(())
}

fn take<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8]> {
    let damaged = || Error::store(StoreErrorKind::Damaged, std::io::Error::other("a description is cut"));
    let (len, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(damaged)?;
    *bytes = rest;
    Ok(record)
}

fn take_record<R: Record + Default>(bytes: &mut &[u8]) -> Result<R> {
    decode(take(bytes)?, Widths::default()).map_err(|error| Error::store(StoreErrorKind::Damaged, error))
}

fn put_dims(bytes: &mut Vec<u8>, dims: &[u64]) {
    bytes.extend((8 * dims.len() as u32).to_le_bytes());
    dims.iter().for_each(|dim| bytes.extend(dim.to_le_bytes()));
}

fn take_dims(bytes: &mut &[u8]) -> Result<Vec<u64>> {
    Ok(take(bytes)?.as_chunks().0.iter().map(|dim| u64::from_le_bytes(*dim)).collect())
}

fn put_dataspace(bytes: &mut Vec<u8>, space: &Dataspace) {
    bytes.push(match space {
        Dataspace::Null => 0,
        Dataspace::Scalar => 1,
        Dataspace::Simple(_) => 2,
    });
    put_dims(bytes, space.dims());
    put_dims(bytes, space.max_dims());
}

fn take_dataspace(bytes: &mut &[u8]) -> Result<Dataspace> {
    let kind = bytes.split_off_first().copied();
    let (dims, max) = (take_dims(bytes)?, take_dims(bytes)?);
    Ok(match kind {
        Some(0) => Dataspace::Null,
        Some(1) => Dataspace::Scalar,
        _ if dims == max => Dataspace::Simple(Shape::fixed(&dims)),
        _ => Dataspace::Simple(Shape::with_max(&dims, &max).ok_or(Error::Invalid("a shape".into()))?),
    })
}

fn write_spec(directory: &Path, spec: &DatasetSpec) -> Result<()> {
    let mut bytes = Vec::new();
    put(&mut bytes, &DatatypeMessage { min_composite_version: 3, datatype: spec.datatype.clone() })?;
    put_dataspace(&mut bytes, &spec.dataspace);
    put(&mut bytes, &FillValueMessage::new(LibVer::V110, spec.fill.clone()))?;
    put(&mut bytes, &FilterPipelineMessage { version: 2, filters: spec.filters.clone() })?;
    match &spec.layout {
        Layout::Compact => bytes.push(0),
        Layout::Contiguous => bytes.push(1),
        Layout::Chunked(dims) => {
            bytes.push(2);
            put_dims(&mut bytes, dims);
        }
        _ => return Err(Error::Unsupported("this layout in a directory")),
    }
    fs::write(directory.join("dataset"), bytes).map_err(io)
}

fn read_spec(directory: &Path) -> Result<DatasetSpec> {
    let bytes = fs::read(directory.join("dataset")).map_err(|_| Error::WrongKind { expected: "dataset" })?;
    let bytes = &mut &bytes[..];
    Ok(DatasetSpec {
        datatype: take_record::<DatatypeMessage>(bytes)?.datatype,
        dataspace: take_dataspace(bytes)?,
        fill: take_record::<FillValueMessage>(bytes)?.fill,
        filters: take_record::<FilterPipelineMessage>(bytes)?.filters,
        layout: match bytes.split_off_first() {
            Some(0) => Layout::Compact,
            Some(1) => Layout::Contiguous,
            _ => Layout::Chunked(take_dims(bytes)?),
        },
        ..DatasetSpec::default()
    })
}

impl DirStore {
    /// Opens a directory, which is made if it is not there.
    pub fn open(path: &Path, mode: Mode) -> Result<Self> {
        if matches!(mode, Mode::Create | Mode::CreateNew) {
            fs::create_dir(path).map_err(io)?;
        }
        let path = path.canonicalize().map_err(io)?;
        let mut session = SessionInfo::new("dir", mode, ObjectId(0), CAPABILITIES);
        session.location = Some(Location::from(path.as_path()));
        let directories = Mutex::new(vec![path]);
        Ok(DirStore { session, directories, is_closed: Arc::default(), is_dirty: Arc::default() })
    }

    fn directory(&self, id: ObjectId) -> Result<PathBuf> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let found = usize::try_from(id.0).ok().and_then(|id| self.directories.lock().unwrap().get(id).cloned());
        found.filter(|directory| directory.is_dir()).ok_or(Error::NoObject(id))
    }

    fn group(&self, id: ObjectId) -> Result<PathBuf> {
        let directory = self.directory(id)?;
        if directory.join("dataset").exists() { Err(Error::WrongKind { expected: "group" }) } else { Ok(directory) }
    }

    fn link_at(&self, directory: PathBuf, name: Name) -> Link {
        let mut known = self.directories.lock().unwrap();
        let id = known.iter().position(|at| *at == directory).unwrap_or_else(|| {
            known.push(directory);
            known.len() - 1
        });
        Link { name, target: LinkTarget::Hard(ObjectId(id as u128)), creation_order: None }
    }
}

impl Store for DirStore {
    fn session(&self) -> &SessionInfo {
        &self.session
    }

    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        let is_dataset = self.directory(id)?.join("dataset").exists();
        Ok(if is_dataset { ObjectKind::Dataset } else { ObjectKind::Group })
    }

    fn spec(&self, id: ObjectId) -> Result<ObjectSpec> {
        match self.kind(id)? {
            ObjectKind::Dataset => Ok(read_spec(&self.directory(id)?)?.into()),
            _ => Ok(ObjectSpec::group()),
        }
    }

    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        self.directory(id).map(|_| ObjectInfo { hard_link_count: 1, ..ObjectInfo::default() })
    }

    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        let directory = self.group(group)?.join(escaped(name));
        Ok(directory.is_dir().then(|| self.link_at(directory, name.clone())))
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        let group = self.group(group)?;
        let names = entries(&group, |name| (!name.starts_with('@')).then_some(name))?;
        names.iter().all(|name| each(self.link_at(group.join(name), unescaped(name))));
        Ok(())
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
        let Ok(bytes) = fs::read(self.directory(id)?.join(format!("@{}", escaped(name)))) else { return Ok(None) };
        let bytes = &mut &bytes[..];
        Ok(Some(AttributeData {
            name: name.clone(),
            datatype: take_record::<DatatypeMessage>(bytes)?.datatype,
            dataspace: take_dataspace(bytes)?,
            value: bytes.to_vec(),
            committed_datatype: None,
            creation_order: None,
        }))
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        let names = entries(&self.directory(id)?, |name| name.strip_prefix('@'))?;
        Ok(names.iter().map(|name| unescaped(name)).collect())
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()> {
        for name in self.attribute_names(id)? {
            if self.attribute(id, &name)?.is_some_and(|attribute| !each(attribute)) {
                break;
            }
        }
        Ok(())
    }

    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn ChunkStore>> {
        let directory = self.directory(id)?;
        read_spec(&directory)?;
        let (is_closed, is_dirty) = (self.is_closed.clone(), self.is_dirty.clone());
        Ok(Arc::new(DirChunks { id, directory, is_closed, is_dirty }))
    }

    fn read_blobs(&self, _: &[&[u8]], _: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        Err(Error::Unsupported("variable-length data in a directory"))
    }

    fn referent(&self, _: ReferenceKind, _: &[u8]) -> Result<Option<Referent>> {
        Err(Error::Unsupported("references in a directory"))
    }

    fn encode_reference(&self, _: &ReferenceType, _: &Referent) -> Result<Vec<u8>> {
        Err(Error::Unsupported("references in a directory"))
    }

    fn refresh(&self, _: ObjectScope<'_>) -> Result<()> {
        self.directory(self.session.root).map(drop)
    }

    fn liveness(&self) -> Result<WriterLiveness> {
        Ok(WriterLiveness::Unknown)
    }

    fn watch(&self, _: &[ObjectId]) -> Result<Box<dyn Watch>> {
        Err(Error::Unsupported("watching a directory"))
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn close(&self) -> Result<()> {
        self.is_closed.store(true, Ordering::Release);
        Ok(())
    }

    fn writer(&self) -> Result<&dyn StoreWriter> {
        self.directory(self.session.root)?;
        if self.session.mode.writes() { Ok(self) } else { Err(Error::ReadOnly) }
    }

    fn maps(&self) -> Option<&dyn MapStore> {
        None
    }
}

impl StoreWriter for DirStore {
    fn create(&self, new: &NewObject<'_>) -> Result<ObjectId> {
        let Some((group, name)) = new.link else { return Err(Error::Unsupported("an object without a link")) };
        name.check_as_link_name()?;
        let directory = self.group(group)?.join(escaped(name));
        let spec = match &new.spec.body {
            ObjectKindSpec::Dataset(spec) => Some(spec),
            ObjectKindSpec::Group(_) => None,
            ObjectKindSpec::Datatype(_) => return Err(Error::Unsupported("a committed datatype in a directory")),
            ObjectKindSpec::Map(_) => return Err(Error::Unsupported("a map in a directory")),
        };
        spec.map(|spec| spec.check()).transpose()?;
        let is_compact = spec.is_some_and(|spec| spec.layout == Layout::Compact);
        let bytes = spec.and_then(|spec| spec.chunk_bytes_or_total());
        if new.compact_elements.is_some_and(|elements| !is_compact || bytes != Some(elements.len() as u64)) {
            return Err(Error::Invalid("only a compact dataset is made with its elements, all of them".into()));
        }
        if directory.exists() {
            return Err(Error::Exists(name.clone()));
        }
        // The link is the name of the directory: it comes last.
        let unfinished = directory.with_extension("@new");
        fs::create_dir(&unfinished).map_err(io)?;
        spec.map(|spec| write_spec(&unfinished, spec)).transpose()?;
        fs::rename(&unfinished, &directory).map_err(io)?;
        let LinkTarget::Hard(id) = self.link_at(directory, name.clone()).target else { return Err(Error::Closed) };
        if let (Some(elements), Some(spec)) = (new.compact_elements, spec) {
            self.dataset(id)?.write_whole_chunk(&ChunkCoord::origin(spec.dataspace.rank()), 0, elements)?;
        }
        self.is_dirty.store(true, Ordering::Release);
        Ok(id)
    }

    fn discard(&self, _: ObjectId) -> Result<()> {
        Err(Error::Unsupported("an object without a link"))
    }

    fn add_link(&self, _: ObjectId, name: &Name, _: &LinkTarget) -> Result<()> {
        name.check_as_link_name()?;
        Err(Error::Unsupported("a second link to an object of a directory"))
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        let directory = self.group(group)?.join(escaped(name));
        self.is_dirty.store(true, Ordering::Release);
        fs::remove_dir_all(directory).map_err(|_| Error::NotFound(name.clone()))
    }

    fn rename_link(&self, _: (ObjectId, &Name), _: (ObjectId, &Name)) -> Result<()> {
        Err(Error::Unsupported("renaming a link in a directory"))
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()> {
        attribute.check()?;
        let mut bytes = Vec::new();
        put(&mut bytes, &DatatypeMessage { min_composite_version: 3, datatype: attribute.datatype.clone() })?;
        put_dataspace(&mut bytes, &attribute.dataspace);
        bytes.extend(&attribute.value);
        self.is_dirty.store(true, Ordering::Release);
        fs::write(self.directory(id)?.join(format!("@{}", escaped(&attribute.name))), bytes).map_err(io)
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()> {
        self.is_dirty.store(true, Ordering::Release);
        let file = self.directory(id)?.join(format!("@{}", escaped(name)));
        fs::remove_file(file).map_err(|_| Error::NotFound(name.clone()))
    }

    fn set_info(&self, _: ObjectId, _: &ObjectInfoChange<'_>) -> Result<()> {
        Err(Error::Unsupported("comments and times in a directory"))
    }

    fn put_blob(&self, _: &[u8], _: u32) -> Result<Vec<u8>> {
        Err(Error::Unsupported("variable-length data in a directory"))
    }

    fn remove_blobs(&self, _: &[&[u8]]) -> Result<()> {
        Err(Error::Unsupported("variable-length data in a directory"))
    }

    fn start_swmr(&self) -> Result<()> {
        Err(Error::Unsupported("reading a directory that is written"))
    }

    fn is_dirty(&self) -> bool {
        self.is_dirty.load(Ordering::Acquire)
    }

    fn commit(&self, _: ObjectScope<'_>, publish: PublishLevel) -> Result<()> {
        if publish == PublishLevel::Durable {
            return Err(Error::Unsupported("outlasting a power failure in a directory"));
        }
        self.is_dirty.store(false, Ordering::Release);
        Ok(())
    }
}

impl DirChunks {
    fn file(&self, coord: &ChunkCoord) -> PathBuf {
        let at: Vec<String> = coord.scaled().iter().map(u64::to_string).collect();
        self.directory.join(format!("c{}", at.join(".")))
    }

    /// A chunk has its mask of filters before its bytes.
    fn write_chunk(&self, coord: &ChunkCoord, mask: u32, bytes: &[u8]) -> Result<()> {
        fs::write(self.file(coord), [&mask.to_le_bytes(), bytes].concat()).map_err(io)
    }

    fn write_elements(&self, spec: &DatasetSpec, write: &ChunkWrite<'_>) -> Result<()> {
        let whole = spec.chunk_bytes_at(write.first_coord())?;
        let is_whole = |bytes: &[u8]| !spec.filters.is_empty() || bytes.len() as u64 == whole;
        match *write {
            ChunkWrite::Whole { coord, filter_mask, bytes } if is_whole(bytes) => {
                self.write_chunk(coord, filter_mask, bytes)
            }
            ChunkWrite::ChunksAlongFirstDim { first, chunk_bytes: size, bytes } if size as u64 == whole => {
                let at = first.scaled().first().copied().unwrap_or_default();
                let mut chunks = (at..).zip(bytes.chunks(size));
                chunks.try_for_each(|(at, bytes)| self.write_chunk(&first.with_index(0, at), 0, bytes))
            }
            ChunkWrite::ByteRange { coord, byte_offset: at, bytes, .. }
                if spec.filters.is_empty() && at.checked_add(bytes.len() as u64).is_some_and(|end| end <= whole) =>
            {
                if !self.file(coord).exists() {
                    self.write_chunk(coord, 0, &spec.repeated_fill_value(whole as usize))?;
                }
                let file = File::options().write(true).open(self.file(coord)).map_err(io)?;
                file.write_all_at(bytes, 4 + at).map_err(io)
            }
            ChunkWrite::ElementBlock { .. } => Err(Error::Unsupported("writing a block of a chunk")),
            _ => Err(Error::Invalid(format!("a chunk of this dataset has {whole} bytes"))),
        }
    }
}

impl ChunkStore for DirChunks {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn spec(&self) -> Result<Arc<DatasetSpec>> {
        match self.directory.is_dir() {
            true => read_spec(&self.directory).map(Arc::new),
            false => Err(Error::NoObject(self.id)),
        }
    }

    fn locate(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        let Ok(file) = File::open(self.file(coord)) else { return Ok(None) };
        let mut mask = [0; 4];
        file.read_exact_at(&mut mask, 0).map_err(io)?;
        let size = file.metadata().map_err(io)?.len() - 4;
        Ok(Some(StoredChunk { coord: coord.clone(), file_offset: None, size, filter_mask: u32::from_le_bytes(mask) }))
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        for name in entries(&self.directory, |name| name.strip_prefix('c'))? {
            let at: Vec<u64> = name.split('.').filter_map(|at| at.parse().ok()).collect();
            if self.locate(&ChunkCoord::new(&at))?.is_some_and(|chunk| !each(chunk)) {
                break;
            }
        }
        Ok(())
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        let file = File::open(self.file(&chunk.coord)).map_err(io)?;
        file.read_exact_at(into, 4 + at).map_err(io)
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> Result<()> {
        read_block_by_runs(self, chunk, (start, count), into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> Result<()> {
        read_chunks_sequentially(self, wanted, budget, each)
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> Result<Option<u64>> {
        Ok(Some(at).filter(|at| *at < chunk.size))
    }

    fn map(&self, _: &StoredChunk, _: u64) -> Result<Option<FileBackedBytes>> {
        Ok(None)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let mut spec = read_spec(&self.directory)?;
        batch.writes.iter().try_for_each(|write| self.write_elements(&spec, write))?;
        if let Some(dims) = batch.extent {
            let (Layout::Chunked(_), Dataspace::Simple(shape)) = (&spec.layout, &mut spec.dataspace) else {
                return Err(Error::Invalid("only a chunked dataset changes its extent".into()));
            };
            if !shape.try_resize(dims) {
                return Err(Error::Invalid(format!("{dims:?} is not within the maximum")));
            }
            write_spec(&self.directory, &spec)?;
            let counts = spec.grid_or_single_chunk().map(|grid| grid.chunk_counts(dims)).unwrap_or_default();
            self.for_each_chunk(&mut |chunk| {
                let is_inside = chunk.coord.scaled().iter().zip(&counts).all(|(at, count)| at < count);
                is_inside || fs::remove_file(self.file(&chunk.coord)).is_ok()
            })?;
        }
        self.is_dirty.store(true, Ordering::Release);
        Ok(())
    }

    fn refresh(&self) -> Result<bool> {
        Ok(false)
    }
}
