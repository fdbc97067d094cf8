//! The text of `perf script`: one sample a block, its stack from the leaf up.
//!
//! ```text
//! axum-sqlx  4123/4127  [000]  1796080364.776693123:    2004008 cpu-clock:pppH:
//!         ffffffff8a1c0e2b _raw_spin_unlock_irqrestore+0x1b ([kernel.kallsyms])
//!         ffffffff89e4d1f3 __x64_sys_sendto+0x23 ([kernel.kallsyms])
//!             7f2c1a0f2d94 send+0x64 (/usr/lib/x86_64-linux-gnu/libc.so.6)
//!             55d0c33a1b02 <tokio::net::TcpStream>::try_io+0x52 (/srv/axum-sqlx)
//! ```
//!
//! Fields before the event may be missing, thread names may hold anything, and the period is a
//! weight, not a count of samples. `perf-script(1)` describes the fields.

mod header;
mod model;
mod parse;
#[cfg(test)]
mod tests;

pub use header::is_stamped;
pub use model::{Frame, Sample};
pub use parse::Decoder;

/// File name in the capture's folder: the text, gzipped, since stacks repeat themselves.
pub const FILE: &str = "stacks.txt.gz";
/// The same as it was before it was gzipped; such captures are still read.
pub const PLAIN_FILE: &str = "stacks.txt";
