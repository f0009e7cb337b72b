//! The tables of an import: what an archive has beside contents (`docs/tar.md`).

use h5live::archive::NameIndex;
use h5live::archive::layout::{
    ARCHIVE_TABLE, ArchiveRow, DIGEST_ALGORITHM_ATTRIBUTE, ENTRY_TABLE, EntryRow, HEADERS_AND_PADDING,
    IMPORT_STATE_ATTRIBUTE, INDEXED_ENTRY_COUNT_ATTRIBUTE, LAYOUT_ATTRIBUTE, NAME_INDEX, NO_SAMPLE,
    PATH_AND_LINK_TARGET, SAMPLE_DIGEST, SPARSE_SEGMENT_TABLE, TABLE_GROUP, TABLE_VERSION, VERSION_ATTRIBUTE,
};
use h5live::{Dataset, File, H5Type};

use crate::column_appender::ColumnAppender;
use crate::digest::DigestAlgorithm;
use crate::entry::TarEntry;
use crate::error::{Error, Result, UnsuitableFileReason};
use crate::scanner::NonContentSink;

/// Elements of chunks.
const HEADER_CHUNK: u64 = 256 << 10;
const PATH_CHUNK: u64 = 256 << 10;
const ROW_CHUNK: u64 = 4096;
const DIGEST_CHUNK: u64 = 512;
const ARCHIVE_CHUNK: u64 = 16;

/// The level of deflate of the tables.
const LEVEL: u32 = 6;

/// The most bytes of paths for which a table of names is made.
const MAX_INDEXED_BYTES: u64 = 1 << 30;

/// The tables of a file that is being written.
#[derive(Debug)]
pub struct ImportTablesWriter {
    file: File,
    header: ColumnAppender<u8>,
    entry: ColumnAppender<EntryRow>,
    path: ColumnAppender<u8>,
    archive: ColumnAppender<ArchiveRow>,
    sparse: ColumnAppender<u64>,
    digest: ColumnAppender<u8>,
    /// How contents are digested.
    pub algorithm: DigestAlgorithm,
    samples: u64,
    /// Bytes of the contents of all samples.
    content_bytes: u64,
    /// Where the records of the next entry begin.
    entry_header: u64,
}

/// Where an archive begins in the tables.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArchiveStartInTables {
    /// Its first entry.
    pub first_entry: u64,
    /// Where the records of that entry begin.
    pub header_start: u64,
}

/// How far the import of an archive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportState {
    /// None is under way.
    Done = 0,
    /// Entries are added.
    AddingEntries = 1,
    /// All entries are there; the row of the archive may be.
    AddingArchiveRow = 2,
}

impl ImportState {
    /// The state of a file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn of(file: &File) -> Result<Self> {
        Ok(match file.group(TABLE_GROUP)?.attribute(IMPORT_STATE_ATTRIBUTE)?.read_scalar::<u8>()? {
            0 => ImportState::Done,
            2 => ImportState::AddingArchiveRow,
            _ => ImportState::AddingEntries,
        })
    }
}

/// The tables of a file as they were read.
#[derive(Debug)]
pub struct TableRows<'a> {
    /// The file.
    pub file: &'a File,
    /// All entries.
    pub rows: &'a [EntryRow],
    /// The segments of all sparse files: entry, offset, length.
    pub segments: &'a [[u64; 3]],
    /// The archives.
    pub archives: &'a [ArchiveRow],
}

/// The rows of an import that was interrupted.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommittedCounts {
    /// Entries in all archives.
    pub entries: u64,
    /// Samples of them.
    pub samples: u64,
    /// Bytes of the contents of all samples.
    pub content_bytes: u64,
    /// Bytes of the names of all samples, each with a NUL.
    pub sample_name_bytes: u64,
}

impl CommittedCounts {
    /// What a table of entries has.
    fn of(rows: &Dataset) -> Result<Self> {
        let mut committed = CommittedCounts::default();
        for_each_row(rows, |row| {
            committed.entries += 1;
            if row.sample != NO_SAMPLE {
                committed.samples += 1;
                committed.content_bytes = committed.content_bytes.saturating_add(row.size);
                committed.sample_name_bytes =
                    committed.sample_name_bytes.saturating_add(u64::from(row.path_length) + 1);
            }
            Ok(())
        })?;
        Ok(committed)
    }
}

