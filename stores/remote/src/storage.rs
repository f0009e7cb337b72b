//! An object as a storage of bytes, which is only read.

use std::io;
use std::ops::Range;
use std::path::Path;

use h5live_cache::{BatchReadHints, Storage};
use h5live_objects::{
    Bytes, GetCondition, InFlightLimits, ObjectBytes, ObjectClient, ObjectError, ObjectErrorKind, ObjectMeta,
    RangeMergeLimits,
};

use crate::block_cache::{BlockCache, BlockLookup};
use crate::disk_cache::{ObjectCacheFolder, ObjectVersionDiskCache};
use crate::options::Remote;

/// Reads of so many bytes do not go by way of blocks.
const DIRECT_READ_BYTES: u64 = 1 << 20;
/// The most bytes of a request.
const MAX_REQUEST_BYTES: u64 = 8 << 20;
/// Bytes between two pieces of raw data that are worth reading.
const GAP_BYTES: u64 = 1 << 20;
/// Requests at a time.
const IN_FLIGHT: usize = 64;
/// Bounds of the size of a block.
const BLOCK_BYTES: (u64, u64) = (4 << 10, 16 << 20);

/// One state of an object, as bytes that are read by ranges. A read fails if the object was replaced.
#[derive(Debug)]
pub struct ObjectBackedStorage {
    client: ObjectClient,
    key: String,
    meta: ObjectMeta,
    condition: GetCondition,
    blocks: BlockCache,
    /// Blocks in a folder.
    disk: Option<ObjectVersionDiskCache>,
}

/// Why a read of ranges has ended early.
enum ReadEnd {
    /// Whoever takes the bytes wants no more.
    Stopped,
    Failed(ObjectError),
}

impl From<ObjectError> for ReadEnd {
    fn from(error: ObjectError) -> Self {
        ReadEnd::Failed(error)
    }
}

/// What names the server in the environment: objects of one name on two of them are two objects.
const SERVER_VARIABLES: [&str; 5] =
    ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ENDPOINT"];

/// Bytes of a block.
fn block_bytes(options: &Remote) -> u64 {
    options.block_size.clamp(BLOCK_BYTES.0, BLOCK_BYTES.1)
}

/// The folder of blocks of an object with this name; `None` if nobody wants one.
fn disk_folder(name: &str, options: &Remote) -> Result<Option<ObjectCacheFolder>, ObjectError> {
    if options.disk_cache.is_empty() {
        return Ok(None);
    }
    let named = SERVER_VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
    let servers: Vec<String> = std::iter::once(options.objects.endpoint.clone()).chain(named).collect();
    let name = format!("{}\n{name}", servers.join("\n"));
    let folder = ObjectCacheFolder::open(Path::new(&options.disk_cache), &name, options.disk_cache_size);
    let failed = |error: io::Error| ObjectError::new(ObjectErrorKind::Other, &options.disk_cache, error.to_string());
    folder.map(Some).map_err(failed)
}

impl ObjectBackedStorage {
    /// Opens an object: reads its first bytes and, at the same time, its last ones. If blocks of its present state are in
    /// the folder of [`Remote::disk_cache`], it only asks for the state.
    ///
    /// # Errors
    /// Those of the client; [`ObjectErrorKind::Other`] if the folder cannot be made.
    pub fn open(client: ObjectClient, key: &str, options: &Remote) -> Result<Self, ObjectError> {
        let name = client.object_display_name(key);
        ObjectBackedStorage::open_with_cache_name(client, key, &name, options)
    }

    /// The same for an object that has this name in the folder of [`Remote::disk_cache`], on the server of the options.
    ///
    /// # Errors
    /// As [`ObjectBackedStorage::open`].
    pub fn open_with_cache_name(
        client: ObjectClient,
        key: &str,
        cache_name: &str,
        options: &Remote,
    ) -> Result<Self, ObjectError> {
        let block_bytes = block_bytes(options);
        let folder = disk_folder(cache_name, options)?;
        let Some(folder) = folder.filter(ObjectCacheFolder::may_have_blocks) else {
            return ObjectBackedStorage::open_ends(client, key, disk_folder(cache_name, options)?, options);
        };
        let meta = client.head(key)?;
        match folder.into_disk_cache(&meta, block_bytes).filter(|disk| disk.has_block_file(0)) {
            Some(disk) => Ok(ObjectBackedStorage {
                condition: GetCondition::Matching(meta.tag.clone()),
                client,
                key: key.to_owned(),
                meta,
                blocks: BlockCache::new(block_bytes, options.cache_size),
                disk: Some(disk),
            }),
            None => ObjectBackedStorage::open_ends(client, key, disk_folder(cache_name, options)?, options),
        }
    }

