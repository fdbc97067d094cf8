//! Any bytes, read as `json_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assay_captures_fuzz::formats::json_lines(bytes));
