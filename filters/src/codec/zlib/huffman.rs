//! Huffman codes of deflate (RFC 1951, 3.2.2).

/// Lengths of a code (bits), zero for symbols that have none: at most `limit`, and as good as that allows, nearly.
/// There are always two codes at least, as some decoders want it.
pub(super) fn lengths<const N: usize>(counts: &[u32; N], limit: u32) -> [u8; N] {
    let mut counts = *counts;
    for count in counts.iter_mut().take(2) {
        // A code too many hardly takes space.
        *count = (*count).max(1);
    }
    loop {
        if let Some(lengths) = tree(&counts).filter(|lengths| lengths.iter().all(|length| u32::from(*length) <= limit))
        {
            return lengths;
        }
        // Rare symbols become less rare, and their codes shorter.
        for count in &mut counts {
            *count = count.div_ceil(2);
        }
    }
}

/// The lengths of the best code; `None` if one is too long for a byte.
fn tree<const N: usize>(counts: &[u32; N]) -> Option<[u8; N]> {
    let mut leaves: Vec<(u32, usize)> = counts.iter().copied().zip(0..).filter(|(count, _)| *count > 0).collect();
    leaves.sort_unstable();
    // Nodes in the order of their counts: what is joined never counts less than what was joined before.
    let mut nodes: Vec<u32> = Vec::with_capacity(leaves.len());
    let mut parents = vec![0; 2 * leaves.len()];
    let (mut leaf, mut node) = (0, 0);
    for joined in 0..leaves.len().saturating_sub(1) {
        let mut sum = 0u32;
        for _ in 0..2 {
            let index = match (leaves.get(leaf), nodes.get(node)) {
                (Some((count, _)), other) if other.is_none_or(|other| count <= other) => {
                    sum = sum.saturating_add(*count);
                    leaf += 1;
                    leaf - 1
                }
                (_, other) => {
                    sum = sum.saturating_add(*other?);
                    node += 1;
                    leaves.len() + node - 1
                }
            };
            *parents.get_mut(index)? = leaves.len() + joined;
        }
        nodes.push(sum);
    }
    // The root is the last of them; its depth is zero.
    let mut depths = vec![0u8; parents.len()];
    let root = (2 * leaves.len()).checked_sub(2)?;
    for index in (0..root).rev() {
        *depths.get_mut(index)? = depths.get(*parents.get(index)?)?.checked_add(1)?;
    }
    let mut lengths = [0; N];
    for ((_, symbol), depth) in leaves.iter().zip(&depths) {
        *lengths.get_mut(*symbol)? = *depth;
    }
    Some(lengths)
}

/// The codes of lengths up to 15, in the order of a stream: the first bit is the least significant one.
pub(super) fn codes<const N: usize>(lengths: &[u8; N]) -> [u16; N] {
    let mut codes = [0; N];
    let mut next = 0u16;
    for length in 1..=15u8 {
        for (code, _) in codes.iter_mut().zip(lengths).filter(|(_, of)| **of == length) {
            *code = next.reverse_bits() >> (16 - length);
            next = next.wrapping_add(1);
        }
        next = next.wrapping_mul(2);
    }
    codes
}
