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

const fn final_mix(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// Bytes that are mixed at a time.
const BLOCK_BYTES: usize = 12;

/// The hash as far as some of the bytes have gone into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lookup3State {
    a: u32,
    b: u32,
    c: u32,
}

impl Lookup3State {
    /// The checksum of `total_len` bytes in all, before the first one.
    pub fn new(total_len: usize, seed: u32) -> Self {
        #[allow(clippy::cast_possible_truncation, reason = "the algorithm takes the length modulo 2^32")]
        let start = 0xdead_beef_u32.wrapping_add(total_len as u32).wrapping_add(seed);
        Lookup3State { a: start, b: start, c: start }
    }

    /// Adds the words of a block to the state, before they are mixed.
    fn add_block(self, block: &[u8; BLOCK_BYTES]) -> (u32, u32, u32) {
        let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3] = *block;
        (
            self.a.wrapping_add(u32::from_le_bytes([a0, a1, a2, a3])),
            self.b.wrapping_add(u32::from_le_bytes([b0, b1, b2, b3])),
            self.c.wrapping_add(u32::from_le_bytes([c0, c1, c2, c3])),
        )
    }

    /// Adds whole blocks from the start of `bytes`, and leaves at least one byte. Returns the rest.
    pub fn mix_all_but_last_block<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (mut state, mut rest) = (*self, bytes);
        while let Some((block, tail)) = rest.split_first_chunk::<BLOCK_BYTES>().filter(|(_, tail)| !tail.is_empty()) {
            let (a, b, c) = state.add_block(block);
            let (a, b, c) = mix(a, b, c);
            (state, rest) = (Lookup3State { a, b, c }, tail);
        }
        *self = state;
        rest
    }

    /// The hash, with all bytes that have not gone into it.
    pub fn finalize(mut self, bytes: &[u8]) -> u32 {
        let rest = self.mix_all_but_last_block(bytes);
        if rest.is_empty() {
            return self.c;
        }
        // What is missing in the last block counts as zeros.
        let mut last = [0; BLOCK_BYTES];
        if let Some(start) = last.get_mut(..rest.len()) {
            start.copy_from_slice(rest);
        }
        let (a, b, c) = self.add_block(&last);
        final_mix(a, b, c)
    }
}

/// The lookup3 hash of `bytes`, begun with `seed` (0 for checksums and names).
pub fn lookup3(bytes: &[u8], seed: u32) -> u32 {
    Lookup3State::new(bytes.len(), seed).finalize(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Lookup3State, lookup3};

    #[test]
    fn agrees_with_the_published_vectors() {
        assert_eq!(lookup3(b"", 0), 0xdead_beef);
        assert_eq!(lookup3(b"", 0xdead_beef), 0xbd5b_7dde);
        assert_eq!(lookup3(b"Four score and seven years ago", 0), 0x1777_0551);
        assert_eq!(lookup3(b"Four score and seven years ago", 1), 0xcd62_8161);
    }

    #[test]
    fn is_the_same_wherever_it_goes_on() {
        let bytes: Vec<u8> = (0..100).collect();
        for len in 0..bytes.len() {
            for begun in 0..=len {
                let mut hash = Lookup3State::new(len, 7);
                let left = hash.mix_all_but_last_block(&bytes[..begun]).len();
                assert_eq!(hash.finalize(&bytes[begun - left..len]), lookup3(&bytes[..len], 7), "{len} {begun}");
            }
        }
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
