//! What a callgrind profile is made of.

use crate::parsed::Place;

/// A function of one profile, numbered from 0 in order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// A function. The same name in another file or object is another function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name as written, with callgrind's `'2` for deeper levels of recursion.
    pub name: String,
    /// Its source file; `???` or empty where unknown.
    pub file: String,
    /// The program or library; empty where the profile has none.
    pub object: String,
}

/// One term of a derived event: so many times another event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// How many times.
    pub factor: u64,
    /// Name of the event.
    pub event: String,
}

/// An event that is computed from others, such as `CEst = Ir + 10 I1mr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub terms: Vec<Term>,
}

/// What the decoder delivers. Costs are in the order of the part's events; events left out at
/// the end of a line cost 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A header line, such as `creator`, `cmd`, `pid`, `desc`.
    Header {
        /// Before the colon.
        key: &'a str,
        /// After it, trimmed.
        value: &'a str,
    },
    /// A part begins: a dump, or one thread's share of it.
    Part,
    /// The events of the costs that follow.
    Events(&'a [String]),
    /// An event computed from others.
    Derived(Derived),
    /// A function's first appearance.
    Function {
        /// Its number.
        id: FunctionId,
        /// What it is.
        function: Function,
    },
    /// Cost of one source line or instruction of a function itself.
    Cost {
        /// The function that was charged.
        function: FunctionId,
        /// The source line; 0 where unknown.
        line: u64,
        /// Cost per event.
        costs: &'a [u64],
    },
    /// Calls from one function to another and what they cost, the callee's own calls included.
    Call {
        /// Who called.
        caller: FunctionId,
        /// Who was called.
        callee: FunctionId,
        /// How often; 0 for a call that was entered before the counters were set to zero.
        count: u64,
        /// Inclusive cost per event.
        costs: &'a [u64],
    },
    /// What the part's head claims as its total.
    Summary(&'a [u64]),
    /// What the part's end claims as its total.
    Totals(&'a [u64]),
    /// A line with a cost that cannot be believed or read: totals are not to be trusted.
    Refused(Place),
}
