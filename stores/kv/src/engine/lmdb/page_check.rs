//! The check of the pages of a state, by reads of the file, before LMDB follows them in its mapping.
//!
//! LMDB believes its pages: a number that is wrong leads it behind the end of the file or of a page, which ends the process
//! by a signal, or around in a circle. So whoever opens a store walks the tree of keys and values first: each page states
//! its number, its nodes fill it, keys ascend over the whole tree, and counts are those of the meta page. A writer and the
//! check of a store also walk the tree of free pages: each page up to the last one is used or free, once.
//!
//! LMDB's file may end before its last page: pages that a commit has taken and given back are left out.

use std::cmp::Ordering;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::page::{
    DamagedPage, LmdbTreeDescriptor, META_PAGE_USED_BYTES, MetaPage, Node, NodeValue, PAGE_HEAD_BYTES, TreePage,
    check_overflow_head, ne_u64_at, overflow_page_count,
};
use super::page_set::PageSet;
use crate::engine::{EngineError, Result};

/// The meta pages.
const META_PAGES: u64 = 2;
/// Bytes of a list of free pages that are read at a time.
const LIST_PART_BYTES: usize = 64 << 10;
/// How often meta pages are read again that a writer changes meanwhile.
const MAX_META_READS: usize = 1000;

/// Which pages of a state are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCheckScope {
    /// Those that lead to keys and values, which readers follow.
    Pairs,
    /// These, and the lists of free pages, which writers follow.
    PairsAndFreeLists,
    /// These, and the first page of each large value.
    AllTreesAndOverflowHeads,
}

/// The file of an LMDB environment.
#[derive(Debug)]
pub struct PageFile {
    file: File,
}

/// Where the first key of the tree of keys and values is in the file (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstKeyFileOffset(pub u64);

impl PageFile {
    /// The pages of a file.
    pub fn new(file: File) -> Self {
        PageFile { file }
    }

    fn read(&self, into: &mut [u8], at: u64) -> Result<()> {
        self.file.read_exact_at(into, at).map_err(EngineError::io("data.mdb cannot be read"))
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(EngineError::io("data.mdb cannot be read"))?.len())
    }

    /// The two meta pages; `None` if the file is empty, as before it is made.
    ///
    /// # Errors
    /// [`EngineError::DamagedPage`] if one of them is damaged.
    pub fn meta_pages(&self) -> Result<Option<[MetaPage; 2]>> {
        let mut failure = None;
        for _ in 0..MAX_META_READS {
            if self.bytes()? == 0 {
                return Ok(None);
            }
            let first = self.meta_page(0, 0)?;
            let pair = [first, self.meta_page(1, first.page_size as u64)?];
            // A writer may commit between the two reads.
            match MetaPage::check_pair(&pair) {
                Ok(()) => return Ok(Some(pair)),
                Err(fault) if failure.replace((fault, pair)) == Some((fault, pair)) => return Err(fault.into()),
                Err(_) => {}
            }
        }
        let rule = "the two meta pages have the numbers of commits in turn";
        Err(DamagedPage { page: 0, rule }.into())
    }

    fn meta_page(&self, page: u64, at: u64) -> Result<MetaPage> {
        if self.bytes()? < at.saturating_add(META_PAGE_USED_BYTES as u64) {
            return Err(DamagedPage { page, rule: "the file was cut short before it" }.into());
        }
        let mut bytes = [0; META_PAGE_USED_BYTES];
        self.read(&mut bytes, at)?;
        MetaPage::decode(&bytes).map_err(|rule| DamagedPage { page, rule }.into())
    }

    /// Checks the pages of a state. The caller reads that state by a transaction, so that LMDB does not use its pages
    /// again. Returns where the first key is, if there is one.
    ///
    /// # Errors
    /// [`EngineError::DamagedPage`] if a page is damaged, [`EngineError::Io`] if the file cannot be read.
    pub fn check_and_locate_first_key(
        &self,
        meta: &MetaPage,
        what: PageCheckScope,
    ) -> Result<Option<FirstKeyFileOffset>> {
        let mut walk = PageWalk {
            file: self,
            pages_of_file: self.bytes()? / meta.page_size as u64,
            meta,
            with_heads: what == PageCheckScope::AllTreesAndOverflowHeads,
            used: (what != PageCheckScope::Pairs).then(PageSet::default),
            buffers: Vec::new(),
        };
        let first = walk.tree(TreeOf::Pairs, &meta.pairs)?;
        if let Some(pages) = walk.used.as_ref().map(PageSet::len) {
            walk.tree(TreeOf::FreePages, &meta.free)?;
            let all = walk.used.as_ref().map_or(pages, PageSet::len);
            if all + META_PAGES != meta.last_page + 1 {
                let rule = "each page up to the last one is used or free";
                return Err(DamagedPage { page: meta.commit % 2, rule }.into());
            }
        }
        Ok(first)
    }
}

