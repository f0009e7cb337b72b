//! Bytes never make a decoder take more memory than there are bytes, but for a factor and a constant.
#![allow(missing_docs)]

use h5live_format::fuzz::{all_seeds, run_target_on_mutations, run_target_on_systematic_damage};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory for each byte: a field of one byte takes this much when it is listed with its name, place and value.
const EACH: usize = 128;

/// Memory that any structure may take.
const CONSTANT: usize = 8 << 10;

#[test]
fn damaged_bytes_take_no_more_memory_than_they_are_worth() {
    let mut peak = 0;
    let mut measure = |data: &[u8], run: &mut dyn FnMut()| {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        run();
        let taken = MEMORY.peak_usage().saturating_sub(before);
        assert!(taken <= data.len() * EACH + CONSTANT, "{taken} bytes for {} bytes {data:02x?}", data.len());
        peak = peak.max(taken);
    };
    for (i, seed) in all_seeds().iter().enumerate() {
        if seed.data.len() < 200 {
            run_target_on_systematic_damage(seed, &mut measure);
        }
        run_target_on_mutations(seed, 100, 0xfeed + i as u64, &mut measure);
    }
    println!("at most {peak} bytes");
}
