//! The index table and the skip list: what the log has of each dataset, written when the file is closed.
//!
//! The table has the head of every entry, sorted by dataset, each with the place of its data. The skip list has, for the
//! number of each dataset, where its entries begin in the table (bytes), and how many there are. Source: "Format for the
//! index table and skip list" of the design; `docs/log-format.md` says what is added.

use h5live_model::{
    AllocationLimit, ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype,
    Layout, Name, NewObject, ObjectId, Shape, Sign, Store, UNLIMITED,
};
use std::ops::Range;
use std::sync::Arc;

use crate::anchor::{i64_list_attribute, i64_scalar_attribute, read_i64_attribute, read_i64_list_attribute};
use crate::entry::{self, EntryError, EntryHead};
use crate::error::{LogError, Result};
use crate::log_datasets::hard_target;
use crate::position::LogPosition;

/// Bytes behind the head of an entry: log dataset, offset in it, order of the batch, checksum, zeros.
const PLACE_BYTES: usize = 32;
/// The name of the table.
const TABLE: &str = "index_table";
/// The name of the skip list.
const SKIP_LIST: &str = "skip_list";
/// The attribute of the table that says up to which position the log is in it (bytes), and the highest order of a batch.
const COVERS: &str = "covers";
/// Bytes of a chunk of either, at least and at most.
const MIN_CHUNK_BYTES: u64 = 1 << 10;
const MAX_CHUNK_BYTES: u64 = 256 << 10;
/// Bytes of the table that are read at once.
const PIECE_BYTES: u64 = 256 << 10;
/// The attribute of the table with the CRC-32C of what the others say: `covers`, and the skip list.
const CHECKSUM: &str = "checksum";
/// What errors call the table.
const OF_TABLE: &str = "the index table";
/// Bytes of the skip list for a dataset.
const SKIP_BYTES: u64 = 16;

/// How many bytes the skip list of so many datasets has. Saturates.
pub fn skip_list_bytes(dataset_count: u64) -> u64 {
    dataset_count.saturating_mul(SKIP_BYTES)
}

/// The order of entries whose batch has not ended: behind all others.
pub const UNENDED_BATCH_ORDER: u64 = u64::MAX;

/// An entry of the log, as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexTableRow {
    /// Everything but its data.
    pub head: EntryHead,
    /// The order of its batch.
    pub batch_order: u64,
    /// Where its data begins.
    pub data_at: LogPosition,
}

/// Adds an entry, the data of which begins at a place in a log dataset.
fn push_entry(table: &mut Vec<u8>, row: &IndexTableRow, rank: usize, (dataset, offset): (u64, u64)) {
    let begin = table.len();
    row.head.encode(rank, table);
    table.extend(dataset.to_le_bytes());
    table.extend(offset.to_le_bytes());
    table.extend(row.batch_order.to_le_bytes());
    let crc = crc32c::crc32c(&table[begin..]);
    table.extend(crc.to_le_bytes());
    table.extend([0; 4]);
}

/// Takes the first entry off a table: the rank of its dataset and its row. `position` is that of a place in a log
/// dataset.
fn split_entry(
    table: &mut &[u8],
    position: impl Fn((u64, u64)) -> Option<LogPosition>,
) -> std::result::Result<(usize, IndexTableRow), EntryError> {
    let head_len = entry::decode_frame(table)?.head_len;
    let (entry, rest) = table.split_at_checked(head_len + PLACE_BYTES).ok_or(EntryError::Truncated)?;
    let number = |field: usize| first_number(&entry[head_len + 8 * field..]);
    if crc32c::crc32c(&entry[..head_len + 24]) != number(3) as u32 && !cfg!(fuzzing) {
        return Err(EntryError::HeadChecksum);
    }
    let (head, rank) = entry::decode_head_and_rank(entry)?;
    let at = position((number(0), number(1))).ok_or(EntryError::InvalidField("its place"))?;
    if number(2) == UNENDED_BATCH_ORDER {
        return Err(EntryError::InvalidField("its order"));
    }
    *table = rest;
    Ok((rank, IndexTableRow { head, batch_order: number(2), data_at: at }))
}

/// The table of a file.
#[derive(Debug)]
pub struct SavedIndexTable {
    chunks: Arc<dyn ChunkStore>,
    /// For each dataset, by its number, where its entries begin in the table (bytes), and how many there are.
    skips: Vec<(u64, u64)>,
    /// Where the table ends (bytes).
    end: u64,
    /// Up to where the log is in the table (bytes).
    pub indexed_bytes: u64,
    /// The highest order of a batch in the table.
    pub last_batch_order: u64,
    /// Most bytes of the table that are read at once.
    limit: AllocationLimit,
}

