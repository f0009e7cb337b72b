//! Pages of LMDB's file as bytes: meta pages, and pages of trees with their nodes.
//!
//! LMDB reads pages through a mapping and believes what they say. So what a page says is checked here first, by reads.
//!
//! Source: the structures of LMDB 0.9, data version 1 (`mdb.c`: MDB_page, MDB_node, MDB_meta, MDB_db).

/// Bytes of the head of a page: its number, 2 unused bytes, flags, and the lower and upper end of its free space.
pub const PAGE_HEAD_BYTES: usize = 16;
/// Bytes of the head of a node: two halves of a number, flags, and the bytes of its key.
pub const NODE_HEAD_BYTES: usize = 8;
/// Most bytes of a key.
const MAX_KEY_BYTES: usize = 511;
/// Most levels of a tree: so many pages a cursor holds.
const MAX_DEPTH: u16 = 32;

/// Where in a page its flags are, and the lower and the upper end of its free space.
const FLAGS_AT: usize = 10;
const LOWER_AT: usize = 12;
const UPPER_AT: usize = 14;
/// The flags of pages. LMDB writes no other ones.
const BRANCH_PAGE: u16 = 1;
const LEAF_PAGE: u16 = 2;
const OVERFLOW_PAGE: u16 = 4;
const META_PAGE: u16 = 8;
/// A node whose value is on pages of its own.
const LARGE_VALUE: u16 = 1;

const MAGIC: u32 = 0xbeef_c0de;
const DATA_VERSION: u32 = 1;
/// The flags of the tree of free pages: its keys are integers.
const INTEGER_KEYS: u16 = 8;
/// The root of a tree without pages.
const NO_PAGE: u64 = u64::MAX;
/// Bytes of a meta page that are used.
pub const META_PAGE_USED_BYTES: usize = PAGE_HEAD_BYTES + 136;

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    number(bytes, at).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_ne_bytes)
}

/// The number at a place (8 bytes); `None` if it is not there.
pub fn ne_u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_ne_bytes)
}

/// What is wrong with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("page {page} of data.mdb is damaged: {rule}")]
pub struct DamagedPage {
    /// The number of the page.
    pub page: u64,
    /// The rule that it breaks.
    pub rule: &'static str,
}

/// What a meta page says of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LmdbTreeDescriptor {
    /// Levels.
    pub depth: u16,
    /// Pages of each kind.
    pub branch_pages: u64,
    pub leaf_pages: u64,
    pub overflow_pages: u64,
    /// Keys.
    pub entries: u64,
    /// The root; `None` if there are no keys.
    pub root: Option<u64>,
}

/// A meta page: what leads to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetaPage {
    /// Bytes of a page.
    pub page_size: usize,
    /// The tree of free pages.
    pub free: LmdbTreeDescriptor,
    /// The tree of keys and values.
    pub pairs: LmdbTreeDescriptor,
    /// The last page that was ever used.
    pub last_page: u64,
    /// The number of the commit.
    pub commit: u64,
}

impl LmdbTreeDescriptor {
    fn decode(bytes: &[u8], at: usize, flags: u16) -> Result<Self, &'static str> {
        let short = "it is shorter than a meta page";
        let field = |offset: usize| ne_u64_at(bytes, at + offset).ok_or(short);
        if u16_at(bytes, at + 4) != Some(flags) {
            return Err("a tree has the flags of its kind");
        }
        let root = Some(field(40)?).filter(|root| *root != NO_PAGE);
        let depth = u16_at(bytes, at + 6).ok_or(short)?;
        let (branch_pages, leaf_pages, overflow_pages) = (field(8)?, field(16)?, field(24)?);
        if depth > MAX_DEPTH || (depth == 0) != root.is_none() {
            return Err("a tree has 1 to 32 levels, or no root");
        }
        Ok(LmdbTreeDescriptor { depth, branch_pages, leaf_pages, overflow_pages, entries: field(32)?, root })
    }
}

