//! What is tried with any bytes, one function a format: nothing panics, nothing loops, and the
//! answer does not hang on the size of the pieces in which a file arrives. The fuzz targets call
//! these functions, and so does a test on stable Rust.

pub mod formats;