/// What a tree is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeOf {
    Pairs,
    FreePages,
}

impl TreeOf {
    fn order(self, one: &[u8], other: &[u8]) -> Ordering {
        match self {
            TreeOf::Pairs => one.cmp(other),
            TreeOf::FreePages => ne_u64_at(one, 0).cmp(&ne_u64_at(other, 0)),
        }
    }

    /// Whether bytes can be a key of a leaf.
    fn is_key(self, key: &[u8]) -> bool {
        match self {
            TreeOf::Pairs => !key.is_empty(),
            TreeOf::FreePages => key.len() == 8,
        }
    }
}

/// A walk of the pages of a state.
struct PageWalk<'f> {
    file: &'f PageFile,
    pages_of_file: u64,
    meta: &'f MetaPage,
    with_heads: bool,
    /// The pages that are used or free, if they are counted.
    used: Option<PageSet>,
    /// Memory for pages.
    buffers: Vec<Vec<u8>>,
}

/// A walk of one tree.
struct TreeWalk {
    of: TreeOf,
    /// What was found so far.
    found: LmdbTreeDescriptor,
    last_key: Option<Vec<u8>>,
    first: Option<FirstKeyFileOffset>,
}

impl PageWalk<'_> {
    fn tree(&mut self, of: TreeOf, stated: &LmdbTreeDescriptor) -> Result<Option<FirstKeyFileOffset>> {
        let found = LmdbTreeDescriptor { branch_pages: 0, leaf_pages: 0, overflow_pages: 0, entries: 0, ..*stated };
        let mut walk = TreeWalk { of, found, last_key: None, first: None };
        if let Some(root) = stated.root {
            self.page(&mut walk, root, stated.depth, None)?;
        }
        if walk.found != *stated {
            let rule = "a tree has as many pages and keys as its meta page says";
            return Err(DamagedPage { page: self.meta.commit % 2, rule }.into());
        }
        Ok(walk.first)
    }

    /// Takes up pages that are used or free.
    fn take(&mut self, page: u64, count: u64) -> std::result::Result<(), DamagedPage> {
        let last = page.checked_add(count.saturating_sub(1)).filter(|last| *last <= self.meta.last_page);
        if page < META_PAGES || last.is_none() {
            return Err(DamagedPage { page, rule: "it is led to, and is not among the pages of the database" });
        }
        let Some(used) = &mut self.used else { return Ok(()) };
        match (page..page + count).find(|page| !used.insert(*page)) {
            Some(page) => Err(DamagedPage { page, rule: "two pages lead to it" }),
            None => Ok(()),
        }
    }

    /// Takes up pages that are read.
    fn take_stored(&mut self, page: u64, count: u64) -> std::result::Result<(), DamagedPage> {
        match page.checked_add(count).is_some_and(|end| end <= self.pages_of_file) {
            true => self.take(page, count),
            false => Err(DamagedPage { page, rule: "the file was cut short before it" }),
        }
    }

    /// Checks a page of a tree and what it leads to. Its keys are not below `lower`.
    fn page(&mut self, walk: &mut TreeWalk, page: u64, levels: u16, lower: Option<&[u8]>) -> Result<()> {
        self.take_stored(page, 1)?;
        let mut bytes = self.buffers.pop().unwrap_or_else(|| vec![0; self.meta.page_size]);
        self.file.read(&mut bytes, page * self.meta.page_size as u64)?;
        let tree_page = TreePage::parse(page, &bytes)?;
        if tree_page.is_branch != (levels > 1) {
            return Err(DamagedPage { page, rule: "leaves of a tree are all at its last level" }.into());
        }
        match tree_page.is_branch {
            true => self.branch(walk, page, &tree_page, levels, lower)?,
            false => self.leaf(walk, page, &tree_page, lower)?,
        }
        self.buffers.push(bytes);
        Ok(())
    }

    fn branch(
        &mut self,
        walk: &mut TreeWalk,
        page: u64,
        branch: &TreePage<'_>,
        levels: u16,
        lower: Option<&[u8]>,
    ) -> Result<()> {
        walk.found.branch_pages += 1;
        // LMDB ends the process otherwise.
        if branch.count < 2 && walk.of == TreeOf::Pairs {
            return Err(DamagedPage { page, rule: "a page that leads to pages leads to two or more" }.into());
        }
        let damaged = |rule| EngineError::from(DamagedPage { page, rule });
        for number in 0..branch.count {
            let node = branch.node(number).ok_or(damaged("its nodes lie in it"))?;
            let NodeValue::Child(child) = node.value else { return Err(damaged("it leads to pages")) };
            // The key of the first node is not looked at: what it leads to begins where the page does.
            let lower = if number == 0 { lower } else { Some(node.key) };
            if number > 0 && !walk.of.is_key(node.key) {
                return Err(damaged("a page that leads to pages has a key before each but the first"));
            }
            if let (Some(lower), Some(last)) = (lower, &walk.last_key)
                && walk.of.order(last, lower) != Ordering::Less
            {
                return Err(damaged("the keys before the one that leads to a page are below it"));
            }
            self.page(walk, child, levels - 1, lower)?;
        }
        Ok(())
    }

    fn leaf(&mut self, walk: &mut TreeWalk, page: u64, leaf: &TreePage<'_>, lower: Option<&[u8]>) -> Result<()> {
        walk.found.leaf_pages += 1;
        walk.found.entries += leaf.count as u64;
        let damaged = |rule| EngineError::from(DamagedPage { page, rule });
        let mut before: Option<&[u8]> = walk.last_key.as_deref();
        for number in 0..leaf.count {
            let node = leaf.node(number).ok_or(damaged("its nodes lie in it"))?;
            if !walk.of.is_key(node.key) {
                return Err(damaged("its keys have the length of their kind"));
            }
            let is_above = before.is_none_or(|before| walk.of.order(before, node.key) == Ordering::Less);
            if !is_above || lower.is_some_and(|lower| walk.of.order(lower, node.key) == Ordering::Greater) {
                return Err(damaged("its keys ascend, and are not below the key that leads to it"));
            }
            before = Some(node.key);
            walk.first
                .get_or_insert(FirstKeyFileOffset(page * self.meta.page_size as u64 + node.key_offset_in_page as u64));
            walk.found.overflow_pages += self.value(page, &node)?;
            if walk.of == TreeOf::FreePages {
                self.free_list(page, &node)?;
            }
        }
        walk.last_key = before.map(<[u8]>::to_vec);
        Ok(())
    }

    /// Takes up the pages of a value, and says how many there are.
    fn value(&mut self, page: u64, node: &Node<'_>) -> Result<u64> {
        let NodeValue::Overflow { first, bytes } = node.value else { return Ok(0) };
        if bytes == 0 {
            return Err(DamagedPage { page, rule: "a value on pages of its own has bytes" }.into());
        }
        let pages = overflow_page_count(bytes.into(), self.meta.page_size);
        self.take_stored(first, pages)?;
        if self.with_heads {
            let mut head = [0; PAGE_HEAD_BYTES];
            self.file.read(&mut head, first * self.meta.page_size as u64)?;
            check_overflow_head(&head, first, pages)?;
        }
        Ok(pages)
    }

    /// Checks a list of free pages: the number of a commit, and as its value how many pages it has freed, and these in
    /// descending order. The list may have room behind them.
    fn free_list(&mut self, page: u64, node: &Node<'_>) -> Result<()> {
        let damaged = |rule| EngineError::from(DamagedPage { page, rule });
        if ne_u64_at(node.key, 0).is_none_or(|commit| commit == 0 || commit > self.meta.commit) {
            return Err(damaged("a list of free pages is of a commit that was made"));
        }
        let bytes = match node.value {
            NodeValue::Inline(list) => list.len() as u64,
            NodeValue::Overflow { bytes, .. } => bytes.into(),
            NodeValue::Child(_) => 0,
        };
        let (mut count, mut done, mut before) = (None, 0, u64::MAX);
        let mut part = vec![0; LIST_PART_BYTES.min(bytes as usize)];
        for at in (0..bytes).step_by(LIST_PART_BYTES) {
            let part = part.get_mut(..(bytes - at).min(LIST_PART_BYTES as u64) as usize).unwrap_or_default();
            match node.value {
                NodeValue::Inline(list) => part.copy_from_slice(list.get(..part.len()).unwrap_or_default()),
                NodeValue::Overflow { first, .. } => {
                    let begin = first * self.meta.page_size as u64 + PAGE_HEAD_BYTES as u64;
                    self.file.read(part, begin + at)?;
                }
                NodeValue::Child(_) => {}
            }
            let (numbers, rest) = part.as_chunks::<8>();
            let mut numbers = numbers.iter().map(|number| u64::from_ne_bytes(*number));
            let count = *count.get_or_insert_with(|| numbers.next().unwrap_or(u64::MAX));
            if !rest.is_empty() || count > bytes / 8 - 1 {
                return Err(damaged("a list of free pages has as many as it says"));
            }
            for number in numbers.take((count - done) as usize) {
                if number >= before {
                    return Err(damaged("the pages of a list of free pages descend"));
                }
                before = number;
                done += 1;
                self.take(number, 1)?;
            }
        }
        match count {
            Some(_) => Ok(()),
            None => Err(damaged("a list of free pages has as many as it says")),
        }
    }
}
