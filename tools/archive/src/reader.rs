//! A file of an import, to be read: entries with their paths, records and contents.

use std::sync::OnceLock;

use h5live::archive::Archive;
use h5live::archive::layout::{
    ARCHIVE_TABLE, ArchiveRow, ENTRY_TABLE, EntryRow, HEADERS_AND_PADDING, NO_SAMPLE, PATH_AND_LINK_TARGET,
    SAMPLE_CONTENTS, SAMPLE_NAME, SAMPLE_NAME_OFFSET, SAMPLE_OFFSET, SPARSE_SEGMENT_TABLE,
};
use h5live::{Dataset, File};

use crate::digest::ContentHasher;
use crate::digests::SampleDigests;
use crate::error::{Error, Result, UnsuitableFileReason};
use crate::import::has_unfinished_import;
use crate::shown_name::escaped;
use crate::sparse::SparseSegment;
use crate::tables::{TableRows, for_each_row, read_bytes};

/// Bytes of contents that are in memory at once.
pub const CONTENT_PIECE_BYTES: u64 = 4 << 20;

/// An imported archive, or several in one file.
#[derive(Debug)]
pub struct ImportedTar {
    file: File,
    archive: Archive,
    archives: Vec<ArchiveRow>,
    rows: Vec<EntryRow>,
    paths: Vec<u8>,
    /// Entry, offset, length: in the order of entries.
    segments: Vec<[u64; 3]>,
    /// The records; `None` in a file of the original shredder.
    header: Option<Dataset>,
    /// Whether contents that are read are compared with their digests, and these, once they were needed.
    verifies: bool,
    digests: OnceLock<Option<SampleDigests>>,
}

