//! Any bytes, read as `perf_script`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assay_captures_fuzz::formats::perf_script(bytes));
