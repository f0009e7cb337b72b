//! The doubling table: how a fractal heap's space is cut into rows of blocks, each row's blocks twice as large as those
//! of the row before.

use crate::{Fault, Record, Result, Width, Wire};

/// A stretch of a fractal heap's space that one block stands for, or could stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeapBlockSlot {
    /// Its first byte in heap space.
    pub start: u64,
    /// Bytes of heap space.
    pub size: u64,
}

impl HeapBlockSlot {
    /// Its end in heap space (bytes).
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

/// The shape of a fractal heap's space. All numbers except the rows are powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DoublingTable {
    /// Blocks of a row.
    pub column_count: u16,
    /// Bytes of a block of the first two rows.
    pub start_block_bytes: u64,
    /// Bytes of the largest direct block; larger blocks of the table are indirect.
    pub max_direct_block_bytes: u64,
    /// Bits of the largest offset in the heap.
    pub heap_offset_bits: u16,
    /// Rows of the root indirect block when it is made; 0 for as many as there can be.
    pub start_root_rows: u16,
}

impl DoublingTable {
    /// The parameters of libhdf5 for dense links.
    pub const LINKS: DoublingTable = DoublingTable {
        column_count: 4,
        start_block_bytes: 512,
        max_direct_block_bytes: 65_536,
        heap_offset_bits: 32,
        start_root_rows: 1,
    };

    /// The parameters of libhdf5 for dense attributes and shared messages.
    pub const ATTRIBUTES: DoublingTable = DoublingTable {
        column_count: 4,
        start_block_bytes: 1024,
        max_direct_block_bytes: 65_536,
        heap_offset_bits: 40,
        start_root_rows: 1,
    };

    /// The rule that the numbers break, if they break one.
    pub fn fault(&self) -> Option<Fault> {
        let broken = |found: u64, rule| Some(Fault::InvalidValue { found, rule });
        if !self.column_count.is_power_of_two() {
            broken(self.column_count.into(), "the width of the table is a power of two")
        } else if !self.start_block_bytes.is_power_of_two() {
            broken(self.start_block_bytes, "the size of the first blocks is a power of two")
        } else if !self.max_direct_block_bytes.is_power_of_two() || self.max_direct_block_bytes < self.start_block_bytes
        {
            broken(
                self.max_direct_block_bytes,
                "the largest direct block is a power of two, not below the first blocks",
            )
        } else if self.heap_offset_bits > 64 || u32::from(self.heap_offset_bits) < self.first_row_bits() {
            broken(
                self.heap_offset_bits.into(),
                "the largest offset has at most 64 bits, and lies behind the first row",
            )
        } else if self.max_direct_block_bytes.ilog2().saturating_add(1) < self.first_row_bits() {
            broken(self.max_direct_block_bytes, "the smallest indirect block holds at least one row")
        } else if self.start_root_rows > self.max_rows() {
            broken(self.start_root_rows.into(), "the root begins with no more rows than it can have")
        } else {
            None
        }
    }

    fn log2(value: u64) -> u32 {
        value.checked_ilog2().unwrap_or(0)
    }

    /// Bits of the bytes of the first row.
    fn first_row_bits(&self) -> u32 {
        Self::log2(self.start_block_bytes).saturating_add(Self::log2(self.column_count.into()))
    }

    /// The width of offsets in the heap; 8 at most.
    pub fn offset_width(&self) -> Width {
        u8::try_from(self.heap_offset_bits.div_ceil(8)).ok().and_then(Width::new).unwrap_or(Width::EIGHT)
    }

    /// Rows of direct blocks.
    pub fn direct_rows(&self) -> u16 {
        let rows = Self::log2(self.max_direct_block_bytes)
            .saturating_sub(Self::log2(self.start_block_bytes))
            .saturating_add(2);
        u16::try_from(rows).unwrap_or(u16::MAX)
    }

    /// Most rows of the root indirect block.
    pub fn max_rows(&self) -> u16 {
        let rows = u32::from(self.heap_offset_bits).saturating_sub(self.first_row_bits()).saturating_add(1);
        u16::try_from(rows).unwrap_or(u16::MAX)
    }

    /// Bytes of heap space that a block of a row stands for; `None` past 64 bits.
    pub fn row_block_size(&self, row: u16) -> Option<u64> {
        let doublings = u32::from(row.saturating_sub(1));
        self.start_block_bytes.checked_mul(1u64.checked_shl(doublings)?)
    }

    /// Bytes of heap space before a row, from the start of its indirect block; `None` past 64 bits.
    pub fn row_offset_in_parent(&self, row: u16) -> Option<u64> {
        if row == 0 { Some(0) } else { self.row_block_size(row)?.checked_mul(self.column_count.into()) }
    }

    /// Rows of an indirect block that is a child in a row; `None` if blocks of that row are direct.
    pub fn child_rows(&self, row: u16) -> Option<u16> {
        if row < self.direct_rows() {
            return None;
        }
        let rows = Self::log2(self.row_block_size(row)?).checked_sub(self.first_row_bits())?.checked_add(1)?;
        u16::try_from(rows).ok()
    }

    /// The row and column of the block that holds an offset, counted from the start of its indirect block; and the
    /// offset inside that block.
    pub fn row_column_and_offset(&self, offset_in_parent: u64) -> Option<(u16, u16, u64)> {
        let row = match offset_in_parent.checked_ilog2() {
            Some(bit) if bit >= self.first_row_bits() => {
                u16::try_from(bit.saturating_sub(self.first_row_bits()).saturating_add(1)).ok()?
            }
            _ => 0,
        };
        let (size, start) = (self.row_block_size(row)?, self.row_offset_in_parent(row)?);
        let in_row = offset_in_parent.checked_sub(start)?;
        let column = u16::try_from(in_row.checked_div(size)?).ok()?;
        Some((row, column, in_row.checked_rem(size)?))
    }

