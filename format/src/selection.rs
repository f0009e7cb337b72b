//! Selections as bytes: in mappings of virtual datasets and in region references (format specification 4.0, VIII.A).

use h5live_model::{Block, Hyperslab, Selection, UNLIMITED};
use smallvec::SmallVec;

use crate::{Fault, LibVer, Record, Result, Width, Wire};

/// A selection, in the version in which it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoredSelection {
    /// 1, or 2 (points, hyperslabs), or 3 (hyperslabs).
    pub version: u8,
    /// The number of dimensions. Selections of all elements or of none do not store it.
    pub rank: usize,
    /// The selection. Version 1 stores regular hyperslabs as blocks.
    pub selection: Selection,
}

impl Default for StoredSelection {
    fn default() -> Self {
        StoredSelection { version: 1, rank: 0, selection: Selection::All }
    }
}

/// Most dimensions of a selection.
const MAX_RANK: u64 = 32;

const NONE: u32 = 0;
const POINTS: u32 = 1;
const HYPERSLAB: u32 = 2;
const ALL: u32 = 3;

const REGULAR: u8 = 0x01;

type Coords = SmallVec<[u64; 4]>;

impl StoredSelection {
    /// The form in which a file of this profile holds a selection from a dataspace of `rank` dimensions.
    pub fn new(profile: LibVer, rank: usize, selection: Selection) -> Self {
        let limit = u64::from(u32::MAX);
        let (version, selection) = match selection {
            Selection::Hyperslab(slab) => {
                let unlimited = slab.count.contains(&UNLIMITED) || slab.block.contains(&UNLIMITED);
                let blocks = slab.count.iter().try_fold(1u64, |n, count| n.checked_mul(*count)).unwrap_or(u64::MAX);
                let large = blocks > limit || last_index_of(&slab).is_none_or(|last| last > limit);
                let version = match profile {
                    LibVer::V112 | LibVer::V114 | LibVer::V200 => 3,
                    _ if unlimited || large => 2,
                    LibVer::V110 if blocks >= 4 => 2,
                    _ => 1,
                };
                let selection =
                    if version == 1 { Selection::Blocks(hyperslab_blocks(&slab)) } else { Selection::Hyperslab(slab) };
                (version, selection)
            }
            Selection::Blocks(blocks) => {
                let large = blocks.len() as u64 > limit || blocks.iter().any(|block| block_end(block) > limit);
                (if large || profile >= LibVer::V112 { 3 } else { 1 }, Selection::Blocks(blocks))
            }
            Selection::Points(points) => {
                let large = points.len() as u64 > limit || points.iter().flatten().any(|at| *at > limit);
                (if large || profile >= LibVer::V112 { 2 } else { 1 }, Selection::Points(points))
            }
            other => (1, other),
        };
        StoredSelection { version, rank, selection }
    }

    fn kind_number(&self) -> u32 {
        match self.selection {
            Selection::None => NONE,
            Selection::Points(_) => POINTS,
            Selection::Hyperslab(_) | Selection::Blocks(_) => HYPERSLAB,
            Selection::All => ALL,
        }
    }

    fn wire_rank(&mut self, w: &mut impl Wire) -> Result<()> {
        let rank = w.derived_uint("rank", Width::FOUR, self.rank as u64)?;
        w.require("rank", rank > 0 && rank <= MAX_RANK, rank, "1 to 32 dimensions")?;
        self.rank = usize::try_from(rank).unwrap_or(usize::MAX);
        Ok(())
    }

