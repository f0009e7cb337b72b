#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    h5live_kv::fuzz::read_corrupted_container(data);
});
