//! The index table and the skip list: what the log has of each dataset, written when the file is closed.
//!
//! The table has the head of every entry, sorted by dataset, each with the place of its data. The skip list has, for the
//! number of each dataset, where its entries begin in the table (bytes), and how many there are. Source: "Format for the
//! index table and skip list" of the design; `docs/log-format.md` says what is added.

use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout, Name,
    NewObject, ObjectId, Shape, Sign, Store, UNLIMITED,
};
use std::ops::Range;
use std::sync::Arc;

use crate::anchor::{integer, read_integer};
use crate::entry::{self, EntryError, EntryHead};
use crate::error::{LogError, Result};
use crate::log_datasets::hard_target;

/// Bytes behind the head of an entry: log dataset, offset in it, checksum, zeros.
const PLACE_BYTES: usize = 24;
/// The name of the table.
const TABLE: &str = "index_table";
/// The name of the skip list.
const SKIP_LIST: &str = "skip_list";
/// The attribute of the table that says up to which position the log is in it (bytes).
const COVERS: &str = "covers";
/// Bytes of a chunk of either, at least and at most.
const MIN_CHUNK_BYTES: u64 = 1 << 10;
const MAX_CHUNK_BYTES: u64 = 256 << 10;
/// Bytes of the skip list for a dataset.
const SKIP_BYTES: u64 = 16;

/// Adds an entry to a table in memory, where places are positions in the log.
pub fn push_entry(table: &mut Vec<u8>, head: &EntryHead, rank: usize, at: u64) {
    let begin = table.len();
    head.encode(rank, table);
    put_place(table, begin, (0, at));
}

fn put_place(table: &mut Vec<u8>, begin: usize, (dataset, offset): (u64, u64)) {
    table.extend(dataset.to_le_bytes());
    table.extend(offset.to_le_bytes());
    let crc = crc32c::crc32c(&table[begin..]);
    table.extend(crc.to_le_bytes());
    table.extend([0; 4]);
}

/// An entry of a table: its bytes, its head, and its place.
struct TableEntry<'a> {
    head: &'a [u8],
    place: (u64, u64),
    rest: &'a [u8],
}

fn split_entry(table: &[u8]) -> std::result::Result<TableEntry<'_>, EntryError> {
    let head_len = entry::decode_frame(table)?.head_len;
    let (head, rest) = table.split_at_checked(head_len).ok_or(EntryError::Truncated)?;
    let (place, rest) = rest.split_at_checked(PLACE_BYTES).ok_or(EntryError::Truncated)?;
    let number = |at: usize| u64::from_le_bytes(*place[at..].first_chunk().unwrap_or(&[0; 8]));
    if crc32c::crc32c(&table[..head_len + 16]) != number(16) as u32 {
        return Err(EntryError::HeadChecksum);
    }
    Ok(TableEntry { head, place: (number(0), number(8)), rest })
}

/// Calls `each` with the head, the rank and the position of the data of each entry of a table in memory.
///
/// # Errors
/// [`EntryError`] if the table is damaged; the errors of `each`.
pub fn for_each_entry(mut table: &[u8], mut each: impl FnMut(EntryHead, usize, u64) -> Result<()>) -> Result<()> {
    let damaged = |source| LogError::Table { source };
    while !table.is_empty() {
        let TableEntry { head, place, rest } = split_entry(table).map_err(damaged)?;
        let (head, rank) = entry::decode_head(head).map_err(damaged)?;
        each(head, rank, place.1)?;
        table = rest;
    }
    Ok(())
}

/// The same entries with other places.
fn with_places(mut table: &[u8], change: impl Fn((u64, u64)) -> Option<(u64, u64)>) -> Result<(Vec<u8>, u64)> {
    let damaged = |source| LogError::Table { source };
    let (mut changed, mut count) = (Vec::with_capacity(table.len()), 0);
    while !table.is_empty() {
        let TableEntry { head, place, rest } = split_entry(table).map_err(damaged)?;
        let place = change(place).ok_or_else(|| damaged(EntryError::Field("its place")))?;
        let begin = changed.len();
        changed.extend_from_slice(head);
        put_place(&mut changed, begin, place);
        table = rest;
        count += 1;
    }
    Ok((changed, count))
}

/// The table of a file.
#[derive(Debug)]
pub struct SavedTable {
    chunks: Arc<dyn ChunkStore>,
    /// Where the entries of each dataset begin, by its number, and at last where the table ends (bytes).
    begins: Vec<u64>,
    /// The position up to which the log is in the table.
    pub covers: u64,
}

impl SavedTable {
    /// The table of a file; `None` if it has none.
    ///
    /// # Errors
    /// If it is damaged; errors of the store beneath.
    pub fn open(store: &dyn Store, group: ObjectId) -> Result<Option<Self>> {
        let find = |name: &str| Ok::<_, h5live_model::Error>(hard_target(store.link(group, &Name::from(name))?));
        let (Some(table), Some(list)) = (find(TABLE)?, find(SKIP_LIST)?) else { return Ok(None) };
        let Some(covers) = read_integer(store, table, COVERS, "the index table")? else { return Ok(None) };
        let (chunks, list) = (store.dataset(table)?, store.dataset(list)?);
        let len =
            |chunks: &dyn ChunkStore| Ok::<_, h5live_model::Error>(chunks.spec()?.dataspace.elements().unwrap_or(0));
        let end = len(&*chunks)?;
        let skips = read_bytes(&*list, 0..len(&*list)?.saturating_mul(8))?;
        let mut begins: Vec<u64> =
            skips.as_chunks::<{ SKIP_BYTES as usize }>().0.iter().map(|skip| first_number(skip)).collect();
        begins.push(end);
        if begins.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(LogError::Table { source: EntryError::Field("the skip list") }.into());
        }
        Ok(Some(SavedTable { chunks, begins, covers: covers.cast_unsigned() }))
    }

    /// The entries of a dataset, with positions in the log. `position` is that of a place in a log dataset.
    ///
    /// # Errors
    /// If the table is damaged; errors of the store beneath.
    pub fn entries_of(&self, number: u64, position: impl Fn((u64, u64)) -> Option<u64>) -> Result<Vec<u8>> {
        let slice = usize::try_from(number).ok().and_then(|number| self.begins.get(number..=number + 1));
        let Some(&[begin, end]) = slice else { return Ok(Vec::new()) };
        let bytes = read_bytes(&*self.chunks, begin..end)?;
        Ok(with_places(&bytes, |place| Some((0, position(place)?)))?.0)
    }
}

