//! strace's text: system calls, signals and exits, one a line, and the tables of `-c`.
//!
//! ```text
//! 9320  1796079698.037667 sendto(9<TCP:[[::1]:4000->[::1]:5432]>, ""..., 55) = 55 <0.000031>
//! 9320  1796079698.038101 futex(0x55f5, FUTEX_WAIT_PRIVATE, 11, NULL <unfinished ...>
//! 9323  1796079698.038154 read(35, 0x7f, 9) = -1 EBADF (Bad file descriptor) <0.000004>
//! 9320  1796079698.537856 <... futex resumed>) = 0 <0.499755>
//! 9323  1796079698.600000 --- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=1, si_uid=0} ---
//! 9323  1796079698.600100 +++ exited with 0 +++
//! ```
//!
//! Understood are `-f` in both forms of the pid, the files of `-ff`, and `-r -t -tt -ttt -T -c -C
//! -w -y -yy -k -i -n -Y`. A call that strace printed in two parts is one record, with the stamp
//! of its first part. The format is described in `strace(1)`.

mod grammar;
mod lines;
mod model;
mod parse;
mod plain;
mod recognise;
mod summary;
#[cfg(test)]
mod tests;
mod totals;

pub use model::{
    Call, Descriptor, Exit, Outcome, Record, Row, Signal, Socket, Stamp, Superseded, arguments,
    descriptor, program, socket,
};
pub use parse::Decoder;
pub use recognise::{is_line, is_table};
pub use totals::{NameTotals, Totals};

/// File name in the capture's folder.
pub const FILE: &str = "trace.strace";
