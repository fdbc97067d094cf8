//! The programs that copy what processes send and receive on their sockets.
//!
//! At the end of a call the kernel knows how many bytes have passed, the caller's buffer is still
//! the caller's, and its pages are in memory: so bytes are copied there, and never more than
//! passed. The beginning of a call is only noted, as the moment that a send belongs to.
//!
//! A socket is known by its inode number, however many descriptors and processes share it. How
//! many bytes have passed each way is counted beside it, so that bytes which are not copied leave
//! a hole of known length.
//!
//! Every record begins with the 64 bytes of [`crate::sockets::record`].

use super::instructions::Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use super::instructions::Width::{Double, Half, Word};
use super::instructions::{Assembler, Helper, Instruction, Register, When};
use super::programs::{NUMBER_OFFSET, role_of_current};
use super::reading::{address, follow, read_kernel, read_kernel_or, read_to_scratch, read_user};
use super::socket_layout::{Counted, Layout, Maps, call};

/// Length of the head of a record.
pub const HEAD: u32 = 64;
/// Most bytes of one record.
pub const CHUNK: u32 = 16 * 1024;
/// Length of the value in which a record is put together.
pub const SCRATCH: u32 = HEAD + CHUNK + 72;
/// Most bytes of an address.
pub const ADDRESS: u32 = 128;
/// Steps of one call: a step copies a chunk or goes to the next buffer.
const STEPS: i32 = 128;
/// A record does not wake the reader: across CPUs that would cost the sender 20 µs and more.
const NO_WAKE_UP: i32 = 1;
/// `BPF_NOEXIST`
const IF_NEW: i32 = 1;

/// Where the four first arguments of a call lie among its registers.
#[cfg(target_arch = "x86_64")]
const ARGUMENTS: [i32; 4] = [112, 104, 96, 56]; // struct pt_regs: di, si, dx, r10
#[cfg(not(target_arch = "x86_64"))]
const ARGUMENTS: [i32; 4] = [272, 8, 16, 24]; // of arm64: orig_x0, regs[1..4]

const EINPROGRESS: i32 = 115;
/// `MSG_PEEK` takes nothing from the socket; `MSG_ERRQUEUE` no bytes of the conversation.
const NOT_TAKEN: i32 = 0x2 | 0x2000;
/// `MSG_TRUNC`: the bytes are thrown away.
const THROWN_AWAY: i32 = 0x20;
const STREAM: i32 = 1;
const AF_UNIX: i32 = 1;
const AF_INET: i32 = 2;
const AF_INET6: i32 = 10;
/// Of an inode's mode: what it is, and that it is a socket.
const KIND_MASK: i32 = 0xf000;
const KIND_SOCKET: i32 = 0xc000;

/// Places on the stack.
pub(super) mod slot {
    pub(in crate::bpf) const WORD: i16 = -8;
    pub(super) const INODE: i16 = -16;
    pub(super) const CALL: i16 = -24;
    pub(super) const DESCRIPTOR: i16 = -32;
    pub(super) const SECOND: i16 = -40;
    pub(super) const THIRD: i16 = -48;
    pub(super) const FOURTH: i16 = -56;
    pub(super) const FILE: i16 = -64;
    /// Three words: a new entry of the table of sockets.
    pub(super) const ENTRY: i16 = -88;
    pub(super) const OFFSET: i16 = -136;
    pub(super) const STEPS: i16 = -160;
    pub(super) const FAMILY: i16 = -168;
    pub(super) const ENTERED: i16 = -176;
    pub(super) const NOW: i16 = -184;
    pub(super) const TASK: i16 = -192;
    /// A `struct iovec`.
    pub(super) const IOVEC: i16 = -208;
    /// A `struct mmsghdr`, of 64 bytes.
    pub(super) const HEADER: i16 = -272;
    /// A record without bytes.
    pub(super) const RECORD: i16 = -336;
}

/// Places behind the record in the scratch value, where the steps of a call keep their state. What
/// is read back from there is unknown to the verifier, so that one step looks to it like the next:
/// on the stack it would follow every number through every step, and give up.
mod held {
    use super::{CHUNK, HEAD};

