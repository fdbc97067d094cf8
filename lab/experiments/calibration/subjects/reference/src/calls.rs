//! System calls by number: no library can leave one out or make two of it.

use std::io;

use libc::c_long;

/// A system call that can be asked for.
pub struct Call {
    /// Its name.
    pub name: &'static str,
    make: fn(&Files) -> c_long,
}

/// All that can be asked for.
pub const CALLS: [Call; 14] = [
    Call { name: "getpid", make: |_| number(libc::SYS_getpid) },
    Call { name: "getppid", make: |_| number(libc::SYS_getppid) },
    Call { name: "getuid", make: |_| number(libc::SYS_getuid) },
    Call { name: "getegid", make: |_| number(libc::SYS_getegid) },
    Call { name: "gettid", make: |_| number(libc::SYS_gettid) },
    Call { name: "umask", make: |_| with(libc::SYS_umask, [0o077, 0, 0, 0]) },
    Call { name: "sched_yield", make: |_| number(libc::SYS_sched_yield) },
    Call { name: "lseek", make: |files| with(libc::SYS_lseek, [files.zero, 0, 0, 0]) },
    Call { name: "dup", make: duplicate },
    Call { name: "close", make: duplicate },
    Call { name: "pread64", make: |files| bytes(libc::SYS_pread64, files.zero) },
    Call { name: "pwrite64", make: |files| bytes(libc::SYS_pwrite64, files.null) },
    Call { name: "readv", make: |files| vector(libc::SYS_readv, files.zero) },
    Call { name: "writev", make: |files| vector(libc::SYS_writev, files.null) },
];

/// Descriptors that the calls use.
pub struct Files {
    zero: c_long,
    null: c_long,
}

impl Files {
    /// Opens them; they stay open as long as the process.
    pub fn open() -> io::Result<Self> {
        let open = |path: &std::ffi::CStr| {
            // SAFETY: the path ends with a zero byte.
            let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
            if file < 0 { Err(io::Error::last_os_error()) } else { Ok(c_long::from(file)) }
        };
        Ok(Self { zero: open(c"/dev/zero")?, null: open(c"/dev/null")? })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in [self.zero, self.null] {
            with(libc::SYS_close, [file, 0, 0, 0]);
        }
    }
}

/// Makes each call as often as is asked. A `dup` is closed again and a `close` closes what was
/// duplicated for it, so both together are made as often as the sum of what is asked of each.
pub fn make(calls: &[u32; CALLS.len()], failing: u32, files: &Files) -> io::Result<()> {
    for (call, &times) in CALLS.iter().zip(calls) {
        for _ in 0..times {
            if (call.make)(files) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    for _ in 0..failing {
        with(libc::SYS_close, [-1, 0, 0, 0]);
    }
    Ok(())
}

/// How often each call is really made, by name.
pub fn made(calls: &[u32; CALLS.len()], failing: u32) -> Vec<(&'static str, u32)> {
    let asked = |name: &str| {
        let place = CALLS.iter().position(|call| call.name == name);
        place.map_or(0, |place| calls[place])
    };
    let pairs = asked("dup") + asked("close");
    CALLS
        .iter()
        .zip(calls)
        .map(|(call, &times)| match call.name {
            "dup" => ("dup", pairs),
            "close" => ("close", pairs + failing),
            name => (name, times),
        })
        .filter(|&(_, times)| times > 0)
        .collect()
}

fn number(call: c_long) -> c_long {
    with(call, [0; 4])
}

fn with(call: c_long, arguments: [c_long; 4]) -> c_long {
    let [one, two, three, four] = arguments;
    // SAFETY: none of the calls that come here reads or writes memory of ours.
    unsafe { libc::syscall(call, one, two, three, four) }
}

fn duplicate(files: &Files) -> c_long {
    let copy = with(libc::SYS_dup, [files.null, 0, 0, 0]);
    with(libc::SYS_close, [copy, 0, 0, 0])
}

fn bytes(call: c_long, file: c_long) -> c_long {
    let mut buffer = [0u8; 16];
    // SAFETY: the buffer is as long as is said.
    unsafe { libc::syscall(call, file, buffer.as_mut_ptr(), buffer.len(), 0) }
}

fn vector(call: c_long, file: c_long) -> c_long {
    let mut buffer = [0u8; 16];
    let part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the one part is the buffer, as long as it is.
    unsafe { libc::syscall(call, file, &raw const part, 1) }
}

/// CPU time of this thread in nanoseconds: one `clock_gettime`, which the kernel must answer.
pub fn thread_cpu() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe {
        libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
    }
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Sleeps: one `nanosleep`.
pub fn sleep(microseconds: u32) {
    let wanted = libc::timespec {
        tv_sec: (microseconds / 1_000_000).into(),
        tv_nsec: (microseconds % 1_000_000 * 1_000).into(),
    };
    // SAFETY: the kernel reads one timespec.
    unsafe {
        libc::syscall(libc::SYS_nanosleep, &raw const wanted, std::ptr::null::<libc::timespec>());
    }
}
