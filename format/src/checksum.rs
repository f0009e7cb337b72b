//! The checksum of metadata: Bob Jenkins' lookup3 (`hashlittle`), which is also the hash of link and attribute names.

const fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    (a, b, c)
}

const fn finish(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, byte| (word << 8) | u32::from(*byte))
}

/// The lookup3 hash of `bytes`, begun with `seed` (0 for checksums and names).
pub fn lookup3(bytes: &[u8], seed: u32) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "the algorithm takes the length modulo 2^32")]
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(seed);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    while let Some((block, tail)) = rest.split_first_chunk::<12>().filter(|(_, tail)| !tail.is_empty()) {
        let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3] = *block;
        (a, b, c) = mix(
            a.wrapping_add(u32::from_le_bytes([a0, a1, a2, a3])),
            b.wrapping_add(u32::from_le_bytes([b0, b1, b2, b3])),
            c.wrapping_add(u32::from_le_bytes([c0, c1, c2, c3])),
        );
        rest = tail;
    }
    if rest.is_empty() {
        return c;
    }
    let mut words = rest.chunks(4).map(word);
    a = a.wrapping_add(words.next().unwrap_or(0));
    b = b.wrapping_add(words.next().unwrap_or(0));
    c = c.wrapping_add(words.next().unwrap_or(0));
    finish(a, b, c)
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    #[test]
    fn agrees_with_the_published_vectors() {
        assert_eq!(lookup3(b"", 0), 0xdead_beef);
        assert_eq!(lookup3(b"", 0xdead_beef), 0xbd5b_7dde);
        assert_eq!(lookup3(b"Four score and seven years ago", 0), 0x1777_0551);
        assert_eq!(lookup3(b"Four score and seven years ago", 1), 0xcd62_8161);
    }

    #[test]
    fn sees_every_bit_of_a_block() {
        let zeros = [0u8; 37];
        let base = lookup3(&zeros, 0);
        for bit in 0..zeros.len() * 8 {
            let mut flipped = zeros;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(lookup3(&flipped, 0), base, "bit {bit}");
        }
    }
}