    const START: i16 = (HEAD + CHUNK) as i16;
    pub(super) const LEFT: i16 = START;
    pub(super) const AT: i16 = START + 8;
    pub(super) const BUFFER_LEFT: i16 = START + 16;
    pub(super) const VECTOR: i16 = START + 24;
    pub(super) const VECTOR_LEFT: i16 = START + 32;
    pub(super) const MESSAGE: i16 = START + 40;
    pub(super) const MESSAGES_LEFT: i16 = START + 48;
    pub(super) const OFFSET: i16 = START + 56;
    pub(super) const CALL: i16 = START + 64;
    pub(super) const ALL: [i16; 7] =
        [LEFT, AT, BUFFER_LEFT, VECTOR, VECTOR_LEFT, MESSAGE, MESSAGES_LEFT];
}

/// At `sys_enter(registers, number)`: notes when a send begins, tells of sockets that are closed
/// for good, and counts calls of io_uring.
#[must_use]
pub fn note_calls(maps: &Maps, layout: &Layout, inet: bool) -> Vec<Instruction> {
    let mut p = Assembler::new();
    p.load(Double, R6, R1, 0).load(Double, R7, R1, 8);
    role_of_current(&mut p, &maps.watched, R8);
    p.store(Double, R10, slot::WORD, R7);
    call_of(&mut p, maps);
    p.load(Double, R1, R10, slot::CALL)
        .jump_if(R1, When::Has, call::URING, "uring")
        .jump_if(R1, When::Has, call::CLOSE, "close")
        .jump_if(R1, When::Has, call::SEND, "send")
        .jump("leave");

    p.label("uring");
    count(&mut p, maps, Counted::Uring);
    p.jump("leave");

    p.label("send").call(Helper::Now).store(Double, R10, slot::NOW, R0);
    p.call(Helper::CurrentPidTgid).store(Word, R10, slot::WORD, R0);
    p.map(R1, maps.entered.descriptor());
    address(&mut p, R2, slot::WORD);
    address(&mut p, R3, slot::NOW);
    p.set(R4, 0).call(Helper::Update).jump("leave");

    p.label("close");
    read_kernel(&mut p, slot::DESCRIPTOR, 8, R6, ARGUMENTS[0]);
    find_socket(&mut p, layout, inet);
    p.map(R1, maps.sockets.descriptor());
    address(&mut p, R2, slot::INODE);
    p.call(Helper::Lookup).jump_if(R0, When::Equal, 0, "leave");
    p.load(Double, R1, R10, slot::FILE);
    read_kernel(&mut p, slot::WORD, 8, R1, layout.file_references);
    p.load(Double, R1, R10, slot::WORD)
        .jump_if(R1, When::Different, layout.one_reference, "leave")
        .call(Helper::Now)
        .store(Double, R10, slot::NOW, R0)
        .call(Helper::CurrentPidTgid)
        .store(Double, R10, slot::TASK, R0)
        .set(R0, 0)
        .store(Double, R10, slot::ENTERED, R0)
        .store(Double, R10, slot::OFFSET, R0);
    p.copy(R9, R10).add(R9, i32::from(slot::RECORD)).set(R6, 0);
    head_with(&mut p, call::CLOSE, [(R10, slot::OFFSET), (R10, slot::CALL)]);
    p.store(Double, R9, 48, R6).store(Double, R9, 56, R6).set(R2, HEAD as i32);
    output(&mut p, maps, "told");
    p.map(R1, maps.sockets.descriptor());
    address(&mut p, R2, slot::INODE);
    p.call(Helper::Delete);
    p.label("leave").leave();
    p.finish()
}

