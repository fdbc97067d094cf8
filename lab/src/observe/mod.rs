//! Attaching to a service that already runs: who it is, and whom it talks to.
//!
//! [`Snapshot`] is what `/proc` shows at one moment: processes, their sockets, and the TCP tables
//! of every network namespace. [`find`] picks a service out of it: a [`Found`] is its processes,
//! where it listens, and the services behind its connections. Nothing of the service is changed.

mod attach;
mod clocks;
mod command_trips;
mod found;
mod held;
mod live;
mod options;
mod plan;
mod poolers;
mod rights;
mod routes;
mod screen;
mod snapshot;
mod tables;
#[cfg(test)]
mod tests;
mod vantage;

pub use attach::{Attachment, Spoken, in_words, look_for};
pub use clocks::Clocks;
pub use command_trips::{Said, read as read_command};
pub use found::{Found, FoundServer, FoundService, NotFound, Place, Wanted, find};
pub use held::{Ended, Held};
pub use live::Live;
pub use options::{Options, Target};
pub use plan::materials;
pub use rights::lost;
pub use routes::Route;
pub use screen::{Screen, Second};
pub use snapshot::{Network, Seen, Snapshot};
pub use tables::{Socket, State, UnixListener, UnixSockets};
pub use vantage::Vantage;
