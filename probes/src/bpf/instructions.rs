//! BPF instructions, and an assembler with labels.

use std::collections::BTreeMap;

/// A register. `R0` holds results, `R1`–`R5` arguments, `R6`–`R9` survive calls, `R10` is the
/// frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the registers are named by the instruction set")]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// One instruction as the kernel takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
    /// 64 bits.
    Double,
}

/// When a jump is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Equal.
    Equal,
    /// Not equal.
    Different,
    /// Greater, unsigned.
    Above,
    /// Greater or equal, signed.
    AtLeast,
    /// Less, signed.
    Below,
    /// Less, unsigned.
    Under,
    /// A bit of the number is set.
    Has,
}

/// A helper function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// `bpf_map_lookup_elem`
    Lookup = 1,
    /// `bpf_map_update_elem`
    Update = 2,
    /// `bpf_map_delete_elem`
    Delete = 3,
    /// `bpf_ktime_get_ns`
    Now = 5,
    /// `bpf_get_current_pid_tgid`
    CurrentPidTgid = 14,
    /// `bpf_get_current_task`
    CurrentTask = 35,
    /// `bpf_probe_read_user`
    ReadUser = 112,
    /// `bpf_probe_read_kernel`
    ReadKernel = 113,
    /// `bpf_ringbuf_output`
    RingOutput = 130,
}

impl Width {
    /// The size bits of an operation code.
    fn bits(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Byte => 0x10,
            Self::Double => 0x18,
        }
    }
}

impl When {
    /// The operation code for a comparison with a number.
    fn code(self) -> u8 {
        match self {
            Self::Equal => 0x15,
            Self::Above => 0x25,
            Self::Has => 0x45,
            Self::Different => 0x55,
            Self::AtLeast => 0x75,
            Self::Under => 0xa5,
            Self::Below => 0xc5,
        }
    }
}

/// A program in the making. Jumps go to labels; one that goes back must be seen by the verifier to
/// end.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    jumps: Vec<(usize, &'static str)>,
    labels: BTreeMap<&'static str, usize>,
}

impl Assembler {
    /// An empty program.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `to = from`
    pub fn copy(&mut self, to: Register, from: Register) -> &mut Self {
        self.push(0xbf, to, from, 0, 0)
    }

    /// `to = number`
    pub fn set(&mut self, to: Register, number: i32) -> &mut Self {
        self.push(0xb7, to, Register::R0, 0, number)
    }

    /// `to += number`
    pub fn add(&mut self, to: Register, number: i32) -> &mut Self {
        self.push(0x07, to, Register::R0, 0, number)
    }

    /// `to += from`
    pub fn add_register(&mut self, to: Register, from: Register) -> &mut Self {
        self.push(0x0f, to, from, 0, 0)
    }

    /// `to -= from`
    pub fn subtract(&mut self, to: Register, from: Register) -> &mut Self {
        self.push(0x1f, to, from, 0, 0)
    }

    /// `to &= number`
    pub fn mask(&mut self, to: Register, number: i32) -> &mut Self {
        self.push(0x57, to, Register::R0, 0, number)
    }

    /// `to |= number`
    pub fn or(&mut self, to: Register, number: i32) -> &mut Self {
        self.push(0x47, to, Register::R0, 0, number)
    }

    /// `to <<= bits`
    pub fn shift_left(&mut self, to: Register, bits: i32) -> &mut Self {
        self.push(0x67, to, Register::R0, 0, bits)
    }

    /// `to >>= bits`, unsigned
    pub fn shift_right(&mut self, to: Register, bits: i32) -> &mut Self {
        self.push(0x77, to, Register::R0, 0, bits)
    }

    /// `to = *(from + offset)`
    pub fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) -> &mut Self {
        let code = 0x61 | width.bits();
        self.push(code, to, from, offset, 0)
    }

    /// `*(to + offset) = from`
    pub fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) -> &mut Self {
        let code = 0x63 | width.bits();
        self.push(code, to, from, offset, 0)
    }

    /// `*(to + offset) += from`, 64 bits, at once
    pub fn add_atomically(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.push(0xdb, to, from, offset, 0)
    }

    /// `(*(to + offset) += from, from = what it was)`, 64 bits, at once; kernel 5.12.
    pub fn fetch_add(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.push(0xdb, to, from, offset, 1)
    }

    /// `to = the map`
    pub fn map(&mut self, to: Register, descriptor: i32) -> &mut Self {
        // A 64-bit immediate takes two; source register 1 means "a map's descriptor".
        self.push(0x18, to, Register::R1, 0, descriptor);
        self.push(0, Register::R0, Register::R0, 0, 0)
    }

    /// `R0 = helper(R1…R5)`
    pub fn call(&mut self, helper: Helper) -> &mut Self {
        self.push(0x85, Register::R0, Register::R0, 0, helper as i32)
    }

    /// Goes to `label` when `register` compares so with `number`.
    pub fn jump_if(
        &mut self,
        register: Register,
        when: When,
        number: i32,
        label: &'static str,
    ) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(when.code(), register, Register::R0, 0, number)
    }

    /// Goes to `label` when `register` compares so with `other`.
    pub fn jump_if_register(
        &mut self,
        register: Register,
        when: When,
        other: Register,
        label: &'static str,
    ) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(when.code() | 0x08, register, other, 0, 0)
    }

    /// Goes to `label`.
    pub fn jump(&mut self, label: &'static str) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.push(0x05, Register::R0, Register::R0, 0, 0)
    }

    /// The next instruction is `label`.
    pub fn label(&mut self, label: &'static str) -> &mut Self {
        self.labels.insert(label, self.code.len());
        self
    }

    /// `return 0`
    pub fn leave(&mut self) -> &mut Self {
        self.set(Register::R0, 0);
        self.push(0x95, Register::R0, Register::R0, 0, 0)
    }

    /// The program, with its jumps worked out.
    ///
    /// # Panics
    /// When a label is missing or farther than a jump reaches: a mistake in the program.
    #[must_use]
    pub fn finish(&mut self) -> Vec<Instruction> {
        for (place, label) in &self.jumps {
            let target = self.labels.get(label).unwrap_or_else(|| panic!("no label {label}"));
            let distance = *target as isize - *place as isize - 1;
            self.code[*place].offset = distance as i16;
        }
        self.code.clone()
    }

    fn push(
        &mut self,
        code: u8,
        to: Register,
        from: Register,
        offset: i16,
        immediate: i32,
    ) -> &mut Self {
        let registers = (from as u8) << 4 | to as u8;
        self.code.push(Instruction { code, registers, offset, immediate });
        self
    }
}