impl ImportTablesWriter {
    /// Makes the tables of a new file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn create(file: &File, layout: &str, algorithm: DigestAlgorithm) -> Result<Self> {
        let group = match file.group(TABLE_GROUP) {
            Err(error) if error.is_not_found_in_file() => file.create_group(TABLE_GROUP)?,
            group => group?,
        };
        group.set_attribute(VERSION_ATTRIBUTE, &TABLE_VERSION)?;
        group.set_attribute(LAYOUT_ATTRIBUTE, layout)?;
        group.set_attribute(IMPORT_STATE_ATTRIBUTE, &(ImportState::AddingEntries as u8))?;
        let rows = |datatype: h5live::Datatype, row: &[u64], chunk: u64| {
            let chunk_shape = [&[chunk], row].concat();
            file.root().new_dataset_with_type(datatype).unlimited_rows(row).chunk_shape(&chunk_shape)
        };
        rows(u8::datatype(), &[], HEADER_CHUNK).deflate(LEVEL).create(HEADERS_AND_PADDING)?;
        rows(EntryRow::datatype(), &[], ROW_CHUNK).shuffle().deflate(LEVEL).create(ENTRY_TABLE)?;
        rows(u8::datatype(), &[], PATH_CHUNK).deflate(LEVEL).create(PATH_AND_LINK_TARGET)?;
        rows(ArchiveRow::datatype(), &[], ARCHIVE_CHUNK).create(ARCHIVE_TABLE)?;
        rows(u64::datatype(), &[3], ROW_CHUNK).shuffle().deflate(LEVEL).create(SPARSE_SEGMENT_TABLE)?;
        let digest = rows(u8::datatype(), &[algorithm.digest_len() as u64], DIGEST_CHUNK).create(SAMPLE_DIGEST)?;
        digest.set_attribute(DIGEST_ALGORITHM_ATTRIBUTE, algorithm.name())?;
        ImportTablesWriter::open(file, algorithm, CommittedCounts::default())
    }

    fn open(file: &File, algorithm: DigestAlgorithm, committed: CommittedCounts) -> Result<Self> {
        let column = |path: &str| ColumnAppender::new(file.dataset(path)?);
        let header = column(HEADERS_AND_PADDING)?;
        Ok(ImportTablesWriter {
            entry_header: header.len(),
            header,
            entry: ColumnAppender::new(file.dataset(ENTRY_TABLE)?)?,
            path: column(PATH_AND_LINK_TARGET)?,
            archive: ColumnAppender::new(file.dataset(ARCHIVE_TABLE)?)?,
            sparse: ColumnAppender::new(file.dataset(SPARSE_SEGMENT_TABLE)?)?,
            digest: column(SAMPLE_DIGEST)?,
            file: file.clone(),
            algorithm,
            samples: committed.samples,
            content_bytes: committed.content_bytes,
        })
    }

    /// Opens the tables of a file to add to them: to an import that was interrupted, or another archive.
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] if there are none.
    pub fn open_existing(file: &File) -> Result<(Self, CommittedCounts)> {
        let algorithm = read_digest_algorithm(file)?
            .ok_or_else(|| Error::unsuitable_file(file, UnsuitableFileReason::NoDigests))?;
        let committed = CommittedCounts::of(&file.dataset(ENTRY_TABLE)?)?;
        Ok((ImportTablesWriter::open(file, algorithm, committed)?, committed))
    }

    /// Drops the rows of all entries but the first ones. [`ImportTablesWriter::truncate_tables_to_entry_rows`] drops the rest.
    /// Returns what is left.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn truncate_entry_rows(&mut self, entries: u64) -> Result<CommittedCounts> {
        self.entry.drop_pending_and_truncate(entries)?;
        self.entry.commit()?;
        let committed = CommittedCounts::of(self.entry.dataset())?;
        (self.samples, self.content_bytes) = (committed.samples, committed.content_bytes);
        Ok(committed)
    }

    /// Drops what other tables than that of the entries have beyond the entries that are there. `header_end`: where the
    /// records of the last entry end.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn truncate_tables_to_entry_rows(&mut self, header_end: u64) -> Result<()> {
        let rows = self.entry.len();
        let last = match rows.checked_sub(1) {
            Some(last) => self.entry.dataset().read_slice::<EntryRow>(last..rows)?.first().copied(),
            None => None,
        };
        let path_end =
            last.map_or(0, |row| row.path_offset + u64::from(row.path_length) + u64::from(row.link_length) + 2);
        self.path.drop_pending_and_truncate(path_end)?;
        self.header.drop_pending_and_truncate(header_end)?;
        self.entry_header = header_end;
        let segments: Vec<u64> = self.sparse.dataset().read()?;
        let (segments, _) = segments.as_chunks::<3>();
        let kept = segments.iter().filter(|[entry, ..]| *entry < rows).count() as u64;
        self.sparse.drop_pending_and_truncate(kept)?;
        self.digest.drop_pending_and_truncate(self.samples)
    }

    /// How many entries there are.
    pub fn entry_count(&self) -> u64 {
        self.entry.len()
    }

    /// How many samples there are.
    pub fn sample_count(&self) -> u64 {
        self.samples
    }

    /// Bytes of the contents of all samples.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Adds an entry, whose records came before. With contents, it has a digest.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn push_entry(&mut self, entry: &TarEntry, digest: Option<&[u8]>) -> Result<()> {
        let sample = if digest.is_some() { self.samples } else { NO_SAMPLE };
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        for segment in entry.segments.iter().flatten() {
            // Three elements a row; the column counts elements, the dataset rows.
            self.sparse.push(&[self.entry.len(), segment.offset, segment.length])?;
        }
        self.entry.push(&[EntryRow {
            header_offset: self.entry_header,
            header_length: self.header.len() - self.entry_header,
            size: entry.size,
            stored_size: entry.stored_size,
            sample,
            path_offset: self.path.len(),
            path_length: length(&entry.path),
            link_length: length(&entry.link_target),
            mode: entry.mode,
            mtime_nanos: entry.mtime_nanos,
            mtime: entry.mtime,
            uid: entry.uid,
            gid: entry.gid,
            kind: entry.kind,
        }])?;
        self.path.push(&entry.path)?;
        self.path.push(&[0])?;
        self.path.push(&entry.link_target)?;
        self.path.push(&[0])?;
        if let Some(digest) = digest {
            self.digest.push(digest)?;
            self.samples += 1;
            self.content_bytes += entry.size;
        }
        self.entry_header = self.header.len();
        Ok(())
    }

    /// Adds everything that the tables of another file have, behind what these have. Its digests are of the same kind.
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] if offsets are too large; [`Error::File`].
    pub fn append_tables(&mut self, from: &TableRows<'_>) -> Result<()> {
        let file = from.file;
        let (entries, header, path) = (self.entry.len(), self.header.len(), self.path.len());
        for_each_part(&file.dataset(HEADERS_AND_PADDING)?, |bytes| self.header.push(bytes))?;
        for_each_part(&file.dataset(PATH_AND_LINK_TARGET)?, |bytes| self.path.push(bytes))?;
        let moved = |at: u64, by: u64| {
            at.checked_add(by).ok_or_else(|| {
                Error::unsuitable_file(file, UnsuitableFileReason::InconsistentTables("an offset is too large"))
            })
        };
        for row in from.rows {
            let is_sample = row.sample != NO_SAMPLE;
            self.entry.push(&[EntryRow {
                header_offset: moved(row.header_offset, header)?,
                path_offset: moved(row.path_offset, path)?,
                sample: if is_sample { self.samples } else { NO_SAMPLE },
                ..*row
            }])?;
            if is_sample {
                self.samples += 1;
                self.content_bytes = moved(row.size, self.content_bytes)?;
            }
        }
        for [entry, offset, length] in from.segments {
            self.sparse.push(&[moved(*entry, entries)?, *offset, *length])?;
        }
        let digests = file.dataset(SAMPLE_DIGEST)?;
        self.digest.push(&read_byte_rows(&digests, self.algorithm.digest_len())?)?;
        for row in from.archives {
            self.archive.push(&[ArchiveRow {
                first_entry: moved(row.first_entry, entries)?,
                header_start: moved(row.header_start, header)?,
                header_end: moved(row.header_end, header)?,
                ..row.clone()
            }])?;
        }
        self.entry_header = self.header.len();
        Ok(())
    }

    /// Adds an archive that was imported to its end.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn push_archive(&mut self, row: ArchiveRow) -> Result<()> {
        self.archive.push(&[row])?;
        self.entry_header = self.header.len();
        Ok(())
    }

    /// Where the next archive begins.
    pub fn next_archive_start(&self) -> ArchiveStartInTables {
        ArchiveStartInTables { first_entry: self.entry.len(), header_start: self.header.len() }
    }

    /// Publishes everything. The rows of entries come last: they lead to the rest.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn commit(&mut self) -> Result<()> {
        self.header.commit()?;
        self.path.commit()?;
        self.sparse.commit()?;
        self.digest.commit()?;
        self.entry.commit()?;
        self.archive.commit()
    }

    /// Says how far an import is, to everybody.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write_state_and_flush(&self, state: ImportState) -> Result<()> {
        self.file.group(TABLE_GROUP)?.set_attribute(IMPORT_STATE_ATTRIBUTE, &(state as u8))?;
        Ok(self.file.flush()?)
    }

    /// Takes back the row of the archive whose import was interrupted after its last entry, if it is there, so that the
    /// import goes on before it.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn undo_adding_archive_row(&mut self) -> Result<()> {
        let rows: Vec<ArchiveRow> = self.archive.dataset().read()?;
        // The records end with those of this archive, if its row is there.
        if rows.last().is_some_and(|row| row.header_end == self.header.len()) {
            self.archive.drop_pending_and_truncate(rows.len() as u64 - 1)?;
            self.file.flush()?;
        }
        self.write_state_and_flush(ImportState::AddingEntries)
    }

    /// Makes the table of names, and says that no import is under way.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write_name_index_and_finish(&mut self) -> Result<()> {
        self.commit()?;
        write_name_index(&self.file)?;
        self.write_state_and_flush(ImportState::Done)
    }
}