/// At `sys_exit(registers, result)`: copies what has passed.
#[must_use]
pub fn copy_bytes(maps: &Maps, layout: &Layout, inet: bool) -> Vec<Instruction> {
    let mut p = Assembler::new();
    p.load(Double, R6, R1, 0).load(Double, R7, R1, 8);
    role_of_current(&mut p, &maps.watched, R8);
    read_kernel(&mut p, slot::WORD, 8, R6, NUMBER_OFFSET);
    call_of(&mut p, maps);
    has_passed(&mut p);
    arguments(&mut p);
    find_socket(&mut p, layout, inet);
    p.set(R1, 0).store(Double, R10, slot::WORD, R1).map(R1, maps.scratch.descriptor());
    address(&mut p, R2, slot::WORD);
    p.call(Helper::Lookup).jump_if(R0, When::Equal, 0, "leave").copy(R9, R0);
    p.load(Double, R1, R10, slot::CALL).store(Double, R9, held::CALL, R1);
    moments(&mut p, maps);
    entry(&mut p, maps, layout);
    pieces(&mut p, maps);
    p.label("leave").leave();
    p.finish()
}

/// The bits of the call whose number is in `WORD`, to `CALL`; leaves when it has none.
fn call_of(p: &mut Assembler, maps: &Maps) {
    p.map(R1, maps.calls.descriptor());
    address(p, R2, slot::WORD);
    p.call(Helper::Lookup)
        .jump_if(R0, When::Equal, 0, "leave")
        .load(Word, R1, R0, 0)
        .jump_if(R1, When::Equal, 0, "leave")
        .store(Double, R10, slot::CALL, R1);
}

/// Goes on where the result in `R7` says that something has passed or begun.
fn has_passed(p: &mut Assembler) {
    p.load(Double, R1, R10, slot::CALL)
        .jump_if(R1, When::Has, call::CONNECT, "connect")
        .jump_if(R1, When::Has, call::CLOSE | call::URING, "leave")
        .jump_if(R7, When::Below, 0, "leave")
        .jump_if(R7, When::Different, 0, "passed")
        .jump_if(R1, When::Has, call::RECEIVE | call::ACCEPT, "passed")
        .jump("leave")
        .label("connect")
        .jump_if(R7, When::Equal, 0, "passed")
        .jump_if(R7, When::Different, -EINPROGRESS, "leave")
        .label("passed");
}

/// Reads the arguments, and leaves where a receive has taken nothing from the socket.
fn arguments(p: &mut Assembler) {
    let places = [slot::DESCRIPTOR, slot::SECOND, slot::THIRD, slot::FOURTH];
    for (place, offset) in places.into_iter().zip(ARGUMENTS) {
        read_kernel(p, place, 8, R6, offset);
    }
    p.load(Double, R1, R10, slot::CALL)
        .jump_if(R1, When::Has, call::ACCEPT, "accepted")
        .load(Double, R2, R10, slot::THIRD)
        .jump_if(R1, When::Has, call::FLAGS_THIRD, "flags")
        .load(Double, R2, R10, slot::FOURTH)
        .jump_if(R1, When::Has, call::FLAGS_FOURTH, "flags")
        .jump("argued")
        .label("accepted")
        .store(Double, R10, slot::DESCRIPTOR, R7)
        .jump("argued")
        .label("flags")
        .jump_if(R2, When::Has, NOT_TAKEN, "leave")
        .jump_if(R2, When::Has, THROWN_AWAY, "thrown away")
        .jump("argued")
        .label("thrown away")
        .set(R1, call::RECEIVE | call::OPAQUE)
        .store(Double, R10, slot::CALL, R1)
        .label("argued");
}

