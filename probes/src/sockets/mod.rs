//! What processes say on their own stream sockets, Unix-domain ones included, which no packet
//! capture sees.
//!
//! ```text
//! BPF programs ─▶ ring ─▶ tap ─▶ records ─▶ conversations ─▶ frames ─▶ sorter ─▶ capture.pcapng
//! ```
//!
//! The bytes are those of the client's own calls. They are written as Ethernet frames with TCP
//! headers made up for them, one connection a socket, so that whatever reads packets reads them.

pub mod conversations;
pub mod frames;
pub mod processes;
pub mod record;
pub mod servers;
pub mod sorter;
pub mod source;
pub mod tap;
