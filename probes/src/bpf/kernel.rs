//! bpf(2): maps, programs and their attachment.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::instructions::Instruction;

/// Commands of bpf(2).
#[derive(Clone, Copy)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MapNextKey = 4,
    ProgramLoad = 5,
    InfoByDescriptor = 15,
    RawTracepointOpen = 17,
}

const PROGRAM_RAW_TRACEPOINT: u32 = 17;

/// What a map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Keys of four bytes → values of four bytes.
    Hash,
    /// Index → a 64-bit number on each CPU.
    PerCpuArray,
    /// Index → four bytes.
    Array,
    /// Keys of so many bytes → values of so many bytes.
    Table {
        /// Length of a key.
        key: u32,
        /// Length of a value.
        value: u32,
    },
    /// As a table, but it forgets what was not used for long when it is full.
    Forgetful {
        /// Length of a key.
        key: u32,
        /// Length of a value.
        value: u32,
    },
    /// Index → so many bytes on each CPU, for a program to put something together in.
    Scratch(u32),
    /// A ring of so many bytes (`entries`, a power of two and whole pages) that programs write
    /// records to. Kernel 5.8.
    Ring,
}

impl MapKind {
    /// `map_type`, `key_size`, `value_size`.
    fn numbers(self) -> [u32; 3] {
        match self {
            Self::Hash => [1, 4, 4],
            Self::Array => [2, 4, 4],
            Self::PerCpuArray => [6, 4, 8],
            Self::Table { key, value } => [1, key, value],
            Self::Forgetful { key, value } => [9, key, value],
            Self::Scratch(value) => [6, 4, value],
            Self::Ring => [27, 0, 0],
        }
    }
}

/// A map of the kernel.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    /// Length of a key and of a value.
    sizes: [u32; 2],
}

/// A program that the verifier has accepted.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
}

/// A program that runs at a tracepoint for as long as this lives.
#[derive(Debug)]
pub struct Attachment {
    _descriptor: OwnedFd,
}

impl Map {
    /// Makes a map of so many entries.
    pub fn create(kind: MapKind, entries: u32) -> io::Result<Self> {
        let [number, key_size, value_size] = kind.numbers();
        // map_type, key_size, value_size, max_entries, map_flags
        let mut attributes = [number, key_size, value_size, entries, 0];
        // SAFETY: the attributes are five words, as long as is said.
        let descriptor = unsafe { bpf_descriptor(Command::MapCreate, &mut attributes)? };
        Ok(Self { descriptor, sizes: [key_size, value_size] })
    }

    /// Its descriptor, for [`super::instructions::Assembler::map`].
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// `self[key] = value`, for a hash or an array.
    pub fn insert(&self, key: u32, value: u32) -> io::Result<()> {
        self.holds([4, 4])?;
        let mut attributes = self.element(&raw const key, (&raw const value) as u64);
        // SAFETY: key and value are four bytes, as the map was made, and live across the call.
        unsafe { bpf(Command::MapUpdate, &mut attributes).map(drop) }
    }

    /// `self[key] = value` for a table with keys of eight bytes and values of `N` words.
    pub fn put<const N: usize>(&self, key: u64, value: [u64; N]) -> io::Result<()> {
        self.holds([8, size_of_val(&value) as u32])?;
        let mut attributes = self.element((&raw const key).cast(), (&raw const value) as u64);
        // SAFETY: the map's keys have eight bytes and its values N words, which live across the
        // call.
        unsafe { bpf(Command::MapUpdate, &mut attributes).map(drop) }
    }

    /// Forgets a key of eight bytes; one that is not there is fine.
    pub fn forget(&self, key: u64) -> io::Result<()> {
        self.holds([8, self.sizes[1]])?;
        let mut attributes = self.element((&raw const key).cast(), 0);
        // SAFETY: the map's keys have eight bytes, which live across the call.
        match unsafe { bpf(Command::MapDelete, &mut attributes) } {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
            _ => Ok(()),
        }
    }

    /// Forgets a key of a hash; one that is not there is fine.
    pub fn remove(&self, key: u32) -> io::Result<()> {
        let mut attributes = self.element(&raw const key, 0);
        // SAFETY: the key is four bytes, as the map was made, and lives across the call.
        match unsafe { bpf(Command::MapDelete, &mut attributes) } {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
            _ => Ok(()),
        }
    }