impl MetaPage {
    /// The meta page of these bytes.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        const BODY: usize = PAGE_HEAD_BYTES;
        let short = "it is shorter than a meta page";
        if u16_at(bytes, FLAGS_AT) != Some(META_PAGE) {
            return Err("it is no meta page");
        }
        if u32_at(bytes, BODY) != Some(MAGIC) || u32_at(bytes, BODY + 4) != Some(DATA_VERSION) {
            return Err("a meta page has the magic number of LMDB and its data version 1");
        }
        if ne_u64_at(bytes, BODY + 8) != Some(0) {
            return Err("a database has no fixed address");
        }
        let page_size = u32_at(bytes, BODY + 24).ok_or(short)?;
        if !page_size.is_power_of_two() || !(512..=64 << 10).contains(&page_size) {
            return Err("pages have 512 to 65536 bytes, a power of two");
        }
        let last_page = ne_u64_at(bytes, BODY + 120).ok_or(short)?;
        if last_page >= i64::MAX as u64 / u64::from(page_size) {
            return Err("the last page is not behind the largest file");
        }
        Ok(MetaPage {
            page_size: page_size as usize,
            free: LmdbTreeDescriptor::decode(bytes, BODY + 24, INTEGER_KEYS)?,
            pairs: LmdbTreeDescriptor::decode(bytes, BODY + 72, 0)?,
            last_page,
            commit: ne_u64_at(bytes, BODY + 128).ok_or(short)?,
        })
    }

    /// Whether both lead to the same state. The numbers of their commits do not count: each commit makes another state.
    pub fn equals_except_commit(&self, other: &Self) -> bool {
        MetaPage { commit: other.commit, ..*self } == *other
    }

    /// Refuses two meta pages that commits do not leave: each commit writes one of them, in turn.
    ///
    /// # Errors
    /// The page, and the rule that it breaks.
    pub fn check_pair(pair: &[MetaPage; 2]) -> Result<(), DamagedPage> {
        let [even, odd] = pair;
        if even.page_size != odd.page_size {
            return Err(DamagedPage { page: 1, rule: "both meta pages state one size of pages" });
        }
        let is_new = even.commit == 0 && odd.commit == 0;
        if !is_new && (even.commit % 2 != 0 || even.commit.abs_diff(odd.commit) != 1) {
            let newer = u64::from(odd.commit > even.commit);
            return Err(DamagedPage { page: newer, rule: "the two meta pages have the numbers of commits in turn" });
        }
        Ok(())
    }
}

/// A node of a page.
#[derive(Debug, Clone, Copy)]
pub struct Node<'b> {
    /// Where in the page its key is (bytes).
    pub key_offset_in_page: usize,
    pub key: &'b [u8],
    pub value: NodeValue<'b>,
}

/// What a node leads to.
#[derive(Debug, Clone, Copy)]
pub enum NodeValue<'b> {
    /// A page of the next level.
    Child(u64),
    /// The value.
    Inline(&'b [u8]),
    /// A value on pages of its own.
    Overflow {
        /// The first page.
        first: u64,
        /// Bytes of the value.
        bytes: u32,
    },
}

/// A page of a tree whose nodes fill what they are said to fill.
#[derive(Debug)]
pub struct TreePage<'b> {
    bytes: &'b [u8],
    pub is_branch: bool,
    pub count: usize,
}

/// Bytes of the head of pages that hold a value, and whether they are what a node says.
///
/// # Errors
/// The rule that they break.
pub fn check_overflow_head(head: &[u8], page: u64, page_count: u64) -> Result<(), DamagedPage> {
    let is_sound = ne_u64_at(head, 0) == Some(page)
        && u16_at(head, FLAGS_AT) == Some(OVERFLOW_PAGE)
        && u32_at(head, LOWER_AT).map(u64::from) == Some(page_count);
    let rule = "pages of a large value state their number and how many they are";
    if is_sound { Ok(()) } else { Err(DamagedPage { page, rule }) }
}

/// How many pages a value takes.
pub fn overflow_page_count(bytes: u64, page_size: usize) -> u64 {
    (PAGE_HEAD_BYTES as u64 + bytes).div_ceil(page_size as u64)
}

/// Most bytes of a node: a value that would make it larger is on pages of its own.
pub fn max_node_bytes(page_size: usize) -> usize {
    (((page_size - PAGE_HEAD_BYTES) / 2) & !1) - 2
}