impl NonContentSink for ImportTablesWriter {
    fn push_non_content(&mut self, bytes: &[u8]) -> Result<()> {
        self.header.push(bytes)
    }
}

/// How the contents of a file were digested; `None` if there are no digests.
///
/// # Errors
/// [`Error::UnsuitableFile`] if the file has no tables, or the algorithm is unknown.
pub fn read_digest_algorithm(file: &File) -> Result<Option<DigestAlgorithm>> {
    let digest = match file.dataset(SAMPLE_DIGEST) {
        Err(error) if error.is_not_found_in_file() => {
            return match file.group(TABLE_GROUP) {
                Ok(_) => Ok(None),
                Err(error) if error.is_not_found_in_file() => {
                    Err(Error::unsuitable_file(file, UnsuitableFileReason::NoTables))
                }
                Err(error) => Err(error.into()),
            };
        }
        found => found?,
    };
    let name: String = digest.attribute(DIGEST_ALGORITHM_ATTRIBUTE)?.read_scalar()?;
    let algorithm =
        name.parse().map_err(|_| Error::unsuitable_file(file, UnsuitableFileReason::UnknownDigestAlgorithm(name)))?;
    Ok(Some(algorithm))
}

/// Rows of a table that are read at once.
const ROWS_AT_ONCE: u64 = 1 << 14;