    /// How many keys a hash has, up to its size; one that changes meanwhile is counted about.
    pub fn keys(&self, size: u32) -> io::Result<u64> {
        let mut next = 0u32;
        let mut counted = 0;
        // Before the first key there is none.
        let mut last: Option<u32> = None;
        while counted < u64::from(size) {
            let key = last.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            let mut attributes = self.element(key, (&raw mut next) as u64);
            // SAFETY: the keys are four bytes, as the map was made, and live across the call.
            match unsafe { bpf(Command::MapNextKey, &mut attributes) } {
                Ok(_) => counted += 1,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
                Err(error) => return Err(error),
            }
            last = Some(next);
        }
        Ok(counted)
    }

    /// The sum over all CPUs at an index of an array. `cpus` is [`possible_cpus`].
    pub fn sum(&self, index: u32, cpus: usize) -> io::Result<u64> {
        let mut values = vec![0u64; cpus];
        let mut attributes = self.element(&raw const index, values.as_mut_ptr() as u64);
        // SAFETY: the kernel writes eight bytes for each possible CPU.
        unsafe { bpf(Command::MapLookup, &mut attributes)? };
        Ok(values.iter().sum())
    }

    fn holds(&self, sizes: [u32; 2]) -> io::Result<()> {
        if self.sizes == sizes { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    fn element(&self, key: *const u32, value: u64) -> [u64; 4] {
        // map_fd and padding, key, value, flags
        [self.descriptor.as_raw_fd() as u32 as u64, key as u64, value, 0]
    }
}

impl Program {
    /// Loads a raw tracepoint program.
    pub fn load(code: &[Instruction]) -> io::Result<Self> {
        // The helpers that read kernel memory ask for a licence compatible with the kernel's.
        const LICENSE: &CStr = c"Dual MIT/GPL";
        let mut attributes = [0u64; 16];
        attributes[0] = u64::from(PROGRAM_RAW_TRACEPOINT) | (code.len() as u64) << 32;
        attributes[1] = code.as_ptr() as u64;
        attributes[2] = LICENSE.as_ptr() as u64;
        // SAFETY: code and licence live across the call; the rest is zero, as the ABI asks.
        let descriptor = unsafe { bpf_descriptor(Command::ProgramLoad, &mut attributes)? };
        Ok(Self { descriptor })
    }

    /// Runs it at a raw tracepoint from here on.
    pub fn attach(&self, tracepoint: &CStr) -> io::Result<Attachment> {
        // name, prog_fd
        let program = self.descriptor.as_raw_fd() as u32 as u64;
        let mut attributes = [tracepoint.as_ptr() as u64, program];
        // SAFETY: the name lives across the call.
        let descriptor = unsafe { bpf_descriptor(Command::RawTracepointOpen, &mut attributes)? };
        Ok(Attachment { _descriptor: descriptor })
    }

    /// How often it was not run because it was running already on the same CPU.
    pub fn recursion_misses(&self) -> io::Result<u64> {
        // struct bpf_prog_info: recursion_misses is the 64-bit word at byte 208.
        let mut info = [0u64; 29];
        let length = size_of_val(&info) as u64;
        let descriptor = self.descriptor.as_raw_fd() as u32 as u64;
        let mut attributes = [descriptor | length << 32, info.as_mut_ptr() as u64];
        // SAFETY: the kernel writes at most `length` bytes.
        unsafe { bpf(Command::InfoByDescriptor, &mut attributes)? };
        Ok(info[26])
    }
}

/// How many CPUs the kernel keeps values for.
pub fn possible_cpus() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("possible CPUs are `{}`", text.trim()))
    })
}

/// # Safety
/// Pointers in the attributes must be valid for what the command does with them.
unsafe fn bpf<T>(command: Command, attributes: &mut [T]) -> io::Result<i64> {
    let size = size_of_val(attributes);
    // SAFETY: the caller vouches for the attributes; their size is passed along.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command as i32, attributes.as_mut_ptr(), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// # Safety
/// As [`bpf`], for a command that returns a descriptor.
unsafe fn bpf_descriptor<T>(command: Command, attributes: &mut [T]) -> io::Result<OwnedFd> {
    // SAFETY: the caller's contract.
    let result = unsafe { bpf(command, attributes)? };
    // SAFETY: the kernel has just given us this descriptor, and to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(result as RawFd) })
}
