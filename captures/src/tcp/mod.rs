//! TCP streams: from captured segments to the bytes that each side read, in order.
//!
//! Specification: RFC 9293. A capture is not the network: it can begin and end anywhere, hold
//! every frame twice (`lo`, `any`), miss frames that arrived, and show them out of order.
//!
//! ```text
//! seq 1001  "SELECT"        delivered
//! seq 1012  " 1"            kept: 1007..1012 has not been seen
//! seq 1001  "SELECT"        a copy: nothing new
//! seq 1007  " 1+1,"         delivered, and " 1" after it
//! ```
//!
//! [`Streams`] delivers [`Event`]s. What never comes is a [`Event::Gap`] of known length, said as
//! soon as the receiver has acknowledged the missing bytes and the conversation goes on.

mod direction;
mod model;
mod streams;
#[cfg(test)]
mod tests;

pub use model::{Connection, End, Event, EventSink, Figures, Side};
pub use streams::Streams;
