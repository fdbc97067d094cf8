//! What the programs on sockets look at: system calls, the kernel's structures, and the maps.

use super::btf::Btf;
use super::kernel::Map;

/// What a system call does: bits of the table of calls.
#[allow(missing_docs, reason = "the names say it")]
pub mod call {
    pub const SEND: i32 = 1;
    pub const RECEIVE: i32 = 1 << 1;
    /// Second argument: bytes.
    pub const BUFFER: i32 = 1 << 2;
    /// Second and third argument: an array of buffers.
    pub const VECTOR: i32 = 1 << 3;
    /// Second argument: a message with an array of buffers.
    pub const MESSAGE: i32 = 1 << 4;
    /// Second argument: messages; the result counts them.
    pub const MESSAGES: i32 = 1 << 5;
    /// Bytes pass that cannot be copied.
    pub const OPAQUE: i32 = 1 << 6;
    pub const CONNECT: i32 = 1 << 7;
    pub const ACCEPT: i32 = 1 << 8;
    pub const CLOSE: i32 = 1 << 9;
    pub const URING: i32 = 1 << 10;
    /// Third argument: flags such as `MSG_PEEK`.
    pub const FLAGS_THIRD: i32 = 1 << 11;
    /// Fourth argument: flags.
    pub const FLAGS_FOURTH: i32 = 1 << 12;
    /// In records: the socket was not known before; its address follows.
    pub const NEW: i32 = 1 << 16;
    /// In records: the other end has said that it sends no more.
    pub const END: i32 = 1 << 17;
}

/// The system calls that are looked at.
pub const CALLS: [(&str, i32); 17] = [
    ("sendto", call::SEND | call::BUFFER),
    ("write", call::SEND | call::BUFFER),
    ("writev", call::SEND | call::VECTOR),
    ("pwritev2", call::SEND | call::VECTOR),
    ("sendmsg", call::SEND | call::MESSAGE),
    ("sendmmsg", call::SEND | call::MESSAGES),
    ("sendfile", call::SEND | call::OPAQUE),
    ("recvfrom", call::RECEIVE | call::BUFFER | call::FLAGS_FOURTH),
    ("read", call::RECEIVE | call::BUFFER),
    ("readv", call::RECEIVE | call::VECTOR),
    ("preadv2", call::RECEIVE | call::VECTOR),
    ("recvmsg", call::RECEIVE | call::MESSAGE | call::FLAGS_THIRD),
    ("recvmmsg", call::RECEIVE | call::MESSAGES | call::FLAGS_FOURTH),
    ("connect", call::CONNECT),
    ("accept", call::ACCEPT),
    ("accept4", call::ACCEPT),
    ("close", call::CLOSE),
];

/// The call that starts work of io_uring, which is not seen here.
pub const URING: &str = "io_uring_enter";

/// What the programs count, by its place in the map of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Records for which the ring had no room, calls with more buffers than steps, and children
    /// that are not followed; the first, since [`super::programs::follow_forks`] counts there.
    Dropped,
    /// Pieces that could not be read from the caller's memory.
    Unreadable,
    /// Calls on sockets for which the table had no room.
    Untracked,
    /// Calls of `io_uring_enter`.
    Uring,
}

impl Counted {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dropped, Self::Unreadable, Self::Untracked, Self::Uring];
}

/// The maps that the programs share.
#[derive(Debug)]
pub struct Maps {
    /// Process → role.
    pub watched: Map,
    /// System call → bits of [`call`].
    pub calls: Map,
    /// Inode → bytes sent, bytes received, whether it is ignored.
    pub sockets: Map,
    /// Thread → when its send began.
    pub entered: Map,
    /// Where a record is put together.
    pub scratch: Map,
    /// Where records go.
    pub ring: Map,
    /// [`Counted`].
    pub counts: Map,
}

/// Where the kernel keeps what leads from a descriptor to its socket, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is `structure.field`")]
pub struct Layout {
    pub task_files: i32,
    pub files_fdt: i32,
    pub fdt_max: i32,
    pub fdt_fd: i32,
    pub file_inode: i32,
    pub file_private: i32,
    pub file_references: i32,
    /// How one reference is written there.
    pub one_reference: i32,
    pub inode_mode: i32,
    pub inode_number: i32,
    pub socket_sk: i32,
    pub socket_type: i32,
    pub sk_family: i32,
    pub sk_port: i32,
    pub sk_peer_port: i32,
    pub sk_address: i32,
    pub sk_peer_address: i32,
    pub sk_v6_address: i32,
    pub sk_v6_peer_address: i32,
    pub unix_address: i32,
    pub unix_peer: i32,
    pub address_length: i32,
    pub address_name: i32,
}

impl Layout {
    /// Reads it from the kernel's types; `None` where one of the fields has another name.
    #[must_use]
    pub fn read(btf: &Btf<'_>) -> Option<Self> {
        let at = |structure: &str, field: &str| {
            btf.offset(structure, field).and_then(|offset| i32::try_from(offset).ok())
        };
        // Kernel 6.13 counts references from 0, in a structure of its own.
        let (file_references, one_reference) = match at("file", "f_ref") {
            Some(offset) => (offset, 0),
            None => (at("file", "f_count")?, 1),
        };
        Some(Self {
            task_files: at("task_struct", "files")?,
            files_fdt: at("files_struct", "fdt")?,
            fdt_max: at("fdtable", "max_fds")?,
            fdt_fd: at("fdtable", "fd")?,
            file_inode: at("file", "f_inode")?,
            file_private: at("file", "private_data")?,
            file_references,
            one_reference,
            inode_mode: at("inode", "i_mode")?,
            inode_number: at("inode", "i_ino")?,
            socket_sk: at("socket", "sk")?,
            socket_type: at("socket", "type")?,
            sk_family: at("sock_common", "skc_family")?,
            sk_port: at("sock_common", "skc_num")?,
            sk_peer_port: at("sock_common", "skc_dport")?,
            sk_address: at("sock_common", "skc_rcv_saddr")?,
            sk_peer_address: at("sock_common", "skc_daddr")?,
            sk_v6_address: at("sock_common", "skc_v6_rcv_saddr")?,
            sk_v6_peer_address: at("sock_common", "skc_v6_daddr")?,
            unix_address: at("unix_sock", "addr")?,
            unix_peer: at("unix_sock", "peer")?,
            address_length: at("unix_address", "len")?,
            address_name: at("unix_address", "name")?,
        })
    }
}
