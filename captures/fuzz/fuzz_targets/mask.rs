//! Any bytes, read as `mask`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assay_captures_fuzz::formats::mask(bytes));
