//! Numbers for tests that damage files.

/// Numbers that follow from a seed (xorshift).
pub struct Random(pub u64);

impl Random {
    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }
}
