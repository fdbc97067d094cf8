//! What load generators print when they are done: oha, k6, wrk, wrk2, hey, ab, vegeta, in the
//! forms that people keep (JSON, text, CSV, streams of results).
//!
//! ```text
//! Running 10s test @ http://localhost:5000
//!   2 threads and 10 connections
//!     Latency     7.99ms    1.70ms  12.71ms   93.85%
//!   12479 requests in 10.01s, 1.34MB read
//!   Socket errors: connect 1, read 20, write 0, timeout 4
//!   Non-2xx or 3xx responses: 12000
//! Requests/sec:   1246.57
//! ```
//!
//! The tools differ in what they call a request, a failure and a rate; [`Report`] has one meaning
//! for each, and says [`Stated::Refused`] where a tool printed nonsense.

mod ab;
mod hey;
mod histogram;
mod k6;
mod k6_stream;
mod model;
mod oha;
mod parse;
mod quantities;
mod recognise;
#[cfg(test)]
mod tests;
mod vegeta;
mod wrk;

pub use model::{ErrorCount, Latency, Report, Stated, Threshold, Tool};
pub use parse::Decoder;
pub use recognise::{Form, form};
