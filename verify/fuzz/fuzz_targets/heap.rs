#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    h5live_format::fuzz::run_target("heap", data);
});
