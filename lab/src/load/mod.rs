//! The load driver: sends requests to one address in laps and says exactly what came back.
//!
//! It is one thread of its own with a current-thread runtime, pinned to the `load` CPUs, with one
//! task a connection. It knows an address, requests, and which
//! processes must be still; nothing of subjects, probes or plans.
//! Every request that it sends is accounted for: an answer, or an error of a known kind.

pub mod cancel;
mod checks;
mod closed;
mod connection;
mod driver;
pub mod errors;
mod fixed_rate;
pub mod gate;
mod lap;
mod requests;
mod serial;
mod stillness;
mod tally;
mod timeline;
mod timer;

pub use cancel::Cancel;
pub use driver::Driver;
pub use lap::{Ending, LapFigures, LapOrder, Stop};
pub use requests::{RequestError, Requests};
pub use stillness::Stillness;

#[cfg(test)]
mod tests;
