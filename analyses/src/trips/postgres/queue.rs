//! What a server still has to answer, in order.

use std::collections::VecDeque;

use assay_captures::postgres::Target;

use super::Reason;
use crate::costs::wire::{StatementId, TextId};
use crate::sql::Class;

/// A client's message that has not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A request for encryption, start-up, or a step of authentication.
    Opening,
    /// A simple query: its text, how many of its statements are done, whether its answer is owed
    /// (not while the server waits for copied data).
    Query {
        text: TextId,
        at: usize,
        owes: bool,
    },
    /// `setting` where what is prepared is a setting of the session.
    Parse {
        setting: bool,
    },
    Bind,
    Describe(Target),
    /// `owes` once copied data has been sent to its end.
    Execute {
        statement: Option<StatementId>,
        owes: bool,
    },
    Close(Target),
    Sync,
    Flush,
    Function,
}

impl Step {
    fn owes(self) -> bool {
        match self {
            Self::Opening | Self::Sync | Self::Flush | Self::Function => true,
            Self::Query { owes, .. } | Self::Execute { owes, .. } => owes,
            Self::Parse { .. } | Self::Bind | Self::Describe(_) | Self::Close(_) => false,
        }
    }

    /// Whether ReadyForQuery answers it.
    fn is_cycle(self) -> bool {
        matches!(self, Self::Opening | Self::Query { .. } | Self::Sync | Self::Function)
    }

    fn contents(self) -> Contents {
        match self {
            Self::Opening => Contents(Contents::OPENING),
            // Closing a portal belongs to running it.
            Self::Close(Target::Portal) => Contents(Contents::PORTAL),
            Self::Close(Target::Statement) => Contents(Contents::CLOSE),
            Self::Parse { setting: true } => Contents(Contents::PREPARE | Contents::SETTING_NAMED),
            Self::Parse { .. } | Self::Describe(Target::Statement) => Contents(Contents::PREPARE),
            Self::Bind | Self::Describe(Target::Portal) => Contents(Contents::PORTAL),
            Self::Function => Contents(Contents::USER),
            Self::Query { .. } | Self::Execute { .. } => Contents(Contents::RUN),
            Self::Sync | Self::Flush => Contents(0),
        }
    }
}

/// What a trip or cycle was made of: a set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents(u16);

impl Contents {
    const USER: u16 = 1;
    const TRANSACTION: u16 = 1 << 1;
    const RESET: u16 = 1 << 2;
    const PREPARE: u16 = 1 << 3;
    const CLOSE: u16 = 1 << 4;
    const EMPTY: u16 = 1 << 5;
    const SETTING: u16 = 1 << 6;
    const OPENING: u16 = 1 << 7;
    /// Something was run, whatever it was.
    const RUN: u16 = 1 << 8;
    /// Portals were made, described or closed.
    const PORTAL: u16 = 1 << 9;
    /// A setting of the session was prepared.
    const SETTING_NAMED: u16 = 1 << 10;

    pub(super) fn of(class: Class) -> Self {
        Self(match class {
            Class::User => Self::USER,
            Class::Transaction => Self::TRANSACTION,
            Class::Reset => Self::RESET,
            Class::Prepare => Self::PREPARE,
            Class::Setting => Self::SETTING,
            Class::Empty => Self::EMPTY,
        })
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn has(self, kinds: u16) -> bool {
        self.0 & kinds != 0
    }

    pub(super) fn is_set_up(self, setting_up: bool) -> bool {
        let work = Self::USER | Self::TRANSACTION | Self::RESET | Self::EMPTY;
        // A driver that prepares its settings closes them, too.
        let settings = self.has(Self::SETTING | Self::SETTING_NAMED) || self.is_close_alone();
        self.has(Self::OPENING) || (setting_up && settings && !self.has(work))
    }

    /// Whether nothing was asked but whether the server is ready.
    pub(super) fn is_bare(self) -> bool {
        self.0 == 0
    }

    pub(super) fn is_close_alone(self) -> bool {
        self.0 & !Self::PORTAL == Self::CLOSE || self.0 == Self::PORTAL
    }

    /// The reason, by the weightiest kind; `None` for set-up.
    pub(super) fn reason(self) -> Option<Reason> {
        Some(if self.has(Self::OPENING) {
            return None;
        } else if self.has(Self::USER | Self::SETTING) {
            Reason::User
        } else if self.has(Self::RESET) {
            Reason::PoolReset
        } else if self.has(Self::TRANSACTION) {
            Reason::Transaction
        } else if self.has(Self::EMPTY) || self.is_bare() {
            // Also where the empty statement is prepared on its way.
            Reason::PoolPing
        } else if self.has(Self::PREPARE | Self::CLOSE | Self::PORTAL) && !self.has(Self::RUN) {
            Reason::Prepare
        } else {
            // Run, and failed before it could say what it was.
            Reason::User
        })
    }
}

/// What an error ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Failure {
    pub(super) contents: Contents,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    pub(super) extended: bool,
    /// Whether the server passes over what comes until a Sync.
    pub(super) skips_to_sync: bool,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    steps: VecDeque<Step>,
    owed: usize,
}

