#![no_main]

use h5live_log::entry::{decode_frame, decode_head_and_rank};

/// Where the checksum of the head is. A fuzzer cannot find it, so it counts for nothing here.
const CHECKSUM: std::ops::Range<usize> = 4..8;

// Bytes are no entry, or those that the entry is written as.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let bounds = decode_frame(data);
    if let Ok((head, rank)) = decode_head_and_rank(data) {
        let mut bytes = Vec::new();
        head.encode(rank, &mut bytes);
        assert_eq!(bounds, Ok(head.lengths()));
        bytes[CHECKSUM].copy_from_slice(&data[CHECKSUM]);
        assert_eq!(bytes, data[..bytes.len()]);
    }
});