impl ImportedTar {
    /// Reads the tables of a file. A file of the original shredder has none: its entries are its samples.
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] if there are none, or they contradict each other.
    pub fn open(file: &File) -> Result<Self> {
        match crate::import::import_layout_kind(file) {
            Err(Error::UnsuitableFile { problem: UnsuitableFileReason::NoTables, .. })
                if is_of_original_shredder(file)? =>
            {
                return ImportedTar::open_original(file);
            }
            found => found?,
        };
        let archive = Archive::open(file)?;
        let mut rows = Vec::new();
        for_each_row(&file.dataset(ENTRY_TABLE)?, |row| {
            rows.push(*row);
            Ok(())
        })?;
        let segments: Vec<u64> = file.dataset(SPARSE_SEGMENT_TABLE)?.read()?;
        let segments = segments.as_chunks::<3>().0.to_vec();
        if !segments.is_sorted_by_key(|[entry, ..]| *entry) {
            return Err(Error::unsuitable_file(
                file,
                UnsuitableFileReason::InconsistentTables("the segments of sparse files are not in order"),
            ));
        }
        Ok(ImportedTar {
            paths: read_bytes(&file.dataset(PATH_AND_LINK_TARGET)?)?,
            archives: file.dataset(ARCHIVE_TABLE)?.read()?,
            header: Some(file.dataset(HEADERS_AND_PADDING)?),
            file: file.clone(),
            archive,
            rows,
            segments,
            verifies: true,
            digests: OnceLock::new(),
        })
    }

    fn open_original(file: &File) -> Result<Self> {
        let archive = Archive::open(file)?;
        let (mut rows, mut paths) = (Vec::new(), Vec::new());
        for sample in 0..archive.len() {
            let (name, size) = (archive.name(sample)?, archive.sample_len(sample)?);
            rows.push(EntryRow {
                header_offset: 0,
                header_length: 0,
                size,
                stored_size: size,
                sample,
                path_offset: paths.len() as u64,
                path_length: u32::try_from(name.len()).unwrap_or(u32::MAX),
                link_length: 0,
                mode: 0,
                mtime_nanos: 0,
                mtime: 0,
                uid: 0,
                gid: 0,
                kind: b'0',
            });
            paths.extend_from_slice(&name);
        }
        let (archives, segments) = Default::default();
        let file = file.clone();
        Ok(ImportedTar {
            file,
            archive,
            archives,
            rows,
            paths,
            segments,
            header: None,
            verifies: false,
            digests: OnceLock::new(),
        })
    }

    /// Whether nothing but names and contents is known, as in files of the original shredder.
    pub fn has_only_names_and_contents(&self) -> bool {
        self.header.is_none()
    }

    /// Contents are taken as they are read, and not compared with their digests.
    pub fn without_verification(self) -> Self {
        ImportedTar { verifies: false, ..self }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The samples.
    pub fn sample_archive(&self) -> &Archive {
        &self.archive
    }

    /// The archives.
    pub fn archives(&self) -> &[ArchiveRow] {
        &self.archives
    }

    /// Whether an import is under way, or was interrupted.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn has_unfinished_import(&self) -> Result<bool> {
        Ok(!self.has_only_names_and_contents() && has_unfinished_import(&self.file)?)
    }

    /// All entries, of all archives.
    pub fn rows(&self) -> &[EntryRow] {
        &self.rows
    }

    /// The path of an entry.
    pub fn path(&self, row: &EntryRow) -> &[u8] {
        let start = row.path_offset as usize;
        self.paths.get(start..start.saturating_add(row.path_length as usize)).unwrap_or_default()
    }

    /// Where the link of an entry leads.
    pub fn link_target(&self, row: &EntryRow) -> &[u8] {
        let start = (row.path_offset as usize).saturating_add(row.path_length as usize).saturating_add(1);
        self.paths.get(start..start.saturating_add(row.link_length as usize)).unwrap_or_default()
    }

    /// The segments of a sparse file that its archive has; `None` if the file is not sparse.
    pub fn sparse_segments(&self, entry: u64) -> Option<Vec<SparseSegment>> {
        let start = self.segments.partition_point(|[other, ..]| *other < entry);
        let found = self.segments[start..].iter().take_while(|[other, ..]| *other == entry);
        let found: Vec<_> =
            found.map(|[_, offset, length]| SparseSegment { offset: *offset, length: *length }).collect();
        let row = usize::try_from(entry).ok().and_then(|entry| self.rows.get(entry))?;
        (!found.is_empty() || row.sample != NO_SAMPLE && row.stored_size != row.size).then_some(found)
    }

    /// The tables.
    pub(crate) fn tables(&self) -> TableRows<'_> {
        TableRows { file: &self.file, rows: &self.rows, segments: &self.segments, archives: &self.archives }
    }

    /// Records of the archives.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn read_headers_and_padding(&self, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
        let header =
            self.header.as_ref().ok_or_else(|| Error::unsuitable_file(&self.file, UnsuitableFileReason::NoTables))?;
        Ok(header.read_slice(range)?)
    }

    /// Tables that contradict each other.
    pub fn inconsistent_tables_error(&self, what: &'static str) -> Error {
        Error::unsuitable_file(&self.file, UnsuitableFileReason::InconsistentTables(what))
    }

    /// The digests with which contents are compared. Who only lists entries does not read them.
    fn digests(&self) -> Result<Option<&SampleDigests>> {
        if !self.verifies {
            return Ok(None);
        }
        if self.digests.get().is_none() {
            let found = SampleDigests::read_from(&self.file)?;
            return Ok(self.digests.get_or_init(|| found).as_ref());
        }
        Ok(self.digests.get().and_then(Option::as_ref))
    }

    /// Hands all contents of a sample on, in pieces, with where each begins. In the end they are compared with their digest.
    ///
    /// # Errors
    /// [`UnsuitableFileReason::WrongContents`]; [`Error::File`]; errors of `each`.
    pub fn for_each_piece_then_verify(
        &self,
        row: &EntryRow,
        each: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let digests = self.digests()?;
        let digest = digests.and_then(|digests| digests.get(row.sample));
        let mut hasher = digests.filter(|_| digest.is_some()).map(SampleDigests::hasher);
        let mut at = 0;
        while at < row.size {
            let end = row.size.min(at + CONTENT_PIECE_BYTES);
            let piece = self.read_sample_range_unverified(row.sample, at..end)?;
            if let Some(hasher) = &mut hasher {
                hasher.update(&piece);
            }
            each(at, &piece)?;
            at = end;
        }
        match hasher.map(ContentHasher::finish) {
            Some(found) if Some(&*found) != digest => {
                Err(Error::unsuitable_file(&self.file, UnsuitableFileReason::WrongContents(escaped(self.path(row)))))
            }
            _ => Ok(()),
        }
    }

    /// A part of the contents of a sample.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn read_sample_range_unverified(&self, sample: u64, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
        Ok(self.archive.read_sample_range(sample, range)?)
    }
}

/// Whether a file has the four datasets of a shredder.
fn is_of_original_shredder(file: &File) -> Result<bool> {
    for name in [SAMPLE_CONTENTS, SAMPLE_OFFSET, SAMPLE_NAME, SAMPLE_NAME_OFFSET] {
        match file.dataset(name) {
            Err(error) if error.is_not_found_in_file() => return Ok(false),
            found => drop(found?),
        }
    }
    Ok(true)
}