fn first_number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Writes a table that has the entries of all datasets, in the order of their numbers, and replaces the one that was
/// there. `place` is the place in a log dataset of a position.
///
/// # Errors
/// Errors of the store beneath.
pub fn save<'a>(
    store: &dyn Store,
    group: ObjectId,
    covers: u64,
    datasets: impl Iterator<Item = Result<std::borrow::Cow<'a, [u8]>>>,
    place: impl Fn(u64) -> Option<(u64, u64)>,
) -> Result<()> {
    let (mut table, mut skips) = (Vec::new(), Vec::new());
    for entries in datasets {
        let (entries, count) = with_places(&entries?, |(_, at)| place(at))?;
        skips.extend((table.len() as u64).to_le_bytes());
        skips.extend(u64::to_le_bytes(count));
        table.extend(entries);
    }
    let writer = store.writer()?;
    for name in [TABLE, SKIP_LIST] {
        if store.link(group, &Name::from(name))?.is_some() {
            writer.remove_link(group, &Name::from(name))?;
        }
    }
    write_bytes(store, group, SKIP_LIST, 8, &skips)?;
    let id = write_bytes(store, group, TABLE, 1, &table)?;
    writer.set_attribute(id, &integer(COVERS, covers.cast_signed()))
}

/// Makes a dataset of unsigned integers of `size` bytes that can grow.
fn write_bytes(store: &dyn Store, group: ObjectId, name: &str, size: u32, bytes: &[u8]) -> Result<ObjectId> {
    let chunk_bytes = (bytes.len() as u64).next_power_of_two().clamp(MIN_CHUNK_BYTES, MAX_CHUNK_BYTES);
    let (len, side) = (bytes.len() as u64 / u64::from(size), chunk_bytes / u64::from(size));
    let spec = DatasetSpec {
        datatype: Datatype::integer(size, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[len], &[UNLIMITED]).unwrap_or_default()),
        layout: Layout::Chunked(vec![side]),
        ..DatasetSpec::default()
    };
    let id = store.writer()?.create(&NewObject::linked(group, &Name::from(name), &spec.into()))?;
    let chunks = store.dataset(id)?;
    for (number, bytes) in bytes.chunks(chunk_bytes as usize).enumerate() {
        let mut chunk = bytes.to_vec();
        chunk.resize(chunk_bytes as usize, 0);
        let coord = ChunkCoord::new(&[number as u64]);
        let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &chunk }];
        chunks.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() })?;
    }
    Ok(id)
}

/// Bytes of a dataset of one dimension.
fn read_bytes(chunks: &dyn ChunkStore, range: Range<u64>) -> Result<Vec<u8>> {
    let spec = chunks.spec()?;
    let has = spec.dataspace.elements().and_then(|n| n.checked_mul(spec.datatype.size().into())).unwrap_or(0);
    let damaged = || LogError::Table { source: EntryError::Truncated };
    let chunk_bytes = spec.chunk_bytes().filter(|bytes| *bytes > 0).ok_or_else(damaged)?;
    if range.end > has || spec.dataspace.rank() != 1 || !spec.filters.is_empty() {
        return Err(damaged().into());
    }
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let (number, from) = (at / chunk_bytes, at % chunk_bytes);
        let len = (chunk_bytes - from).min(range.end - at);
        let chunk = chunks.locate(&ChunkCoord::new(&[number]))?.ok_or_else(damaged)?;
        let begin = found.len();
        // The file has so many bytes: a chunk is stored.
        found.resize(begin + len as usize, 0);
        chunks.read(&chunk, from, &mut found[begin..])?;
        at += len;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Dims, EntryChange};

    fn head(dataset: u64, start: u64) -> EntryHead {
        let change = EntryChange::Block { start: Dims::from_slice(&[start]), count: Dims::from_slice(&[4]) };
        EntryHead { batch: 1, writer: 0, dataset, change, filter: 0, data_len: 16, data_crc: 5 }
    }

    #[test]
    fn entries_come_back_in_order_and_damage_is_found() {
        let mut table = Vec::new();
        for start in [7, 3, 9] {
            push_entry(&mut table, &head(2, start), 1, 100 * start);
        }
        let mut found = Vec::new();
        for_each_entry(&table, |head, rank, at| {
            found.push((head, rank, at));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [7, 3, 9].map(|start| (head(2, start), 1, 100 * start)));
        for at in 0..table.len() {
            // The last four bytes of an entry are filler.
            let is_filler = at % (table.len() / 3) >= table.len() / 3 - 4;
            table[at] ^= 1;
            assert_eq!(for_each_entry(&table, |_, _, _| Ok(())).is_err(), !is_filler, "{at}");
            table[at] ^= 1;
        }
    }
}
