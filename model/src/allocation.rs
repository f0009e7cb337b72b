//! How much memory is taken for a length that a file or a description states.

/// Most bytes of one allocation whose length comes from a file or a description. The buffers of the caller are not
/// counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationLimit(u64);

/// Why there is no memory for a length that a file or a description states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocationError {
    /// The length is larger than the limit.
    #[error("{bytes} bytes are needed at once, but the option max_allocation is {limit} bytes")]
    OverLimit {
        /// Bytes that are needed.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The system has no memory for it.
    #[error("there is no memory for {0} bytes")]
    NoMemory(u64),
}

impl Default for AllocationLimit {
    /// 256 MiB.
    fn default() -> Self {
        AllocationLimit(256 << 20)
    }
}

impl AllocationLimit {
    /// A limit in bytes.
    pub fn new(bytes: u64) -> Self {
        AllocationLimit(bytes)
    }

    /// The limit in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// The length as one of memory.
    ///
    /// # Errors
    /// [`AllocationError::OverLimit`].
    pub fn check(self, bytes: u64) -> Result<usize, AllocationError> {
        let over = AllocationError::OverLimit { bytes, limit: self.0 };
        if bytes > self.0 {
            return Err(over);
        }
        usize::try_from(bytes).map_err(|_| over)
    }

    /// So many zeros.
    ///
    /// # Errors
    /// [`AllocationError`].
    pub fn zeroed(self, bytes: u64) -> Result<Vec<u8>, AllocationError> {
        let len = self.check(bytes)?;
        // Memory that comes as zeros is not touched.
        bytemuck::allocation::try_zeroed_vec(len).map_err(|()| AllocationError::NoMemory(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_over_the_limit_is_an_error_that_names_both() {
        let limit = AllocationLimit::new(100);
        assert_eq!(limit.zeroed(100).unwrap(), [0; 100]);
        let error = limit.zeroed(101).unwrap_err();
        assert_eq!(error, AllocationError::OverLimit { bytes: 101, limit: 100 });
        assert_eq!(error.to_string(), "101 bytes are needed at once, but the option max_allocation is 100 bytes");
    }

    #[test]
    fn a_length_that_no_machine_has_is_an_error() {
        let limit = AllocationLimit::new(u64::MAX);
        assert_eq!(limit.zeroed(u64::MAX >> 1).unwrap_err(), AllocationError::NoMemory(u64::MAX >> 1));
    }
}
