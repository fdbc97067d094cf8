//! Any bytes, read as `http`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assay_captures_fuzz::formats::http(bytes));
