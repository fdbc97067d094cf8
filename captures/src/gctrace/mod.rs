//! What a Go program prints with `GODEBUG=gctrace=1`, one line a collection (broken here), among
//! whatever else it writes to standard error:
//! <https://pkg.go.dev/runtime#hdr-Environment_Variables>.
//!
//! ```text
//! gc 1 @0.012s 2%: 0.026+0.39+0.10 ms clock, 0.21+0.88/0.52/0+0.84 ms cpu,
//!   4->4->0 MB, 5 MB goal, 0 MB stacks, 0 MB globals, 8 P (forced)
//! ```

mod model;
mod parse;
#[cfg(test)]
mod tests;

pub use model::{Collection, Summary};
pub use parse::{Decoder, is_trace};