impl Queue {
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.owed = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn owes(&self) -> bool {
        self.owed > 0
    }

    pub(super) fn front(&self) -> Option<&Step> {
        self.steps.front()
    }

    /// Adds a step; whether it obliges an answer.
    pub(super) fn push(&mut self, step: Step) -> bool {
        // Bounded: a client that never reads would let the server stop reading, too.
        if self.steps.len() >= 1 << 20 {
            self.clear();
        }
        self.steps.push_back(step);
        self.owed += usize::from(step.owes());
        step.owes()
    }

    fn pop(&mut self) -> Option<Step> {
        let step = self.steps.pop_front()?;
        self.owed -= usize::from(step.owes());
        Some(step)
    }

    /// Takes the first step off if it fits.
    pub(super) fn answer(&mut self, fits: impl Fn(&Step) -> bool) -> Option<Contents> {
        self.drop_answered_flushes();
        if !self.steps.front().is_some_and(fits) {
            return None;
        }
        self.pop().map(Step::contents)
    }

    /// A Flush at the front has had all its answers.
    pub(super) fn drop_answered_flushes(&mut self) {
        while let Some(Step::Flush) = self.steps.front() {
            self.pop();
        }
    }

    /// A statement of the first step is done.
    pub(super) fn completed(&mut self) {
        match self.steps.front_mut() {
            Some(Step::Query { at, .. }) => *at += 1,
            Some(Step::Execute { .. }) => drop(self.pop()),
            _ => {}
        }
    }

    /// The server waits for copied data: the first step owes nothing until its end, and a Sync or
    /// Flush that was sent with it counts for nothing.
    pub(super) fn await_copy(&mut self) {
        let mut extended = false;
        if let Some(first) = self.steps.front_mut() {
            match first {
                Step::Query { owes, .. } => {
                    self.owed -= usize::from(std::mem::take(owes));
                }
                Step::Execute { .. } => extended = true,
                _ => {}
            }
        }
        if extended {
            self.steps.retain(|step| !matches!(step, Step::Sync | Step::Flush));
            self.owed = self.steps.iter().filter(|step| step.owes()).count();
        }
    }

    /// The end of copied data was sent: the first step owes its answer again.
    pub(super) fn owe_front(&mut self) -> bool {
        match self.steps.front_mut() {
            Some(Step::Query { owes, .. } | Step::Execute { owes, .. }) if !*owes => {
                *owes = true;
                self.owed += 1;
                true
            }
            _ => false,
        }
    }

    pub(super) fn fail(&mut self) -> Failure {
        self.drop_answered_flushes();
        let mut failure = Failure::default();
        match self.steps.front() {
            None | Some(Step::Sync) => return failure,
            Some(Step::Opening) => {
                while let Some(Step::Opening) = self.steps.front() {
                    self.pop();
                }
                failure.contents = Step::Opening.contents();
                return failure;
            }
            Some(Step::Query { .. } | Step::Function) => {
                failure.failed = 1;
                return failure;
            }
            Some(_) => failure.extended = true,
        }
        let mut first = true;
        while let Some(&step) = self.steps.front() {
            if step == Step::Sync {
                return failure;
            }
            self.pop();
            failure.contents.add(step.contents());
            if let Step::Execute { .. } = step {
                failure.failed += u64::from(first);
                failure.skipped += u64::from(!first);
            }
            first = false;
        }
        failure.skips_to_sync = true;
        failure
    }

    /// ReadyForQuery: what it answered beyond what was answered before; `None` if nothing that is
    /// known asked for it.
    pub(super) fn ready(&mut self) -> Option<Contents> {
        if !self.steps.iter().any(|step| step.is_cycle()) {
            return None;
        }
        let mut contents = Contents::default();
        while let Some(step) = self.pop() {
            // An empty or copying query has said what it was when it completed.
            if !matches!(step, Step::Query { at, .. } if at > 0) {
                contents.add(step.contents());
            }
            if step.is_cycle() {
                break;
            }
        }
        Some(contents)
    }
}
