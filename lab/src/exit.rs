//! Exit codes: the contract with scripts.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Something could not be measured.
    CannotMeasure,
    /// Asked for something that does not exist.
    WrongUsage,
    /// Measured, and a budget or a comparison failed.
    Failed,
    /// Stopped by the user.
    Interrupted,
    /// What a command ended with that was observed.
    OfCommand(u8),
}

impl Exit {
    const ALL: [Self; 5] =
        [Self::Done, Self::CannotMeasure, Self::WrongUsage, Self::Failed, Self::Interrupted];

    /// The number that the shell sees; 130 is what shells give for Ctrl-C.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::CannotMeasure => 1,
            Self::WrongUsage => 2,
            Self::Failed => 3,
            Self::Interrupted => 130,
            Self::OfCommand(code) => code,
        }
    }

    /// What a number meant. Any other one is that of a crash: nothing was measured.
    #[must_use]
    pub fn from_code(code: i32) -> Self {
        let found = Self::ALL.into_iter().find(|exit| i32::from(exit.code()) == code);
        found.unwrap_or(Self::CannotMeasure)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_back_and_crashes_are_not_success() {
        for exit in Exit::ALL {
            assert_eq!(Exit::from_code(i32::from(exit.code())), exit);
        }
        assert_eq!(Exit::from_code(101), Exit::CannotMeasure);
    }
}
