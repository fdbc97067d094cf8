//! Reading memory inside a program, which leaves where there is none.

use super::instructions::Register::{R0, R1, R2, R3, R6, R9, R10};
use super::instructions::Width::Double;
use super::instructions::{Assembler, Helper, Register, When};
use super::socket_programs::{HEAD, slot};

/// `R1 = *(R1 + offset)`, or leaves where that is nothing.
pub(super) fn follow(p: &mut Assembler, offset: i32) {
    read_kernel(p, slot::WORD, 8, R1, offset);
    p.load(Double, R1, R10, slot::WORD).jump_if(R1, When::Equal, 0, "leave");
}

/// Reads kernel memory at `from + offset` to a place on the stack, or leaves.
pub(super) fn read_kernel(p: &mut Assembler, to: i16, length: i32, from: Register, offset: i32) {
    read_kernel_or(p, to, length, from, offset, "leave");
}

pub(super) fn read_kernel_or(
    p: &mut Assembler,
    to: i16,
    length: i32,
    from: Register,
    offset: i32,
    otherwise: &'static str,
) {
    p.copy(R3, from).add(R3, offset);
    address(p, R1, to);
    p.set(R2, length).call(Helper::ReadKernel).jump_if(R0, When::Different, 0, otherwise);
}

/// Reads kernel memory at `R6 + offset` to a place behind the head of the record.
pub(super) fn read_to_scratch(p: &mut Assembler, to: i32, length: i32, offset: i32) {
    p.copy(R1, R9)
        .add(R1, HEAD as i32 + to)
        .set(R2, length)
        .copy(R3, R6)
        .add(R3, offset)
        .call(Helper::ReadKernel);
}

/// Reads the caller's memory at `from` to a place on the stack.
pub(super) fn read_user(
    p: &mut Assembler,
    to: i16,
    length: i32,
    from: Register,
    otherwise: &'static str,
) {
    p.copy(R3, from);
    address(p, R1, to);
    p.set(R2, length).call(Helper::ReadUser).jump_if(R0, When::Different, 0, otherwise);
}

pub(super) fn address(p: &mut Assembler, to: Register, place: i16) {
    p.copy(to, R10).add(to, i32::from(place));
}