    fn open_ends(
        client: ObjectClient,
        key: &str,
        folder: Option<ObjectCacheFolder>,
        options: &Remote,
    ) -> Result<Self, ObjectError> {
        let block_bytes = block_bytes(options);
        let blocks = BlockCache::new(block_bytes, options.cache_size);
        let first_bytes = options.first_read.clamp(block_bytes, MAX_REQUEST_BYTES).next_multiple_of(block_bytes);
        // So that at least one block, and the rest of the object, lie in it.
        let (first, last) = match client.get_start_and_try_suffix(key, first_bytes, 2 * block_bytes) {
            Err(error) if error.kind == ObjectErrorKind::Other => {
                // A server may refuse a range of an object without bytes.
                let meta = client.head(key)?;
                if meta.size > 0 {
                    return Err(error);
                }
                (ObjectBytes { bytes: Bytes::new(), meta }, None)
            }
            found => found?,
        };
        let storage = ObjectBackedStorage {
            condition: GetCondition::Matching(first.meta.tag.clone()),
            client,
            key: key.to_owned(),
            disk: folder.and_then(|folder| folder.into_disk_cache(&first.meta, block_bytes)),
            meta: first.meta,
            blocks,
        };
        storage.keep_blocks(0, &first.bytes);
        if let Some(last) = last.filter(|last| storage.is_same_state(&last.meta)) {
            storage.keep_blocks(storage.meta.size - last.bytes.len() as u64, &last.bytes);
        }
        Ok(storage)
    }

    /// The client by which it is read.
    pub fn client(&self) -> &ObjectClient {
        &self.client
    }

    /// What is known of the object.
    pub fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    /// Keeps the blocks that lie in these bytes, which begin at `at`.
    fn keep_blocks(&self, at: u64, bytes: &Bytes) {
        let size = self.blocks.block_bytes();
        let end = at + bytes.len() as u64;
        self.disk.iter().for_each(|disk| disk.store_whole_blocks(at, bytes));
        for block in at.div_ceil(size)..self.block_count() {
            let (from, to) = (block * size, ((block + 1) * size).min(self.meta.size));
            if to > end {
                break;
            }
            self.blocks.insert(block, Bytes::copy_from_slice(&bytes[(from - at) as usize..(to - at) as usize]));
        }
    }

    fn block_count(&self) -> u64 {
        self.meta.size.div_ceil(self.blocks.block_bytes())
    }

    /// Whether what was read belongs to the object as it was opened. Servers that give no tags, or that ignore
    /// conditions, are found out by the size and the time.
    fn is_same_state(&self, meta: &ObjectMeta) -> bool {
        match self.meta.tag.lacks_etag() {
            true => (meta.size, meta.modified) == (self.meta.size, self.meta.modified),
            false => meta.size == self.meta.size && meta.tag == self.meta.tag,
        }
    }

    fn check_state(&self, meta: &ObjectMeta) -> Result<(), ObjectError> {
        match self.is_same_state(meta) {
            true => Ok(()),
            false => Err(ObjectError::new(ObjectErrorKind::Changed, self.client.object_display_name(&self.key), "")),
        }
    }

    fn limits(&self, bytes: u64) -> InFlightLimits {
        InFlightLimits { max_requests: IN_FLIGHT, max_bytes: bytes }
    }

    /// Reads ranges that lie in the object: from the folder of blocks, or by one request each.
    fn fetch<E: From<ObjectError>>(
        &self,
        ranges: Vec<Range<u64>>,
        budget: u64,
        each: &mut dyn FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(disk) = &self.disk else {
            return self.request(ranges, budget, each);
        };
        let (mut numbers, mut missing) = (Vec::new(), Vec::new());
        for (number, range) in ranges.iter().enumerate() {
            match disk.read_range(range.start, range.end) {
                Some(bytes) => each(number, bytes.into())?,
                None => {
                    let (start, end) = disk.block_aligned_range(range.start, range.end);
                    numbers.push(number);
                    missing.push(start..end);
                }
            }
        }
        let starts: Vec<u64> = missing.iter().map(|range| range.start).collect();
        self.request(missing, budget, &mut |place, bytes| {
            disk.store_whole_blocks(starts[place], &bytes);
            let number = numbers[place];
            let (start, end) = (ranges[number].start - starts[place], ranges[number].end - starts[place]);
            each(number, bytes.slice(start as usize..end as usize))
        })
    }

    /// Reads ranges from the object store.
    fn request<E: From<ObjectError>>(
        &self,
        ranges: Vec<Range<u64>>,
        budget: u64,
        each: &mut dyn FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let limits = self.limits(budget);
        self.client.get_ranges_unmerged(&self.key, ranges, &self.condition, limits, &mut |number, read| {
            self.check_state(&read.meta)?;
            each(number, read.bytes)
        })
    }

