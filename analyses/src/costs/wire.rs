//! What requests cost on the wire: trips to Postgres and Redis, rows, bytes, responses.
//!
//! [`WireFold`] takes the records of a packet capture, puts connections together, recognises what
//! they speak, and counts by window. Its state is bounded by open connections, distinct
//! statements and windows, not by the length of the capture; only with request slots does it keep
//! every trip inside them.

mod books;
mod counts;
mod details;
mod fold;
mod integrity;
mod loaded;
#[cfg(test)]
mod properties;
mod protocols;
mod recognition;
mod request;
mod routes;
mod serial;
mod statements;
#[cfg(test)]
mod tests;

pub use counts::{Count, Counts};
pub use details::{Details, conclusions, details};
pub use fold::{Taken, WireFold, WirePorts};
pub use integrity::{Integrity, Protocol};
pub use loaded::WireOutcome;
pub use recognition::{Recognition, Spoken};
pub use request::{RequestRecord, RequestTrip};
pub use routes::{RouteCost, RouteTrips};
pub use serial::{Distribution, SerialOutcome};
pub use statements::{StatementCost, StatementId, Statements, TextId};
