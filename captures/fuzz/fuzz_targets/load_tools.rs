//! Any bytes, read as `load_tools`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assay_captures_fuzz::formats::load_tools(bytes));
