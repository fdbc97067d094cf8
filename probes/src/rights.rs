//! Rights that a probe's file gives it, handed on to the tools that it starts.
//!
//! A file's capabilities do not cross exec: strace or perf, started by a probe that may trace or
//! sample, may not. Ambient capabilities do cross it, and programs that get them that way are not
//! treated as set-user-id ones: they keep their parent-death signal.

use std::io;

/// `_LINUX_CAPABILITY_VERSION_3`: two words of 32 capabilities each.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Makes what is executed next in this process hold the capabilities that it is permitted itself.
/// Call it between fork and exec: it makes system calls only.
///
/// # Errors
///
/// What the kernel said; where it has no ambient capabilities, nothing is handed on.
pub fn hand_on() -> io::Result<()> {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: both point to memory of the size that version 3 says.
    if unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Root has its rights after exec anyway, and nobody without rights has any to hand on.
    // SAFETY: takes nothing, cannot fail.
    if unsafe { libc::geteuid() } == 0 || sets.iter().all(|set| set.permitted == 0) {
        return Ok(());
    }
    for set in &mut sets {
        set.inheritable |= set.permitted;
    }
    // SAFETY: as above.
    if unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for (word, set) in (0..).zip(&sets) {
        for bit in (0..32u32).filter(|bit| set.permitted >> bit & 1 == 1) {
            let capability = libc::c_ulong::from(word * 32 + bit);
            let [none, raise] = [0, libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong];
            // SAFETY: takes numbers only.
            unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, capability, none, none) };
        }
    }
    Ok(())
}

/// Whether this process holds a capability, by its number in linux/capability.h.
#[must_use]
pub fn has(capability: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    held.is_some_and(|held| held >> capability & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_of_a_user_with_one_right_has_it_after_exec() {
        // SAFETY: takes nothing, cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return;
        }
        const NET_RAW: u32 = 13;
        let mut command = Command::new("/bin/cat");
        command.arg("/proc/self/status");
        // SAFETY: system calls only.
        unsafe {
            command.pre_exec(|| {
                // What a file with one capability gives to a user: rights are kept when the user
                // changes, and all but one are given up.
                libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0);
                if libc::setresuid(65534, 65534, 65534) != 0 {
                    return Err(io::Error::last_os_error());
                }
                let mut header = Header { version: VERSION, pid: 0 };
                let one = Sets { effective: 1 << NET_RAW, permitted: 1 << NET_RAW, inheritable: 0 };
                let sets = [one, Sets::default()];
                if libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) != 0 {
                    return Err(io::Error::last_os_error());
                }
                hand_on()
            });
        }
        let output = command.output().unwrap();
        let status = String::from_utf8(output.stdout).unwrap();
        let held = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        assert_eq!(u64::from_str_radix(held.trim(), 16).unwrap(), 1 << NET_RAW, "{status}");
    }
}