    /// The blocks from `first` to `last`. They are kept, but none of them is looked for again: others may drive it out.
    fn load_blocks(&self, first: u64, last: u64) -> Result<Vec<(u64, Bytes)>, ObjectError> {
        let BlockLookup { mut found, claimed: missing } = self.blocks.look_up_or_claim(first, last, self.block_count());
        if missing.is_empty() {
            return Ok(found);
        }
        let size = self.blocks.block_bytes();
        let runs = adjacent_runs(&missing, (MAX_REQUEST_BYTES / size).max(1));
        let range = |run: &Range<u64>| run.start * size..(run.end * size).min(self.meta.size);
        let ranges: Vec<_> = runs.iter().map(range).collect();
        let fetched = self.fetch::<ObjectError>(ranges, u64::MAX, &mut |number, bytes| {
            for (block, at) in runs[number].clone().zip((0..).step_by(size as usize)) {
                let end = (at + size as usize).min(bytes.len());
                // A copy: a part would keep all of it.
                let bytes = Bytes::copy_from_slice(bytes.get(at..end).unwrap_or_default());
                if block <= last {
                    found.push((block, bytes.clone()));
                }
                self.blocks.insert(block, bytes);
            }
            Ok(())
        });
        self.blocks.release_claims(&missing);
        fetched.map(|()| found)
    }

    /// Fills `into` by requests of their own.
    fn read_directly(&self, into: &mut [u8], at: u64) -> Result<(), ObjectError> {
        let end = at + into.len() as u64;
        let starts = (at..end).step_by(MAX_REQUEST_BYTES as usize);
        let ranges = starts.map(|start| start..(start + MAX_REQUEST_BYTES).min(end)).collect();
        let budget = MAX_REQUEST_BYTES * IN_FLIGHT as u64;
        self.fetch(ranges, budget, &mut |number, bytes| {
            let start = number * MAX_REQUEST_BYTES as usize;
            into[start..start + bytes.len()].copy_from_slice(&bytes);
            Ok(())
        })
    }

    /// A range without what lies behind the end.
    fn clamp(&self, range: &Range<u64>) -> Range<u64> {
        let end = range.end.min(self.meta.size);
        range.start.min(end)..end
    }

    fn fetch_ranges(
        &self,
        ranges: &[Range<u64>],
        budget: u64,
        each: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) -> Result<(), ReadEnd> {
        let mut give = |number: usize, bytes: &[u8]| match each(number, bytes) {
            true => Ok(()),
            false => Err(ReadEnd::Stopped),
        };
        let (mut numbers, mut small) = (Vec::new(), Vec::new());
        for (number, range) in ranges.iter().map(|range| self.clamp(range)).enumerate() {
            let len = range.end - range.start;
            if len == 0 {
                give(number, &[])?;
            } else if let Some(known) = self.blocks.peek_range(range.start, range.end) {
                give(number, &known)?;
            } else if len > MAX_REQUEST_BYTES {
                let mut bytes = vec![0; len as usize];
                self.read_directly(&mut bytes, range.start)?;
                give(number, &bytes)?;
            } else {
                numbers.push(number);
                small.push(range);
            }
        }
        let plan = RangeMergeLimits { max_gap_bytes: GAP_BYTES, max_bytes: MAX_REQUEST_BYTES };
        let merged = h5live_objects::merge_ranges(&small, &plan);
        let requests = merged.iter().map(|request| request.range.clone()).collect();
        self.fetch(requests, budget, &mut |request, bytes| {
            let merged = &merged[request];
            merged.range_indices.iter().try_for_each(|part| {
                let (start, end) = (small[*part].start - merged.range.start, small[*part].end - merged.range.start);
                give(numbers[*part], &bytes[start as usize..end as usize])
            })
        })
    }
}

/// Numbers in ascending order as runs without gaps, of at most `most` each.
fn adjacent_runs(numbers: &[u64], most: u64) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == *number && run.end - run.start < most => run.end += 1,
            _ => runs.push(*number..*number + 1),
        }
    }
    runs
}

impl Storage for ObjectBackedStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let Range { start, end } = self.clamp(&(at..at.saturating_add(into.len() as u64)));
        let len = (end - start) as usize;
        if len == 0 {
            return Ok(0);
        }
        let into = &mut into[..len];
        if len as u64 >= DIRECT_READ_BYTES {
            match self.blocks.peek_range(start, end) {
                Some(known) => into.copy_from_slice(&known),
                None => self.read_directly(into, start)?,
            }
            return Ok(len);
        }
        let size = self.blocks.block_bytes();
        let (first, last) = (start / size, (end - 1) / size);
        for (block, bytes) in self.load_blocks(first, last)? {
            let begin = block * size;
            let (from, to) = (start.max(begin), end.min(begin + size));
            into[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&bytes[(from - begin) as usize..(to - begin) as usize]);
        }
        Ok(len)
    }

    fn batch_read_hints(&self) -> Option<BatchReadHints> {
        Some(BatchReadHints { preferred_reads_in_flight: IN_FLIGHT, max_gap_bytes: GAP_BYTES })
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        budget: usize,
        each: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) -> io::Result<()> {
        match self.fetch_ranges(ranges, budget as u64, each) {
            Ok(()) | Err(ReadEnd::Stopped) => Ok(()),
            Err(ReadEnd::Failed(error)) => Err(error.into()),
        }
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.meta.size)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