/// From the descriptor in `DESCRIPTOR` to its stream socket: the inode's number to `INODE`, the
/// family to `FAMILY`, the file to `FILE`, `struct sock` to `R6`; leaves where it is none.
fn find_socket(p: &mut Assembler, layout: &Layout, inet: bool) {
    p.call(Helper::CurrentTask).copy(R1, R0);
    follow(p, layout.task_files);
    follow(p, layout.files_fdt);
    p.copy(R6, R1);
    read_kernel(p, slot::WORD, 4, R6, layout.fdt_max);
    p.load(Word, R1, R10, slot::WORD)
        .load(Word, R2, R10, slot::DESCRIPTOR)
        .jump_if_register(R2, When::Under, R1, "in table")
        .jump("leave")
        .label("in table")
        .copy(R1, R6);
    follow(p, layout.fdt_fd);
    p.load(Word, R2, R10, slot::DESCRIPTOR).shift_left(R2, 3).add_register(R1, R2);
    follow(p, 0);
    p.store(Double, R10, slot::FILE, R1).copy(R6, R1);
    follow(p, layout.file_inode);
    p.copy(R8, R1);
    read_kernel(p, slot::WORD, 2, R8, layout.inode_mode);
    p.load(Half, R1, R10, slot::WORD).mask(R1, KIND_MASK).jump_if(
        R1,
        When::Different,
        KIND_SOCKET,
        "leave",
    );
    read_kernel(p, slot::INODE, 8, R8, layout.inode_number);
    p.copy(R1, R6);
    follow(p, layout.file_private);
    p.copy(R8, R1);
    read_kernel(p, slot::WORD, 2, R8, layout.socket_type);
    p.load(Half, R1, R10, slot::WORD).jump_if(R1, When::Different, STREAM, "leave").copy(R1, R8);
    follow(p, layout.socket_sk);
    p.copy(R6, R1);
    read_kernel(p, slot::WORD, 2, R6, layout.sk_family);
    p.load(Half, R1, R10, slot::WORD).store(Double, R10, slot::FAMILY, R1);
    p.jump_if(R1, When::Equal, AF_UNIX, "family");
    if inet {
        p.jump_if(R1, When::Equal, AF_INET, "family").jump_if(R1, When::Equal, AF_INET6, "family");
    }
    p.jump("leave").label("family");
}

/// The moment, the moment that the send began, and who does it.
fn moments(p: &mut Assembler, maps: &Maps) {
    p.call(Helper::Now).store(Double, R10, slot::NOW, R0);
    p.call(Helper::CurrentPidTgid)
        .store(Double, R10, slot::TASK, R0)
        .set(R1, 0)
        .store(Double, R10, slot::ENTERED, R1)
        .store(Double, R9, held::OFFSET, R1)
        .load(Double, R1, R9, held::CALL)
        .jump_if(R1, When::Has, call::SEND, "when")
        .jump("timed")
        .label("when")
        .map(R1, maps.entered.descriptor());
    address(p, R2, slot::TASK);
    p.call(Helper::Lookup)
        .jump_if(R0, When::Equal, 0, "timed")
        .load(Double, R1, R0, 0)
        .store(Double, R10, slot::ENTERED, R1)
        .map(R1, maps.entered.descriptor());
    address(p, R2, slot::TASK);
    p.call(Helper::Delete).label("timed");
}

/// The socket's entry to `R8`, made and told of where there is none; leaves where the socket is
/// ignored or nothing has passed.
fn entry(p: &mut Assembler, maps: &Maps, layout: &Layout) {
    let look = |p: &mut Assembler| {
        p.map(R1, maps.sockets.descriptor());
        address(p, R2, slot::INODE);
        p.call(Helper::Lookup);
    };
    look(p);
    p.jump_if(R0, When::Different, 0, "known").set(R1, 0);
    for word in 0..3 {
        p.store(Double, R10, slot::ENTRY + word * 8, R1);
    }
    p.map(R1, maps.sockets.descriptor());
    address(p, R2, slot::INODE);
    address(p, R3, slot::ENTRY);
    p.set(R4, IF_NEW).call(Helper::Update);
    introduce(p, maps, layout);
    look(p);
    p.jump_if(R0, When::Different, 0, "known");
    count(p, maps, Counted::Untracked);
    p.jump("leave")
        .label("known")
        .copy(R8, R0)
        .load(Double, R1, R8, 16)
        .jump_if(R1, When::Different, 0, "leave")
        .load(Double, R1, R9, held::CALL)
        .jump_if(R1, When::Has, call::CONNECT, "leave")
        .jump_if(R1, When::Has, call::ACCEPT, "ignore")
        .jump("speaks")
        .label("ignore")
        .set(R1, 1)
        .store(Double, R8, 16, R1)
        .jump("leave")
        .label("speaks");
}

