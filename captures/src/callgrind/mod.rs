//! Profiles in callgrind's format, as valgrind writes them and Xdebug and others imitate them:
//! <https://valgrind.org/docs/manual/cl-format.html>.
//!
//! ```text
//! events: Ir
//! fl=(1) a.c
//! fn=(1) main
//! 10 100
//! cfn=(2) work
//! calls=2 20
//! 11 60
//! ```
//!
//! [`Decoder`] delivers cost lines and calls as it meets them; [`Profile`] is the sink that adds
//! them up per function. Names are kept once; nothing else grows with the file.

mod inclusive;
mod model;
mod names;
mod parse;
mod profile;
#[cfg(test)]
mod tests;

pub use inclusive::Inclusive;
pub use model::{Derived, Function, FunctionId, Record, Term};
pub use parse::Decoder;
pub use profile::{FunctionCosts, Part, Profile, Total};
