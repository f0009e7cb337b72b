#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    h5live_hsds::fuzz::read_domain_with_changed_chunk(data);
});
