//! What headers say of an entry that its row does not have: names of owners, extended attributes.

use std::collections::HashMap;

use h5live::archive::layout::EntryRow;

use crate::entry::PaxGlobalRecords;
use crate::error::Result;
use crate::header::{BLOCK_BYTES, TarBlock, for_each_pax_record, unsigned, until_nul};
use crate::reader::ImportedTar;

/// The start of the keyword of an extended attribute.
const XATTR: &[u8] = b"SCHILY.xattr.";

/// Names of owners, and extended attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerAndXattrs {
    /// The name of the owner; empty if there is none.
    pub user: Vec<u8>,
    /// The name of the group; empty if there is none.
    pub group: Vec<u8>,
    /// Extended attributes: name and value.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Reads the headers of all entries, in their order.
#[derive(Debug)]
pub struct OwnerXattrReader<'a> {
    tar: &'a ImportedTar,
    globals: PaxGlobalRecords,
    /// What the entries of links have, which are made after the others.
    kept: HashMap<usize, OwnerAndXattrs>,
}

impl<'a> OwnerXattrReader<'a> {
    /// Those of a file.
    pub fn new(tar: &'a ImportedTar) -> Self {
        OwnerXattrReader { tar, globals: PaxGlobalRecords::default(), kept: HashMap::new() }
    }

    /// Reads the headers of the next entry. [`OwnerXattrReader::take`] has what they say.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn read_next_entry_headers(&mut self, entry_number: usize, row: &EntryRow) -> Result<()> {
        if self.tar.archives().iter().any(|archive| archive.first_entry == entry_number as u64) {
            self.globals = PaxGlobalRecords::default();
        }
        let end = row.header_offset.saturating_add(row.header_length);
        let records = self.tar.read_headers_and_padding(row.header_offset..end)?;
        let attributes = parse(&records, &mut self.globals);
        self.kept.insert(entry_number, attributes);
        Ok(())
    }

    /// What the headers of an entry say, once.
    pub fn take(&mut self, entry_number: usize) -> OwnerAndXattrs {
        self.kept.remove(&entry_number).unwrap_or_default()
    }
}

/// What the headers of an entry say. Headers that were imported are sound; what is not is passed over.
fn parse(records: &[u8], globals: &mut PaxGlobalRecords) -> OwnerAndXattrs {
    let mut found = OwnerAndXattrs::default();
    // The padding of the contents before stands in front of the first header.
    let mut rest = &records[records.len() % BLOCK_BYTES..];
    let mut local: Vec<&[u8]> = Vec::new();
    while let Some((block, behind)) = rest.split_first_chunk::<BLOCK_BYTES>() {
        rest = behind;
        if *block == [0; BLOCK_BYTES] {
            continue;
        }
        let kind = block[156];
        if !matches!(kind, b'x' | b'X' | b'g' | b'L' | b'K') {
            owner_names(block, &mut found);
            break;
        }
        let Ok(size) = unsigned(&block[124..136], "size") else { break };
        let Some(body) = usize::try_from(size).ok().and_then(|size| rest.get(..size)) else { break };
        match kind {
            b'g' => drop(globals.append_header(body)),
            b'x' | b'X' => local.push(body),
            _ => {}
        }
        rest = rest.get(body.len().next_multiple_of(BLOCK_BYTES)..).unwrap_or_default();
    }
    for records in std::iter::once(globals.bytes()).chain(local) {
        let _ = for_each_pax_record(records, |keyword, value| {
            take_record(keyword, value, &mut found);
            Ok(())
        });
    }
    found
}

fn owner_names(block: &TarBlock, found: &mut OwnerAndXattrs) {
    if &block[257..262] == b"ustar" {
        found.user = until_nul(&block[265..297]).to_vec();
        found.group = until_nul(&block[297..329]).to_vec();
    }
}

fn take_record(keyword: &[u8], value: &[u8], found: &mut OwnerAndXattrs) {
    match keyword {
        b"uname" => found.user = value.to_vec(),
        b"gname" => found.group = value.to_vec(),
        _ => {
            let Some(name) = keyword.strip_prefix(XATTR) else { return };
            let name = decoded(name);
            found.xattrs.retain(|(known, _)| *known != name);
            found.xattrs.push((name, value.to_vec()));
        }
    }
}

/// A name in which GNU tar has written `%` and `=` as `%25` and `%3D`.
fn decoded(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = name;
    while let Some((first, behind)) = rest.split_first() {
        let (byte, behind) = match rest.get(..3) {
            Some(b"%25") => (b'%', &rest[3..]),
            Some(b"%3D") => (b'=', &rest[3..]),
            _ => (*first, behind),
        };
        out.push(byte);
        rest = behind;
    }
    out
}
