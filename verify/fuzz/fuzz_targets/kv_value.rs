#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    h5live_kv::fuzz::read_container_with_changed_value(data);
});
