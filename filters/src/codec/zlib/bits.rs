//! Bits of a deflate stream (RFC 1951), the least significant one of a byte first.

/// The most bytes of a stored block.
const MAX_STORED_BLOCK_BYTES: usize = 0xffff;

/// Appends bits to bytes.
pub(super) struct DeflateBitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits that are not yet in `out`, zeros above them; fewer than 32 between calls.
    held: u64,
    count: u32,
}

impl<'a> DeflateBitWriter<'a> {
    /// Begins at a whole byte.
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        DeflateBitWriter { out, held: 0, count: 0 }
    }

    /// Appends the low `count` bits of `bits`, at most 32; those above are zero.
    #[inline]
    pub(super) fn put_bits(&mut self, bits: u32, count: u32) {
        self.held |= u64::from(bits) << self.count;
        self.count += count;
        if self.count >= 32 {
            self.out.extend_from_slice(&(self.held as u32).to_le_bytes());
            self.held >>= 32;
            self.count -= 32;
        }
    }

    /// Appends zeros up to the next whole byte. Returns the complete bytes.
    fn end_with_empty_block(&mut self) -> &mut Vec<u8> {
        while self.count > 0 {
            self.out.push(self.held as u8);
            self.held >>= 8;
            self.count = self.count.saturating_sub(8);
        }
        self.out
    }

    /// Appends stored blocks, at least one.
    pub(super) fn put_stored_blocks(&mut self, data: &[u8], last: bool) {
        let mut rest = data;
        loop {
            let (block, after) = rest.split_at(rest.len().min(MAX_STORED_BLOCK_BYTES));
            self.put_bits(u32::from(last && after.is_empty()), 3);
            let out = self.end_with_empty_block();
            let length = block.len() as u16;
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&(!length).to_le_bytes());
            out.extend_from_slice(block);
            if after.is_empty() {
                return;
            }
            rest = after;
        }
    }

    /// The bytes so far, to which whole bytes may be appended. Appends an empty block if they would not end with a
    /// whole byte.
    pub(super) fn align_to_byte(&mut self) -> &mut Vec<u8> {
        if self.count > 0 {
            self.put_stored_blocks(&[], false);
        }
        self.out
    }

    /// Removes everything behind the first `bits` bits of the byte at `at`.
    pub(super) fn truncate(&mut self, at: usize, bits: u32) {
        let partial = self.out.get(at).map_or(0, |byte| u64::from(*byte));
        self.out.truncate(at);
        self.held = partial & ((1 << bits) - 1);
        self.count = bits;
    }

    /// Fills the last byte.
    pub(super) fn finish(mut self) {
        self.end_with_empty_block();
    }
}