impl SavedIndexTable {
    /// The table of a file; `None` if it has none. At most `limit` bytes of it, or of the skip list, are read at once.
    ///
    /// # Errors
    /// If it is damaged, or the skip list is over the limit; errors of the store beneath.
    pub fn open(store: &dyn Store, log_group: ObjectId, limit: AllocationLimit) -> Result<Option<Self>> {
        let find = |name: &str| Ok::<_, h5live_model::Error>(hard_target(store.link(log_group, &Name::from(name))?));
        let (Some(table), Some(list)) = (find(TABLE)?, find(SKIP_LIST)?) else { return Ok(None) };
        let Some(covers) = read_i64_list_attribute(store, table, COVERS, OF_TABLE)? else { return Ok(None) };
        let [covers, last_order] = covers[..] else {
            return Err(LogError::InvalidAttribute { attribute: COVERS, of: OF_TABLE }.into());
        };
        let (covers, last_order) = (covers.cast_unsigned(), last_order.cast_unsigned());
        let (chunks, list) = (store.dataset(table)?, store.dataset(list)?);
        let len = |chunks: &dyn ChunkStore| {
            Ok::<_, h5live_model::Error>(chunks.spec()?.dataspace.element_count().unwrap_or(0))
        };
        let end = len(&*chunks)?;
        let list = read_bytes(&*list, 0..len(&*list)?.saturating_mul(8), limit)?;
        let bad_field = |field| LogError::DamagedIndexTable { source: EntryError::InvalidField(field) };
        // Tables of earlier versions have none.
        let checksum = read_i64_attribute(store, table, CHECKSUM, OF_TABLE)?;
        let is_damaged = |crc: i64| crc != i64::from(checksum_of(covers, last_order, &list));
        if checksum.is_some_and(is_damaged) && !cfg!(fuzzing) {
            return Err(bad_field("its checksum").into());
        }
        let skips = list.as_chunks::<{ SKIP_BYTES as usize }>().0.iter();
        let skips: Vec<_> = skips.map(|skip| (first_number(skip), first_number(&skip[8..]))).collect();
        let begins = || skips.iter().map(|(begin, _)| *begin).chain([end]);
        if begins().next() != Some(0) || !begins().is_sorted() {
            return Err(bad_field("the skip list").into());
        }
        // The head of each entry is in the log, too.
        let most = covers.saturating_add(covers / entry::FRAME_BYTES as u64 * PLACE_BYTES as u64);
        if end > most {
            return Err(bad_field("more than the log").into());
        }
        Ok(Some(SavedIndexTable { chunks, skips, end, indexed_bytes: covers, last_batch_order: last_order, limit }))
    }

    /// How many datasets have a place in the skip list.
    pub fn dataset_count(&self) -> u64 {
        self.skips.len() as u64
    }

    /// Calls `each` with the entries of a dataset: the rank and the row of each. `position` is that of a place in a log
    /// dataset.
    ///
    /// # Errors
    /// If the table is damaged, or has entries of another dataset there; errors of the store beneath and those of `each`.
    pub fn for_each_rank_and_row(
        &self,
        dataset: u64,
        position: impl Fn((u64, u64)) -> Option<LogPosition>,
        each: &mut dyn FnMut(usize, IndexTableRow) -> Result<()>,
    ) -> Result<()> {
        let at = |number: u64| usize::try_from(number).ok().and_then(|number| self.skips.get(number));
        let Some((begin, count)) = at(dataset).copied() else { return Ok(()) };
        let end = at(dataset.saturating_add(1)).map_or(self.end, |next| next.0);
        let (mut window, mut read_to, mut last, mut found) = (Vec::new(), begin, None::<u64>, 0u64);
        loop {
            let mut table = &window[..];
            let damage = loop {
                match split_entry(&mut table, &position) {
                    Ok((_, row)) if row.head.dataset != dataset => break EntryError::InvalidField("its dataset"),
                    // Entries are in the order of the log. So a file that stores one chunk as many of the table has none
                    // of them twice, and what is read is no more than the log has.
                    Ok((_, row)) if last.is_some_and(|last| row.data_at.to_bits() <= last) => {
                        break EntryError::InvalidField("its place");
                    }
                    // What lies behind is read from the log.
                    Ok((_, row)) if row.data_at.offset() >= self.indexed_bytes => {
                        break EntryError::InvalidField("its place");
                    }
                    Ok((rank, row)) => {
                        (last, found) = (Some(row.data_at.to_bits()), found + 1);
                        each(rank, row)?;
                    }
                    Err(damage) => break damage,
                }
            };
            let rest = table.len();
            match damage {
                EntryError::Truncated if read_to < end => {}
                EntryError::Truncated if rest == 0 && found == count => return Ok(()),
                EntryError::Truncated if rest == 0 => {
                    return Err(LogError::DamagedIndexTable {
                        source: EntryError::InvalidField("the number of entries"),
                    }
                    .into());
                }
                source => return Err(LogError::DamagedIndexTable { source }.into()),
            }
            // An entry may begin in one piece and end in the next.
            window.drain(..window.len() - rest);
            let piece = read_to..end.min(read_to.saturating_add(PIECE_BYTES));
            self.limit.check(rest as u64 + PIECE_BYTES)?;
            read_to = piece.end;
            window.extend(read_bytes(&*self.chunks, piece, self.limit)?);
        }
    }
}