/// A record with the address of a new socket, `R6`.
fn introduce(p: &mut Assembler, maps: &Maps, layout: &Layout) {
    p.set(R1, 0);
    for word in 0..(ADDRESS / 8) {
        p.store(Double, R9, (HEAD + word * 8) as i16, R1);
    }
    p.load(Double, R1, R10, slot::FAMILY)
        .store(Word, R9, 48, R1)
        .set(R2, 0)
        .store(Word, R9, 52, R2)
        .store(Double, R9, 56, R2)
        .jump_if(R1, When::Equal, AF_UNIX, "unix")
        .jump_if(R1, When::Equal, AF_INET6, "inet6");
    let addresses = |p: &mut Assembler, length: i32, own: i32, peer: i32| {
        read_to_scratch(p, 0, length, own);
        read_to_scratch(p, 16, length, peer);
        read_to_scratch(p, 32, 2, layout.sk_port);
        read_to_scratch(p, 34, 2, layout.sk_peer_port);
        p.jump("introduced");
    };
    addresses(p, 4, layout.sk_address, layout.sk_peer_address);
    p.label("inet6");
    addresses(p, 16, layout.sk_v6_address, layout.sk_v6_peer_address);
    p.label("unix");
    read_kernel_or(p, slot::WORD, 8, R6, layout.unix_peer, "introduced");
    p.load(Double, R1, R10, slot::WORD).jump_if(R1, When::Equal, 0, "introduced");
    read_kernel_or(p, slot::WORD, 8, R1, layout.unix_address, "introduced");
    p.load(Double, R1, R10, slot::WORD).jump_if(R1, When::Equal, 0, "introduced").copy(R6, R1);
    read_kernel_or(p, slot::WORD, 4, R6, layout.address_length, "introduced");
    p.load(Word, R2, R10, slot::WORD)
        .jump_if(R2, When::Above, ADDRESS as i32, "introduced")
        .store(Word, R9, 52, R2)
        .copy(R1, R9)
        .add(R1, HEAD as i32)
        .copy(R3, R6)
        .add(R3, layout.address_name)
        .call(Helper::ReadKernel)
        .label("introduced")
        .set(R6, 0);
    head(p, call::NEW);
    p.set(R2, (HEAD + ADDRESS) as i32);
    output(p, maps, "introduction told");
}

/// Goes through the buffers of the call and makes records of what is in them.
fn pieces(p: &mut Assembler, maps: &Maps) {
    p.set(R1, 0);
    for place in held::ALL {
        p.store(Double, R9, place, R1);
    }
    p.set(R1, STEPS).store(Double, R10, slot::STEPS, R1);
    p.jump_if(R7, When::Equal, 0, "end");
    p.load(Double, R1, R9, held::CALL)
        .load(Double, R2, R10, slot::SECOND)
        .jump_if(R1, When::Has, call::MESSAGES, "messages")
        .store(Double, R9, held::LEFT, R7);
    advance(p, "one way", "advanced");
    p.load(Double, R1, R9, held::CALL)
        .load(Double, R2, R10, slot::SECOND)
        .jump_if(R1, When::Has, call::BUFFER, "buffer")
        .jump_if(R1, When::Has, call::VECTOR, "vector")
        .jump_if(R1, When::Has, call::MESSAGE, "message")
        .jump("step")
        .label("buffer")
        .store(Double, R9, held::AT, R2)
        .store(Double, R9, held::BUFFER_LEFT, R7)
        .jump("step")
        .label("vector")
        .store(Double, R9, held::VECTOR, R2)
        .load(Double, R1, R10, slot::THIRD)
        .store(Double, R9, held::VECTOR_LEFT, R1)
        .jump("step")
        .label("message");
    // struct msghdr: msg_iov and msg_iovlen.
    read_user(p, slot::HEADER, 56, R2, "step");
    p.load(Double, R1, R10, slot::HEADER + 16)
        .store(Double, R9, held::VECTOR, R1)
        .load(Double, R1, R10, slot::HEADER + 24)
        .store(Double, R9, held::VECTOR_LEFT, R1)
        .jump("step")
        .label("messages")
        .store(Double, R9, held::MESSAGE, R2)
        .store(Double, R9, held::MESSAGES_LEFT, R7)
        .label("step");
    step(p, maps);
}

