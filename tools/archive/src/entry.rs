//! What the headers of an entry say.

use crate::error::TarFault;
use crate::header::{TarBlock, decimal, for_each_pax_record, number, time, unsigned, until_nul};
use crate::sparse::{PaxSparseRecords, SparseSegment};

/// An entry of an archive.
#[derive(Debug, Clone, Default)]
pub struct TarEntry {
    /// The path, with all that the archive has of it: a leading `./`, a slash at the end.
    pub path: Vec<u8>,
    /// Where a link leads.
    pub link_target: Vec<u8>,
    /// The type flag.
    pub kind: u8,
    /// Bytes of the contents, with the holes of a sparse file.
    pub size: u64,
    /// Bytes of the contents in the archive.
    pub stored_size: u64,
    /// Permissions.
    pub mode: u32,
    /// The number of the owner.
    pub uid: u64,
    /// The number of the group.
    pub gid: u64,
    /// Seconds of the time of the last change, since 1970.
    pub mtime: i64,
    /// Nanoseconds of it.
    pub mtime_nanos: u32,
    /// The bytes of a sparse file that the archive has.
    pub segments: Option<Vec<SparseSegment>>,
    pub(crate) sparse: Option<PaxSparseRecords>,
}

impl TarEntry {
    /// Whether it is a file with contents. An unknown type counts as a file (POSIX.1-2017, `typeflag`).
    pub fn has_file_contents(&self) -> bool {
        self.size > 0 && (self.is_file() || self.kind == b'1')
    }

    /// Whether it is a file, with or without contents.
    pub fn is_file(&self) -> bool {
        is_file_or_unknown_kind(self.kind) && !(self.kind == 0 && self.path.ends_with(b"/"))
    }

    /// The path as text, for messages.
    pub fn path_lossy(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

/// Whether a type flag says that there is a file. Flags that GNU tar and others have for what is no file: volumes (`V`, `M`),
/// lists of folders (`D`), old long names (`N`), access lists (`A`).
pub fn is_file_or_unknown_kind(typeflag: u8) -> bool {
    !matches!(typeflag, b'1'..=b'6' | b'V' | b'M' | b'D' | b'N' | b'A')
}

/// Records that hold for all entries that follow.
#[derive(Debug, Clone, Default)]
pub struct PaxGlobalRecords(Vec<u8>);

/// Global records that are kept (bytes): each header replaces the values of earlier ones, and nobody writes many.
const MAX_GLOBAL_BYTES: usize = 1 << 20;

impl PaxGlobalRecords {
    /// All records.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes up the records of a global header.
    ///
    /// # Errors
    /// [`TarFault::InvalidExtendedHeader`], [`TarFault::ExtendedHeadersTooLong`].
    pub fn append_header(&mut self, bytes: &[u8]) -> Result<(), TarFault> {
        for_each_pax_record(bytes, |_, _| Ok(()))?;
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if self.0.len() + end > MAX_GLOBAL_BYTES {
            let bytes = (self.0.len() + end) as u64;
            return Err(TarFault::ExtendedHeadersTooLong { bytes, limit: MAX_GLOBAL_BYTES as u64 });
        }
        self.0.extend_from_slice(&bytes[..end]);
        Ok(())
    }
}

/// What extended headers say of the next entry.
#[derive(Debug, Default)]
pub struct ExtendedHeaders {
    globals: Vec<u8>,
    local: Vec<u8>,
    long_path: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
}

impl ExtendedHeaders {
    /// Nothing but the global records.
    pub fn new(globals: &PaxGlobalRecords) -> Self {
        ExtendedHeaders { globals: globals.0.clone(), ..ExtendedHeaders::default() }
    }

    /// Other global records.
    pub fn set_globals(&mut self, globals: &PaxGlobalRecords) {
        self.globals.clone_from(&globals.0);
    }

    /// Takes up an extended header: records (`x`, `X`), a long path (`L`), a long target of a link (`K`).
    ///
    /// # Errors
    /// [`TarFault::InvalidExtendedHeader`].
    pub fn add_header(&mut self, typeflag: u8, bytes: Vec<u8>) -> Result<(), TarFault> {
        match typeflag {
            b'L' => self.long_path = Some(until_nul(&bytes).to_vec()),
            b'K' => self.long_link = Some(until_nul(&bytes).to_vec()),
            _ => {
                for_each_pax_record(&bytes, |_, _| Ok(()))?;
                let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                self.local.extend_from_slice(&bytes[..end]);
            }
        }
        Ok(())
    }

    /// The entry of a header, and the bytes that follow it.
    ///
    /// # Errors
    /// [`TarFault::InvalidNumber`], [`TarFault::InvalidSparseMap`].
    pub fn parse_entry_and_data_size(self, block: &TarBlock) -> Result<(TarEntry, u64), TarFault> {
        let header = tar::Header::from_byte_slice(block);
        let mut entry = TarEntry {
            path: header.path_bytes().into_owned(),
            link_target: header.link_name_bytes().map(|link| link.into_owned()).unwrap_or_default(),
            kind: block[156],
            mode: number(&block[100..108]).unwrap_or(0) as u32 & 0o7777,
            uid: number(&block[108..116]).unwrap_or(0) as u64,
            gid: number(&block[116..124]).unwrap_or(0) as u64,
            mtime: number(&block[136..148]).unwrap_or(0),
            ..TarEntry::default()
        };
        let mut size = None;
        let mut sparse = PaxSparseRecords::default();
        let mut is_sparse = false;
        for records in [&self.globals, &self.local] {
            for_each_pax_record(records, |keyword, value| {
                match keyword {
                    b"path" if !value.is_empty() => entry.path = value.to_vec(),
                    b"linkpath" if !value.is_empty() => entry.link_target = value.to_vec(),
                    b"size" => size = Some(decimal(value).ok_or(TarFault::InvalidNumber("size"))?),
                    b"uid" => entry.uid = decimal(value).unwrap_or(entry.uid),
                    b"gid" => entry.gid = decimal(value).unwrap_or(entry.gid),
                    b"mtime" => (entry.mtime, entry.mtime_nanos) = time(value).unwrap_or((entry.mtime, 0)),
                    _ if keyword.starts_with(b"GNU.sparse.") => {
                        is_sparse = true;
                        sparse.add_record(keyword, value)?;
                    }
                    _ => {}
                }
                Ok(())
            })?;
        }
        entry.path = self.long_path.unwrap_or(entry.path);
        entry.link_target = self.long_link.unwrap_or(entry.link_target);
        if let Some(name) = &sparse.name {
            entry.path.clone_from(name);
        }
        entry.path.truncate(until_nul(&entry.path).len());
        entry.link_target.truncate(until_nul(&entry.link_target).len());
        entry.sparse = is_sparse.then_some(sparse);
        let size = match size {
            Some(size) => size,
            None => unsigned(&block[124..136], "size")?,
        };
        // Headers of links (but hard ones), folders, devices and pipes may state a size; nothing follows them.
        let has_data = !(matches!(entry.kind, b'2'..=b'6') || entry.kind == 0 && entry.path.ends_with(b"/"));
        Ok((entry, if has_data { size } else { 0 }))
    }
}
