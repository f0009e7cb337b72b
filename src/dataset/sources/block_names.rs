//! Sources with the number of a block in their names, and patterns without limit.

use h5live_model::{Hyperslab, Name, Selection, UNLIMITED, VirtualSource};

/// Blocks of one source name with a number in it that are looked for.
pub(super) const MAX_BLOCKS: u64 = 1 << 20;

/// A name in which `%b` stands for the number of a block, and `%%` for a percent sign.
pub(super) fn expand_block_name(name: &Name, block: u64) -> Name {
    let mut out = Vec::new();
    let mut bytes = name.as_bytes().iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'%', Some(b'b')) => {
                bytes.next();
                out.extend(block.to_string().into_bytes());
            }
            (b'%', Some(b'%')) => {
                bytes.next();
                out.push(b'%');
            }
            _ => out.push(byte),
        }
    }
    out.into()
}

/// Whether a name has a number of a block in it.
pub(super) fn is_numbered(name: &Name) -> bool {
    expand_block_name(name, 0) != expand_block_name(name, 1)
}

/// The files and datasets that a source stands for: as many as there are numbers, if its names have one in them.
pub(super) fn numbered_sources(source: &VirtualSource) -> impl Iterator<Item = (Name, Name)> {
    let blocks = if is_numbered(&source.file) || is_numbered(&source.dataset) { MAX_BLOCKS } else { 1 };
    (0..blocks).map(|block| (expand_block_name(&source.file, block), expand_block_name(&source.dataset, block)))
}

/// The dimension along which a selection has no limit.
pub(super) fn unlimited_dimension(selection: &Selection) -> Option<usize> {
    let Selection::Hyperslab(slab) = selection else { return None };
    slab.count.iter().zip(&slab.block).position(|(count, block)| *count == UNLIMITED || *block == UNLIMITED)
}

/// One block of a pattern that repeats along a dimension.
pub(super) fn nth_block(slab: &Hyperslab, dim: usize, block: u64) -> Option<Hyperslab> {
    let mut one = slab.clone();
    one.start[dim] = slab.stride.get(dim)?.checked_mul(block)?.checked_add(*slab.start.get(dim)?)?;
    one.count[dim] = 1;
    Some(one)
}
