#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    h5live::fuzz::read_image_objects(data.to_vec());
});
