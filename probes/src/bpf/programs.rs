//! The programs that count system calls, and those that keep up with who makes them.
//!
//! Maps: `watched` (process → role), `calls` and `failures` (64-bit numbers on each CPU, indexed
//! by role and system call), `unfollowed` (one number: children for whom there was no room).

use super::instructions::Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use super::instructions::Width::{Double, Word};
use super::instructions::{Assembler, Helper, Instruction, Register, When};
use super::kernel::Map;

/// Numbers of system calls that are counted: 0 to 511.
pub const NUMBERS: u32 = 1 << NUMBER_BITS;
const NUMBER_BITS: i32 = 9;

/// Where the number of the system call lies in the registers that a call was entered with.
#[cfg(target_arch = "x86_64")]
pub(super) const NUMBER_OFFSET: i32 = 120; // struct pt_regs: orig_ax
#[cfg(not(target_arch = "x86_64"))]
pub(super) const NUMBER_OFFSET: i32 = 280; // struct pt_regs of arm64: syscallno

const EAGAIN: i32 = 11;
const ERRNO_MAX: i32 = 4095;

/// At `sys_enter(registers, number)`: `calls[role, number] += 1`.
#[must_use]
pub fn count_calls(watched: &Map, calls: &Map) -> Vec<Instruction> {
    let mut program = Assembler::new();
    program.load(Double, R6, R1, 8);
    role_of_current(&mut program, watched, R7);
    program.jump_if(R6, When::Above, NUMBERS as i32 - 1, "leave");
    program.shift_left(R7, NUMBER_BITS).add_register(R7, R6);
    count(&mut program, calls, R7);
    program.label("leave").leave();
    program.finish()
}

/// At `sys_exit(registers, result)`: `failures[role, number, class] += 1` for −4095 ≤ result < 0,
/// with class 0 for EAGAIN and 1 for all others.
#[must_use]
pub fn count_failures(watched: &Map, failures: &Map) -> Vec<Instruction> {
    let mut program = Assembler::new();
    program
        .load(Double, R8, R1, 8)
        .jump_if(R8, When::AtLeast, 0, "leave")
        .jump_if(R8, When::Below, -ERRNO_MAX, "leave")
        .load(Double, R6, R1, 0);
    role_of_current(&mut program, watched, R7);
    program
        .copy(R1, R10)
        .add(R1, -16)
        .set(R2, 8)
        .copy(R3, R6)
        .add(R3, NUMBER_OFFSET)
        .call(Helper::ReadKernel)
        .jump_if(R0, When::Different, 0, "leave")
        .load(Double, R9, R10, -16)
        .jump_if(R9, When::Above, NUMBERS as i32 - 1, "leave")
        .shift_left(R7, NUMBER_BITS)
        .add_register(R7, R9)
        .shift_left(R7, 1)
        .jump_if(R8, When::Equal, -EAGAIN, "count")
        .add(R7, 1)
        .label("count");
    count(&mut program, failures, R7);
    program.label("leave").leave();
    program.finish()
}

/// Where the kernel keeps what [`follow_forks`] and [`forget_exits`] look at, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// Of the number of its process, in a task.
    pub process_number: u32,
    /// Of the pointer to what the threads of a process share, in a task.
    pub signal: u32,
    /// Of the number of threads that have not ended, in what they share.
    pub live: u32,
}

/// At `sched_process_fork(parent, child)`: a child of a watched process is watched in its role,
/// or `unfollowed[0] += 1`.
#[must_use]
pub fn follow_forks(watched: &Map, unfollowed: &Map, offsets: Offsets) -> Vec<Instruction> {
    let process_number = offsets.process_number;
    let mut program = Assembler::new();
    program.load(Double, R6, R1, 0).load(Double, R7, R1, 8);
    for (task, place) in [(R6, -4), (R7, -8)] {
        program
            .copy(R1, R10)
            .add(R1, place)
            .set(R2, 4)
            .copy(R3, task)
            .add(R3, process_number as i32)
            .call(Helper::ReadKernel)
            .jump_if(R0, When::Different, 0, "leave");
    }
    program
        .map(R1, watched.descriptor())
        .copy(R2, R10)
        .add(R2, -4)
        .call(Helper::Lookup)
        .jump_if(R0, When::Equal, 0, "leave")
        .load(Word, R8, R0, 0)
        .store(Word, R10, -12, R8)
        .map(R1, watched.descriptor())
        .copy(R2, R10)
        .add(R2, -8)
        .copy(R3, R10)
        .add(R3, -12)
        .set(R4, 0)
        .call(Helper::Update)
        .jump_if(R0, When::Equal, 0, "leave")
        .set(R8, 0);
    count(&mut program, unfollowed, R8);
    program.label("leave").leave();
    program.finish()
}

/// At `sched_process_exit(task)`: a process whose last thread ends is watched no more. Without, a
/// service that forks for each request fills the map, and the numbers of the dead are given to
/// others, whose calls would be counted.
#[must_use]
pub fn forget_exits(watched: &Map, offsets: Offsets) -> Vec<Instruction> {
    let mut program = Assembler::new();
    program.load(Double, R6, R1, 0);
    let read = |program: &mut Assembler, place: i16, size: i32, from, offset: u32| {
        program
            .copy(R1, R10)
            .add(R1, i32::from(place))
            .set(R2, size)
            .copy(R3, from)
            .add(R3, offset as i32)
            .call(Helper::ReadKernel)
            .jump_if(R0, When::Different, 0, "leave");
    };
    read(&mut program, -16, 8, R6, offsets.signal);
    program.load(Double, R7, R10, -16);
    read(&mut program, -4, 4, R7, offsets.live);
    program.load(Word, R8, R10, -4).jump_if(R8, When::Different, 0, "leave");
    read(&mut program, -8, 4, R6, offsets.process_number);
    program
        .map(R1, watched.descriptor())
        .copy(R2, R10)
        .add(R2, -8)
        .call(Helper::Delete)
        .label("leave")
        .leave();
    program.finish()
}

/// `role = watched[process of the current task]`, or leaves.
pub(super) fn role_of_current(program: &mut Assembler, watched: &Map, role: Register) {
    program
        .call(Helper::CurrentPidTgid)
        .shift_right(R0, 32)
        .store(Word, R10, -4, R0)
        .map(R1, watched.descriptor())
        .copy(R2, R10)
        .add(R2, -4)
        .call(Helper::Lookup)
        .jump_if(R0, When::Equal, 0, "leave")
        .load(Word, role, R0, 0);
}

/// `array[index] += 1`, or leaves. Atomic, since a task can be preempted in the middle.
fn count(program: &mut Assembler, array: &Map, index: Register) {
    program
        .store(Word, R10, -8, index)
        .map(R1, array.descriptor())
        .copy(R2, R10)
        .add(R2, -8)
        .call(Helper::Lookup)
        .jump_if(R0, When::Equal, 0, "leave")
        .set(R1, 1)
        .add_atomically(R0, 0, R1);
}
