//! Numbers of system calls → names, for the architectures that the counters run on.

mod aarch64;
mod x86_64;

/// A processor architecture, as its system calls are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Architecture {
    /// The one that this program was built for; `None` where its numbers are not known here.
    #[must_use]
    pub fn here() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// The name of a system call; `None` for a number that has none.
    #[must_use]
    pub fn name(self, number: usize) -> Option<&'static str> {
        let names: &[&str] = match self {
            Self::X86_64 => &x86_64::NAMES,
            Self::Aarch64 => &aarch64::NAMES,
        };
        names.get(number).copied().filter(|name| !name.is_empty())
    }

    /// The number of a system call.
    #[must_use]
    pub fn number(self, name: &str) -> Option<usize> {
        (0..512).find(|&number| self.name(number) == Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::Architecture::{Aarch64, X86_64};

    #[test]
    fn well_known_numbers_have_their_names() {
        assert_eq!(X86_64.name(0), Some("read"));
        assert_eq!(X86_64.name(44), Some("sendto"));
        assert_eq!(X86_64.name(232), Some("epoll_wait"));
        assert_eq!(X86_64.name(435), Some("clone3"));
        assert_eq!(X86_64.name(400), None);
        assert_eq!(Aarch64.name(63), Some("read"));
        assert_eq!(Aarch64.name(206), Some("sendto"));
        assert_eq!(Aarch64.name(10_000), None);
        assert_eq!(X86_64.number("getppid"), Some(110));
        assert_eq!(Aarch64.number("epoll_wait"), None);
    }
}
