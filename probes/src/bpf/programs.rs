//! The three programs that count system calls.
//!
//! Maps: `watched` (process → role), `calls` and `failures` (64-bit numbers on each CPU, indexed
//! by role and system call).

use super::instructions::Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use super::instructions::Width::{Double, Word};
use super::instructions::{Assembler, Helper, Instruction, When};
use super::kernel::Map;

/// Numbers of system calls that are counted: 0 to 511.
pub const NUMBERS: u32 = 1 << NUMBER_BITS;
const NUMBER_BITS: i32 = 9;

/// Where the number of the system call lies in the registers that a call was entered with.
#[cfg(target_arch = "x86_64")]
const NUMBER_OFFSET: i32 = 120; // struct pt_regs: orig_ax
#[cfg(not(target_arch = "x86_64"))]
const NUMBER_OFFSET: i32 = 280; // struct pt_regs of arm64: syscallno

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

/// At `sched_process_fork(parent, child)`: a child of a watched process is watched in its role.
/// `process_number` is where a task keeps the number of its process.
#[must_use]
pub fn follow_forks(watched: &Map, process_number: u32) -> Vec<Instruction> {
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
        .label("leave")
        .leave();
    program.finish()
}

/// `role = watched[process of the current task]`, or leaves.
fn role_of_current(program: &mut Assembler, watched: &Map, role: super::instructions::Register) {
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
fn count(program: &mut Assembler, array: &Map, index: super::instructions::Register) {
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