/// One step after another: the next message, the next buffer, or the next chunk of it.
fn step(p: &mut Assembler, maps: &Maps) {
    p.load(Double, R1, R9, held::LEFT).jump_if(R1, When::Different, 0, "in message");
    next_message(p);
    p.label("in message")
        .load(Double, R1, R9, held::BUFFER_LEFT)
        .jump_if(R1, When::Different, 0, "in buffer")
        .load(Double, R1, R9, held::VECTOR_LEFT)
        .jump_if(R1, When::Equal, 0, "hole")
        .add(R1, -1)
        .store(Double, R9, held::VECTOR_LEFT, R1)
        .load(Double, R2, R9, held::VECTOR);
    read_user(p, slot::IOVEC, 16, R2, "hole");
    p.load(Double, R2, R9, held::VECTOR)
        .add(R2, 16)
        .store(Double, R9, held::VECTOR, R2)
        .load(Double, R1, R10, slot::IOVEC)
        .store(Double, R9, held::AT, R1)
        .load(Double, R1, R10, slot::IOVEC + 8)
        .store(Double, R9, held::BUFFER_LEFT, R1)
        .label("next")
        .load(Double, R1, R10, slot::STEPS)
        .add(R1, -1)
        .store(Double, R10, slot::STEPS, R1)
        .jump_if(R1, When::Different, 0, "step")
        .load(Double, R1, R9, held::MESSAGES_LEFT)
        .jump_if(R1, When::Equal, 0, "whole");
    count(p, maps, Counted::Dropped);
    p.label("whole").load(Double, R6, R9, held::LEFT).jump_if(R6, When::Equal, 0, "leave");
    head(p, 0);
    p.set(R2, HEAD as i32);
    output(p, maps, "rest told");
    p.jump("leave");

    // What is left of the message cannot be found: a hole of known length.
    p.label("hole").load(Double, R6, R9, held::LEFT);
    head(p, 0);
    p.set(R2, HEAD as i32);
    output(p, maps, "hole told");
    p.set(R1, 0).store(Double, R9, held::LEFT, R1).jump("next");

    p.label("in buffer");
    chunk(p, maps);
    p.jump("next");

    // Nothing was received although something was asked for: the other end is done.
    p.label("end")
        .load(Double, R1, R9, held::CALL)
        .jump_if(R1, When::Has, call::BUFFER, "end of buffer")
        .jump("leave")
        .label("end of buffer")
        .load(Double, R1, R10, slot::THIRD)
        .jump_if(R1, When::Equal, 0, "leave")
        .load(Double, R1, R8, 8)
        .store(Double, R9, held::OFFSET, R1)
        .set(R6, 0);
    head(p, call::END);
    p.set(R2, HEAD as i32);
    output(p, maps, "end told");
}

/// The next message of several; leaves after the last.
fn next_message(p: &mut Assembler) {
    p.load(Double, R1, R9, held::MESSAGES_LEFT)
        .jump_if(R1, When::Equal, 0, "leave")
        .add(R1, -1)
        .store(Double, R9, held::MESSAGES_LEFT, R1)
        .load(Double, R2, R9, held::MESSAGE);
    read_user(p, slot::HEADER, 64, R2, "leave");
    p.load(Double, R2, R9, held::MESSAGE)
        .add(R2, 64)
        .store(Double, R9, held::MESSAGE, R2)
        .load(Double, R1, R10, slot::HEADER + 16)
        .store(Double, R9, held::VECTOR, R1)
        .load(Double, R1, R10, slot::HEADER + 24)
        .store(Double, R9, held::VECTOR_LEFT, R1)
        .set(R1, 0)
        .store(Double, R9, held::BUFFER_LEFT, R1)
        .load(Word, R1, R10, slot::HEADER + 56)
        .store(Double, R9, held::LEFT, R1);
    advance(p, "one way of message", "message advanced");
    p.jump("next");
}