/// Calls `each` for all rows of the table of entries.
///
/// # Errors
/// [`Error::File`], and those of `each`.
pub fn for_each_row(rows: &Dataset, mut each: impl FnMut(&EntryRow) -> Result<()>) -> Result<()> {
    let count = rows.shape()?.first().copied().unwrap_or(0);
    let mut at = 0;
    while at < count {
        let end = count.min(at + ROWS_AT_ONCE);
        rows.read_slice::<EntryRow>(at..end)?.iter().try_for_each(&mut each)?;
        at = end;
    }
    Ok(())
}

/// Makes the table of names anew. Without memory for it, or with more paths than it is made for, there is none; readers then
/// make one for themselves.
fn write_name_index(file: &File) -> Result<()> {
    let root = file.root();
    if root.object(NAME_INDEX).is_ok() {
        root.unlink(NAME_INDEX)?;
    }
    let paths = file.dataset(PATH_AND_LINK_TARGET)?;
    let rows = file.dataset(ENTRY_TABLE)?;
    if paths.shape()?.first().is_some_and(|bytes| *bytes > MAX_INDEXED_BYTES) {
        return Ok(());
    }
    let mut places = Vec::new();
    for_each_row(&rows, |row| {
        places.push((row.path_offset, row.path_length));
        Ok(())
    })?;
    let bytes = read_bytes(&paths)?;
    let path = |entry: u64| {
        let (start, length) = places.get(entry as usize).copied().unwrap_or_default();
        bytes.get(start as usize..start as usize + length as usize).unwrap_or_default()
    };
    if let Some(index) = NameIndex::build(places.len() as u64, path) {
        let slots = index.slots();
        let dataset =
            file.new_dataset::<u64>().shape(&[slots.len() as u64]).contiguous().create_with_data(NAME_INDEX, slots)?;
        dataset.set_attribute(INDEXED_ENTRY_COUNT_ATTRIBUTE, &(places.len() as u64))?;
    }
    Ok(())
}

/// Bytes that are read at once.
const BYTES_AT_ONCE: u64 = 16 << 20;

/// All bytes of a dataset.
///
/// # Errors
/// [`Error::File`].
pub fn read_bytes(dataset: &Dataset) -> Result<Vec<u8>> {
    read_byte_rows(dataset, 1)
}

/// Calls `each` with all bytes of a dataset, in parts.
fn for_each_part(dataset: &Dataset, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let len = dataset.shape()?.first().copied().unwrap_or(0);
    let mut at = 0;
    while at < len {
        let end = len.min(at + BYTES_AT_ONCE);
        each(&dataset.read_slice::<u8>(at..end)?)?;
        at = end;
    }
    Ok(())
}

/// All rows of a dataset of bytes, each of so many.
///
/// # Errors
/// [`Error::File`].
pub fn read_byte_rows(dataset: &Dataset, row_bytes: usize) -> Result<Vec<u8>> {
    let len = dataset.shape()?.first().copied().unwrap_or(0);
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < len {
        let end = len.min(at + BYTES_AT_ONCE / row_bytes.max(1) as u64);
        bytes.extend_from_slice(&dataset.read_slice::<u8>(at..end)?);
        at = end;
    }
    Ok(bytes)
}