impl<'b> TreePage<'b> {
    /// The page of these bytes.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn parse(page: u64, bytes: &'b [u8]) -> Result<Self, DamagedPage> {
        TreePage::parse_bytes(page, bytes).map_err(|rule| DamagedPage { page, rule })
    }

    fn parse_bytes(page: u64, bytes: &'b [u8]) -> Result<Self, &'static str> {
        if ne_u64_at(bytes, 0) != Some(page) {
            return Err("it states another number");
        }
        let is_branch = match u16_at(bytes, FLAGS_AT) {
            Some(BRANCH_PAGE) => true,
            Some(LEAF_PAGE) => false,
            _ => return Err("it is no page of a tree"),
        };
        let end = |at: usize| u16_at(bytes, at).map(usize::from).unwrap_or_default();
        let (lower, upper) = (end(LOWER_AT), end(UPPER_AT));
        if lower <= PAGE_HEAD_BYTES || !lower.is_multiple_of(2) || lower > upper || upper > bytes.len() {
            return Err("its free space lies between the places of its nodes and the nodes");
        }
        let tree_page = TreePage { bytes, is_branch, count: (lower - PAGE_HEAD_BYTES) / 2 };
        tree_page.check_nodes(upper)?;
        Ok(tree_page)
    }

    /// Nodes fill the page from the upper end of its free space on, each once.
    fn check_nodes(&self, upper: usize) -> Result<(), &'static str> {
        // One bit for each even offset. The largest pages have 64 KiB.
        let mut begins = [0u64; (64 << 10) / 128];
        for place in 0..self.count {
            let at = self.place_of(place).filter(|at| at.is_multiple_of(2) && *at >= upper);
            let at = at.filter(|at| *at < self.bytes.len()).ok_or("its nodes lie behind its free space")?;
            let bit = 1u64 << (at / 2 % 64);
            let word = begins.get_mut(at / 128).ok_or("its nodes lie in it")?;
            if *word & bit != 0 {
                return Err("each place of a node leads to another node");
            }
            *word |= bit;
        }
        let (mut at, mut found) = (upper, 0);
        while at < self.bytes.len() {
            let is_begin = begins.get(at / 128).is_some_and(|word| word & 1 << (at / 2 % 64) != 0);
            let size = self.node_at(at).map(|(_, size)| size).filter(|_| is_begin);
            at += size.ok_or("its nodes fill it from its free space on")?;
            found += 1;
        }
        if found == self.count && at == self.bytes.len() { Ok(()) } else { Err("its nodes fill it to its end") }
    }

    fn place_of(&self, place: usize) -> Option<usize> {
        u16_at(self.bytes, PAGE_HEAD_BYTES + 2 * place).map(usize::from)
    }

    /// The node at an offset, and its bytes.
    fn node_at(&self, at: usize) -> Option<(Node<'b>, usize)> {
        let (low, flags, key_bytes) =
            (u32_at(self.bytes, at)?, u16_at(self.bytes, at + 4)?, usize::from(u16_at(self.bytes, at + 6)?));
        let key_at = at + NODE_HEAD_BYTES;
        let value_at = key_at + key_bytes;
        let key = self.bytes.get(key_at..value_at).filter(|key| key.len() <= MAX_KEY_BYTES)?;
        let (value, end) = match (self.is_branch, flags) {
            // Without values: the flags are the upper part of the number of a page.
            (true, _) => (NodeValue::Child(u64::from(low) | u64::from(flags) << 32), value_at),
            (false, LARGE_VALUE) => {
                let first = ne_u64_at(self.bytes, value_at)?;
                (NodeValue::Overflow { first, bytes: low }, value_at + 8)
            }
            (false, 0) => {
                let end = value_at.checked_add(low as usize)?;
                (NodeValue::Inline(self.bytes.get(value_at..end)?), end)
            }
            _ => return None,
        };
        let size = (end - at).next_multiple_of(2);
        (size <= max_node_bytes(self.bytes.len()) + 2)
            .then_some((Node { key_offset_in_page: key_at, key, value }, size))
    }

    /// The node with a number.
    pub fn node(&self, number: usize) -> Option<Node<'b>> {
        let at = self.place_of(number).filter(|_| number < self.count)?;
        self.node_at(at).map(|(node, _)| node)
    }
}