/// Copies `min(LEFT, BUFFER_LEFT, CHUNK)` bytes into a record.
fn chunk(p: &mut Assembler, maps: &Maps) {
    p.load(Double, R6, R9, held::BUFFER_LEFT)
        .load(Double, R1, R9, held::LEFT)
        .jump_if_register(R6, When::Under, R1, "buffer is shorter")
        .copy(R6, R1)
        .label("buffer is shorter")
        .jump_if(R6, When::Under, CHUNK as i32, "short")
        .set(R6, CHUNK as i32)
        .label("short");
    head(p, 0);
    p.copy(R1, R9)
        .add(R1, HEAD as i32)
        .copy(R2, R6)
        .load(Double, R3, R9, held::AT)
        .call(Helper::ReadUser)
        .copy(R2, R6)
        .add(R2, HEAD as i32)
        .jump_if(R0, When::Equal, 0, "copied");
    count(p, maps, Counted::Unreadable);
    p.set(R2, HEAD as i32).label("copied");
    output(p, maps, "chunk told");
    for place in [held::AT, held::OFFSET] {
        p.load(Double, R1, R9, place).add_register(R1, R6).store(Double, R9, place, R1);
    }
    for place in [held::LEFT, held::BUFFER_LEFT] {
        p.load(Double, R1, R9, place).subtract(R1, R6).store(Double, R9, place, R1);
    }
}

/// Counts `LEFT` bytes on the socket's books, and takes where they begin to `OFFSET`.
fn advance(p: &mut Assembler, way: &'static str, done: &'static str) {
    p.load(Double, R2, R9, held::CALL)
        .load(Double, R1, R9, held::LEFT)
        .jump_if(R2, When::Has, call::RECEIVE, way)
        .fetch_add(R8, 0, R1)
        .jump(done)
        .label(way)
        .fetch_add(R8, 8, R1)
        .label(done)
        .store(Double, R9, held::OFFSET, R1);
}

/// The head of a record of `R6` bytes at `R9`.
fn head(p: &mut Assembler, more: i32) {
    head_with(p, more, [(R9, held::OFFSET), (R9, held::CALL)]);
}

/// The same, where the offset and the call are kept elsewhere.
fn head_with(p: &mut Assembler, more: i32, [offset, call]: [(Register, i16); 2]) {
    let on_stack = [(slot::NOW, 0), (slot::ENTERED, 8), (slot::INODE, 16), (slot::TASK, 40)];
    for (from, to) in on_stack {
        p.load(Double, R1, R10, from).store(Double, R9, to, R1);
    }
    p.load(Double, R1, offset.0, offset.1)
        .store(Double, R9, 24, R1)
        .store(Word, R9, 32, R6)
        .load(Double, R1, call.0, call.1)
        .or(R1, more)
        .store(Word, R9, 36, R1);
}

/// Hands `R2` bytes at `R9` to the ring, or counts that there was no room.
fn output(p: &mut Assembler, maps: &Maps, told: &'static str) {
    p.copy(R3, R2)
        .map(R1, maps.ring.descriptor())
        .copy(R2, R9)
        .set(R4, NO_WAKE_UP)
        .call(Helper::RingOutput)
        .jump_if(R0, When::Equal, 0, told);
    count(p, maps, Counted::Dropped);
    p.label(told);
}

/// `counts[what] += 1`, or leaves.
fn count(p: &mut Assembler, maps: &Maps, what: Counted) {
    p.set(R1, what as i32).store(Double, R10, slot::WORD, R1).map(R1, maps.counts.descriptor());
    address(p, R2, slot::WORD);
    p.call(Helper::Lookup)
        .jump_if(R0, When::Equal, 0, "leave")
        .set(R1, 1)
        .add_atomically(R0, 0, R1);
}
