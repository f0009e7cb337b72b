#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    h5live::fuzz::file(data.to_vec());
});