/// The CRC-32C of what a table says about all of it.
fn checksum_of(covers: u64, last_order: u64, skip_list: &[u8]) -> u32 {
    let numbers = [covers.to_le_bytes(), last_order.to_le_bytes()].concat();
    crc32c::crc32c_append(crc32c::crc32c(&numbers), skip_list)
}

fn first_number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// What an index table is made of.
pub struct IndexTableEncoder<'a> {
    /// Up to where the log is in it (bytes).
    pub indexed_bytes: u64,
    /// The highest order of a batch in it.
    pub last_batch_order: u64,
    /// The place in a log dataset of a position.
    pub log_dataset_and_offset_of: &'a dyn Fn(LogPosition) -> Option<(u64, u64)>,
}

impl IndexTableEncoder<'_> {
    /// Adds the entry of a dataset of so many dimensions to the bytes of the table.
    ///
    /// # Errors
    /// If its data has no place in the log.
    pub fn encode_row(&self, table: &mut Vec<u8>, rank: usize, row: &IndexTableRow) -> Result<()> {
        let place = (self.log_dataset_and_offset_of)(row.data_at)
            .ok_or(LogError::DamagedIndexTable { source: EntryError::InvalidField("its place") })?;
        push_entry(table, row, rank, place);
        Ok(())
    }
}

/// Writes a table that has the entries of datasets, in the order of their numbers, and replaces the one that was there.
/// `push_dataset` adds the entries of the dataset with a number to the bytes of the table, and returns how many they are.
///
/// # Errors
/// Those of `push_dataset`; errors of the store beneath.
pub fn save_index_table(
    store: &dyn Store,
    log_group: ObjectId,
    new: &IndexTableEncoder<'_>,
    dataset_count: u64,
    mut push_dataset: impl FnMut(u64, &mut Vec<u8>) -> Result<u64>,
) -> Result<()> {
    let (mut table, mut skips) = (Vec::new(), Vec::new());
    for number in 0..dataset_count {
        skips.extend((table.len() as u64).to_le_bytes());
        skips.extend(push_dataset(number, &mut table)?.to_le_bytes());
    }
    let writer = store.writer()?;
    for name in [TABLE, SKIP_LIST] {
        if store.link(log_group, &Name::from(name))?.is_some() {
            writer.remove_link(log_group, &Name::from(name))?;
        }
    }
    write_bytes(store, log_group, SKIP_LIST, 8, &skips)?;
    let id = write_bytes(store, log_group, TABLE, 1, &table)?;
    let checksum = checksum_of(new.indexed_bytes, new.last_batch_order, &skips);
    writer.set_attribute(id, &i64_scalar_attribute(CHECKSUM, checksum.into()))?;
    // A table without it is none.
    writer.set_attribute(
        id,
        &i64_list_attribute(COVERS, &[new.indexed_bytes, new.last_batch_order].map(u64::cast_signed)),
    )
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
fn read_bytes(chunks: &dyn ChunkStore, range: Range<u64>, limit: AllocationLimit) -> Result<Vec<u8>> {
    let spec = chunks.spec()?;
    let has = spec.dataspace.element_count().and_then(|n| n.checked_mul(spec.datatype.size().into())).unwrap_or(0);
    let damaged = || LogError::DamagedIndexTable { source: EntryError::Truncated };
    let chunk_bytes = spec.chunk_bytes_or_total().filter(|bytes| *bytes > 0).ok_or_else(damaged)?;
    if range.end > has || spec.dataspace.rank() != 1 || !spec.filters.is_empty() {
        return Err(damaged().into());
    }
    // A file may store one chunk as many.
    limit.check(range.end.saturating_sub(range.start))?;
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
    use crate::entry::{DimVec, EntryChange};

    fn row(dataset: u64, start: u64) -> IndexTableRow {
        let change = EntryChange::Block { start: DimVec::from_slice(&[start]), count: DimVec::from_slice(&[4]) };
        let head = EntryHead { batch_number: 1, file: 0, dataset, change, filter_id: 0, data_len: 16, data_crc: 5 };
        IndexTableRow { head, batch_order: start + 1, data_at: LogPosition::new(3, 100 * start) }
    }

    fn read(mut table: &[u8]) -> std::result::Result<Vec<(usize, IndexTableRow)>, EntryError> {
        let mut rows = Vec::new();
        while !table.is_empty() {
            rows.push(split_entry(&mut table, |(log, offset)| Some(LogPosition::new(log as u32, offset)))?);
        }
        Ok(rows)
    }

    #[test]
    fn entries_come_back_in_order_and_damage_is_found() {
        let mut table = Vec::new();
        for start in [7, 3, 9] {
            push_entry(&mut table, &row(2, start), 1, (3, 100 * start));
        }
        assert_eq!(read(&table).unwrap(), [7, 3, 9].map(|start| (1, row(2, start))));
        for at in 0..table.len() {
            // The last four bytes of an entry are filler.
            let is_filler = at % (table.len() / 3) >= table.len() / 3 - 4;
            table[at] ^= 1;
            assert_eq!(read(&table).is_err(), !is_filler, "{at}");
            table[at] ^= 1;
        }
    }
}