    /// Bytes of the direct block that begins at an offset in heap space, in a heap whose root has `root_rows` rows.
    pub fn direct_block_size_at(&self, offset: u64, root_rows: u16) -> Option<u64> {
        if root_rows == 0 {
            return Some(self.start_block_bytes);
        }
        let (row, _, inside) = self.row_column_and_offset(offset)?;
        if row < self.direct_rows() {
            self.row_block_size(row)
        } else {
            self.direct_block_size_at(inside, self.child_rows(row)?)
        }
    }

    /// Rows of the indirect block that begins at an offset in heap space, in a heap whose root has `root_rows` rows.
    pub fn indirect_block_rows_at(&self, offset: u64, root_rows: u16) -> Option<u16> {
        if offset == 0 {
            return Some(root_rows);
        }
        let (row, _, inside) = self.row_column_and_offset(offset)?;
        self.indirect_block_rows_at(inside, self.child_rows(row)?)
    }

    /// Bytes for objects in all direct blocks that an indirect block of `rows` rows stands for, if the fields of each
    /// take `overhead` bytes.
    pub fn object_space(&self, rows: u16, overhead: u64) -> u64 {
        let mut before = vec![0u64];
        for row in 0..rows {
            let block = match self.child_rows(row) {
                None => self.row_block_size(row).unwrap_or(0).saturating_sub(overhead),
                Some(rows) => before.get(usize::from(rows)).copied().unwrap_or(0),
            };
            let so_far = before.last().copied().unwrap_or(0);
            before.push(so_far.saturating_add(block.saturating_mul(self.column_count.into())));
        }
        before.last().copied().unwrap_or(0)
    }

    /// The first direct block of at least `min_size` bytes that begins at `from` or later in heap space.
    pub fn first_direct_slot_from(&self, from: u64, min_size: u64) -> Option<HeapBlockSlot> {
        self.slot_below(self.max_rows(), 0, from, min_size)
    }

    /// As [`DoublingTable::first_direct_slot_from`], in an indirect block of `rows` rows that begins at `base`; `from` counts from
    /// there.
    fn slot_below(&self, rows: u16, base: u64, from: u64, min_size: u64) -> Option<HeapBlockSlot> {
        let (mut row, mut column, mut inside) = self.row_column_and_offset(from)?;
        while row < rows {
            let size = self.row_block_size(row)?;
            let start = base.checked_add(self.block_offset_in_parent(row, column)?)?;
            let largest = |rows: u16| self.row_block_size(rows.min(self.direct_rows()).saturating_sub(1)).unwrap_or(0);
            let large_enough = match self.child_rows(row) {
                None if inside == 0 && size >= min_size => return Some(HeapBlockSlot { start, size }),
                None => size >= min_size,
                Some(below) if largest(below) >= min_size => {
                    let found = self.slot_below(below, start, inside, min_size);
                    if found.is_some() {
                        return found;
                    }
                    true
                }
                Some(_) => false,
            };
            inside = 0;
            column = column.saturating_add(1);
            if !large_enough || column >= self.column_count {
                (row, column) = (row.saturating_add(1), 0);
            }
        }
        None
    }

    /// The fewest direct and indirect blocks that cover heap space from `from` to `to`, in a heap whose root has `root_rows`
    /// rows. Both are borders of blocks.
    pub fn covering_slots(&self, root_rows: u16, from: u64, to: u64) -> Vec<HeapBlockSlot> {
        let mut found = Vec::new();
        self.add_slots_between(root_rows, 0, (from, to), &mut found);
        found
    }

    fn add_slots_between(&self, rows: u16, base: u64, (from, to): (u64, u64), found: &mut Vec<HeapBlockSlot>) {
        for row in 0..rows {
            let start = self.row_offset_in_parent(row).and_then(|offset| base.checked_add(offset));
            let (Some(start), Some(size)) = (start, self.row_block_size(row)) else { return };
            if start >= to {
                return;
            }
            let first = from.saturating_sub(start).checked_div(size).unwrap_or(0);
            for column in first..self.column_count.into() {
                let slot = HeapBlockSlot { start: start.saturating_add(size.saturating_mul(column)), size };
                if slot.start >= to {
                    return;
                }
                match self.child_rows(row) {
                    _ if slot.start >= from && slot.end() <= to => found.push(slot),
                    Some(below) => self.add_slots_between(below, slot.start, (from, to), found),
                    None => {}
                }
            }
        }
    }

    /// Where the block of a row and column begins, from the start of its indirect block; `None` past 64 bits.
    pub fn block_offset_in_parent(&self, row: u16, column: u16) -> Option<u64> {
        self.row_offset_in_parent(row)?.checked_add(self.row_block_size(row)?.checked_mul(column.into())?)
    }
}

impl Default for DoublingTable {
    fn default() -> Self {
        DoublingTable::LINKS
    }
}

impl Record for DoublingTable {
    const NAME: &'static str = "doubling table";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.u16("table width", &mut self.column_count)?;
        w.length("size of first blocks", &mut self.start_block_bytes)?;
        w.length("size of largest direct block", &mut self.max_direct_block_bytes)?;
        w.u16("bits of largest offset", &mut self.heap_offset_bits)?;
        w.u16("rows of first root", &mut self.start_root_rows)?;
        match self.fault() {
            Some(fault) => Err(w.fault("doubling table", fault)),
            None => Ok(()),
        }
    }
}