    /// The width of numbers, where it is stored.
    fn wire_width(w: &mut impl Wire, largest: u64) -> Result<Width> {
        let wanted = match largest {
            0..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        let bytes = w.derived_u8("width", wanted)?;
        let fault = Fault::InvalidValue { found: bytes.into(), rule: "2, 4 or 8 bytes" };
        Width::new(bytes).filter(|_| matches!(bytes, 2 | 4 | 8)).ok_or_else(|| w.fault("width", fault))
    }

    fn wire_points(&mut self, w: &mut impl Wire) -> Result<()> {
        let mut points = match &mut self.selection {
            Selection::Points(points) => std::mem::take(points),
            _ => Vec::new(),
        };
        let count = points.len() as u64;
        let width = if self.version == 1 {
            w.reserved(4)?;
            let each = u64::try_from(self.rank).unwrap_or(u64::MAX).saturating_mul(4);
            w.derived_uint("length", Width::FOUR, count.saturating_mul(each).saturating_add(8))?;
            Width::FOUR
        } else {
            Self::wire_width(w, points.iter().flatten().copied().fold(count, u64::max))?
        };
        self.wire_rank(w)?;
        let count = w.derived_uint("points", width, count)?;
        let count = w.bounded_count("points", count, self.rank.saturating_mul(width.bytes()))?;
        if w.is_decoding() {
            points.resize(count, SmallVec::from_elem(0, self.rank));
        }
        for point in &mut points {
            wire_coords(w, "coordinate", width, self.rank, point)?;
        }
        self.selection = Selection::Points(points);
        Ok(())
    }

    fn wire_hyperslab(&mut self, w: &mut impl Wire) -> Result<()> {
        let is_regular = matches!(self.selection, Selection::Hyperslab(_));
        w.require("version", w.is_decoding() || self.version != 1 || !is_regular, 1, "version 1 has blocks only")?;
        let mut flags = 0;
        if self.version == 1 {
            w.reserved(4)?;
        } else {
            flags = w.derived_u8("flags", if is_regular { REGULAR } else { 0 })?;
            w.require("flags", flags & !REGULAR == 0, flags.into(), "only the flag 1 exists")?;
        }
        if w.is_decoding() {
            self.selection = if flags & REGULAR == 0 {
                Selection::Blocks(Vec::new())
            } else {
                Selection::Hyperslab(Hyperslab::block(&[], &[]))
            };
        }
        let width =
            if self.version == 3 { Self::wire_width(w, self.max_coordinate())? } else { self.wire_fixed_width(w)? };
        self.wire_rank(w)?;
        let rank = self.rank;
        match &mut self.selection {
            Selection::Hyperslab(slab) => wire_regular(w, width, rank, slab),
            Selection::Blocks(blocks) => wire_irregular(w, width, rank, blocks),
            _ => Ok(()),
        }
    }

    /// The length field of versions 1 and 2, which have a fixed width.
    fn wire_fixed_width(&self, w: &mut impl Wire) -> Result<Width> {
        let width = if self.version == 1 { Width::FOUR } else { Width::EIGHT };
        let bytes = width.bytes() as u64;
        let numbers = match &self.selection {
            Selection::Blocks(blocks) => (blocks.len() as u64).saturating_mul(2),
            _ => 4,
        };
        let numbers = numbers.saturating_mul(u64::try_from(self.rank).unwrap_or(u64::MAX));
        let count = if matches!(self.selection, Selection::Blocks(_)) { bytes } else { 0 };
        w.derived_uint("length", Width::FOUR, numbers.saturating_mul(bytes).saturating_add(count).saturating_add(4))?;
        Ok(width)
    }

    /// The largest number that version 3 has to hold.
    fn max_coordinate(&self) -> u64 {
        match &self.selection {
            Selection::Hyperslab(slab) => {
                let limited = slab.count.iter().chain(&slab.block).copied().filter(|n| *n != UNLIMITED);
                let sizes = limited.fold(0, u64::max).saturating_add(1);
                slab.start.iter().chain(&slab.stride).copied().fold(sizes, u64::max)
            }
            Selection::Blocks(blocks) => blocks.iter().map(block_end).fold(blocks.len() as u64, u64::max),
            _ => 0,
        }
    }
}

/// The largest coordinate in a block; saturates.
fn block_end(block: &Block) -> u64 {
    let last = |(start, count): (&u64, &u64)| start.saturating_add(count.saturating_sub(1));
    block.start.iter().zip(&block.count).map(last).fold(0, u64::max)
}

/// The largest coordinate in a hyperslab; `None` if it does not fit 64 bits.
fn last_index_of(slab: &Hyperslab) -> Option<u64> {
    let dims = slab.start.iter().zip(&slab.stride).zip(&slab.count).zip(&slab.block);
    let mut last = 0;
    for (((start, stride), count), block) in dims {
        let steps = count.saturating_sub(1).checked_mul(*stride)?;
        last = last.max(start.checked_add(steps)?.checked_add(block.saturating_sub(1))?);
    }
    Some(last)
}

/// The blocks of a hyperslab, in row-major order.
fn hyperslab_blocks(slab: &Hyperslab) -> Vec<Block> {
    let mut blocks = Vec::new();
    if slab.count.contains(&0) || slab.count.is_empty() {
        return blocks;
    }
    let mut at: Coords = SmallVec::from_elem(0, slab.count.len());
    loop {
        let steps = slab.start.iter().zip(&slab.stride).zip(&at);
        let start = steps.map(|((start, stride), i)| start.saturating_add(stride.saturating_mul(*i))).collect();
        blocks.push(Block { start, count: slab.block.clone() });
        let mut dims = at.iter_mut().zip(&slab.count).rev();
        let carried = dims.find_map(|(i, count)| {
            *i = i.saturating_add(1);
            if *i < *count {
                return Some(());
            }
            *i = 0;
            None
        });
        if carried.is_none() {
            return blocks;
        }
    }
}

fn wire_coords(w: &mut impl Wire, field: &'static str, width: Width, rank: usize, coords: &mut Coords) -> Result<()> {
    if w.is_decoding() {
        coords.resize(rank, 0);
    }
    w.require(field, coords.len() == rank, coords.len() as u64, "one coordinate for each dimension")?;
    coords.iter_mut().try_for_each(|at| w.uint(field, width, at))
}

/// A number that may be without a limit, which is stored as all ones.
fn wire_limit(w: &mut impl Wire, field: &'static str, width: Width, value: &mut u64) -> Result<()> {
    let stored = if *value == UNLIMITED { width.max_value() } else { *value };
    let read = w.derived_uint(field, width, stored)?;
    *value = if read == width.max_value() { UNLIMITED } else { read };
    Ok(())
}

fn wire_regular(w: &mut impl Wire, width: Width, rank: usize, slab: &mut Hyperslab) -> Result<()> {
    w.bounded_count("rank", rank as u64, width.bytes().saturating_mul(4))?;
    let mut parts = [&mut slab.start, &mut slab.stride, &mut slab.count, &mut slab.block];
    for part in &mut parts {
        if w.is_decoding() {
            part.resize(rank, 0);
        }
        w.require("rank", part.len() == rank, part.len() as u64, "that of the selection")?;
    }
    let [start, stride, count, block] = parts;
    for (((start, stride), count), block) in start.iter_mut().zip(stride).zip(count).zip(block) {
        w.uint("start", width, start)?;
        w.uint("stride", width, stride)?;
        wire_limit(w, "count", width, count)?;
        wire_limit(w, "block", width, block)?;
    }
    Ok(())
}

fn wire_irregular(w: &mut impl Wire, width: Width, rank: usize, blocks: &mut Vec<Block>) -> Result<()> {
    let count = w.derived_uint("blocks", width, blocks.len() as u64)?;
    let count = w.bounded_count("blocks", count, rank.saturating_mul(width.bytes()).saturating_mul(2))?;
    if w.is_decoding() {
        blocks.resize(count, Block { start: Coords::new(), count: Coords::new() });
    }
    for block in blocks {
        wire_coords(w, "start", width, rank, &mut block.start)?;
        let last = |(start, count): (&u64, &u64)| start.saturating_add(count.saturating_sub(1));
        let mut end: Coords = block.start.iter().zip(&block.count).map(last).collect();
        wire_coords(w, "end", width, rank, &mut end)?;
        let backwards = block.start.iter().zip(&end).find(|(start, end)| end < start);
        w.require("end", backwards.is_none(), backwards.map_or(0, |(_, end)| *end), "not before the start")?;
        let size = |(start, end): (&u64, &u64)| end.saturating_sub(*start).saturating_add(1);
        block.count = block.start.iter().zip(&end).map(size).collect();
    }
    Ok(())
}

impl Record for StoredSelection {
    const NAME: &'static str = "selection";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let mut kind = self.kind_number();
        w.u32("selection type", &mut kind)?;
        let latest = match kind {
            POINTS => 2,
            HYPERSLAB => 3,
            _ => 1,
        };
        let version = w.derived_uint("version", Width::FOUR, self.version.into())?;
        let version = u8::try_from(version).unwrap_or(u8::MAX);
        if version == 0 || version > latest {
            return Err(w.fault("version", Fault::UnsupportedVersion { allowed: 1..=latest, found: version }));
        }
        self.version = version;
        match kind {
            POINTS => self.wire_points(w),
            HYPERSLAB => self.wire_hyperslab(w),
            NONE | ALL => {
                self.selection = if kind == ALL { Selection::All } else { Selection::None };
                w.reserved(8)
            }
            found => {
                let rule = "a selection type is 0 (none), 1 (points), 2 (hyperslab) or 3 (all)";
                Err(w.fault("selection type", Fault::InvalidValue { found: found.into(), rule }))
            }
        }
    }
}

#[cfg(test)]
mod tests;
