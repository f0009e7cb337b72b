//! Files of LMDB that end before their last page.
//!
//! LMDB maps its file. Who reads a page behind the end of the file is ended by a signal, so a file that was cut short must
//! not be read. The number of the last page does not tell: LMDB leaves out pages that a commit has taken and given back, and
//! if they are the last ones, a sound file ends before them. So here the pages of a state are walked, with reads of the file.
//!
//! Source: the structures of LMDB 0.9, data version 1 (`mdb.c`: MDB_page, MDB_node, MDB_meta, MDB_db).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of the head of a page: its number, 2 unused bytes, flags, and the lower and upper end of its free space.
const PAGE_HEAD_BYTES: usize = 16;
/// Bytes of the head of a node: two halves of a number, flags, and the bytes of its key.
const NODE_HEAD_BYTES: usize = 8;
/// Where in a page its flags are, and the end of the places of its nodes.
const PAGE_FLAGS_AT: usize = 10;
const PAGE_LOWER_AT: usize = 12;
/// A page whose nodes lead to pages.
const BRANCH_PAGE: u16 = 1;
/// A node whose value is on pages of its own.
const LARGE_VALUE: u16 = 1;

/// Where in a meta page the tree of free pages and the tree of pairs have the number of their root, and where the number of
/// the commit is.
const ROOTS_AT: [usize; 2] = [PAGE_HEAD_BYTES + 64, PAGE_HEAD_BYTES + 112];
const COMMIT_AT: usize = PAGE_HEAD_BYTES + 128;
/// The root of a tree without pages.
const NO_PAGE: u64 = u64::MAX;

/// The file of an LMDB environment.
#[derive(Debug)]
pub struct PageFile {
    file: File,
    page_size: usize,
    /// Pages that the file has to their end.
    pages: u64,
}

/// What a walk has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagesFound {
    /// All pages of the state are there.
    All,
    /// The file ends before a page of the state, or a page is not what it should be.
    NotAll,
    /// The state is not the newest one any more.
    Replaced,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    number(bytes, at).map(u16::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_ne_bytes)
}

impl PageFile {
    /// A file with pages of `page_size` bytes.
    ///
    /// # Errors
    /// If its length cannot be found out.
    pub fn new(file: File, page_size: usize) -> io::Result<Self> {
        let pages = file.metadata()?.len() / page_size.max(1) as u64;
        Ok(PageFile { file, page_size, pages })
    }

    /// Whether the file has a page with this number.
    pub fn has_page(&self, page: u64) -> bool {
        page < self.pages
    }

    /// Looks whether all pages of the state after commit `commit` are in the file. The caller reads that state by a
    /// transaction, so that LMDB does not use its pages again.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn find_pages(&self, commit: u64) -> io::Result<PagesFound> {
        let mut meta = vec![0; self.page_size];
        self.file.read_exact_at(&mut meta, commit % 2 * self.page_size as u64)?;
        if u64_at(&meta, COMMIT_AT) != Some(commit) {
            return Ok(PagesFound::Replaced);
        }
        let mut to_read: Vec<u64> = ROOTS_AT.iter().filter_map(|at| u64_at(&meta, *at)).collect();
        to_read.retain(|root| *root != NO_PAGE);
        let mut page = vec![0; self.page_size];
        let mut seen = 0;
        while let Some(number) = to_read.pop() {
            seen += 1;
            if !self.has_page(number) || seen > self.pages {
                return Ok(PagesFound::NotAll);
            }
            self.file.read_exact_at(&mut page, number * self.page_size as u64)?;
            if self.list_children(&page, &mut to_read).is_none() {
                return Ok(PagesFound::NotAll);
            }
        }
        Ok(PagesFound::All)
    }

    /// Adds the pages to which a page leads to `to_read`; `None` if it is no page of a tree, or leads to values behind the
    /// end of the file.
    fn list_children(&self, page: &[u8], to_read: &mut Vec<u64>) -> Option<()> {
        let is_branch = u16_at(page, PAGE_FLAGS_AT)? & BRANCH_PAGE != 0;
        let lower = usize::from(u16_at(page, PAGE_LOWER_AT)?);
        for place in (PAGE_HEAD_BYTES..lower).step_by(2) {
            let node = page.get(usize::from(u16_at(page, place)?)..)?;
            let size = u64::from(number(node, 0).map(u32::from_ne_bytes)?);
            let flags = u16_at(node, 4)?;
            if is_branch {
                // Without values: the flags are the upper part of the number of a page.
                to_read.push(size | u64::from(flags) << 32);
            } else if flags & LARGE_VALUE != 0 {
                let first = u64_at(node, NODE_HEAD_BYTES + usize::from(u16_at(node, 6)?))?;
                let pages = (PAGE_HEAD_BYTES as u64 + size).div_ceil(self.page_size as u64);
                self.has_page(first.checked_add(pages - 1)?).then_some(())?;
            }
        }
        Some(())
    }
}
