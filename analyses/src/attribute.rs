//! Charging what was recorded to the window that it fell into, or to nobody.

use assay_captures::units::{Moment, Span};

/// Who caused something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The requests of this window, 0-based in the order of the spans.
    Window(usize),
    /// It fell into no window.
    Nobody,
}

/// Finds the window of a moment. Spans may come in any order and must not overlap; where they do,
/// the one that begins later wins.
#[derive(Clone, Debug)]
pub struct Windows {
    /// `(span, place in the caller's order)`, by start.
    sorted: Vec<(Span, usize)>,
    /// Where the last moment was found: moments come almost in order.
    last: usize,
}

impl Windows {
    /// The windows of these spans.
    pub fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut sorted: Vec<_> = spans.into_iter().enumerate().map(|(i, s)| (s, i)).collect();
        sorted.sort_by_key(|(span, index)| (span.start, *index));
        Self { sorted, last: 0 }
    }

    /// The owner of what happened at `moment`.
    pub fn owner(&mut self, moment: Moment) -> Owner {
        if let Some((span, index)) = self.sorted.get(self.last)
            && span.contains(moment)
            && self.sorted.get(self.last + 1).is_none_or(|(next, _)| moment < next.start)
        {
            return Owner::Window(*index);
        }
        let after = self.sorted.partition_point(|(span, _)| span.start <= moment);
        self.last = after.saturating_sub(1);
        match self.sorted.get(self.last) {
            Some((span, index)) if span.contains(moment) => Owner::Window(*index),
            _ => Owner::Nobody,
        }
    }
}

/// One account for each window, one for nobody, and one for everything, kept apart so that the
/// books can be checked.
#[derive(Clone, Debug)]
pub struct Ledger<A> {
    windows: Vec<A>,
    nobody: A,
    everything: A,
}

impl<A: Clone + Default + PartialEq> Ledger<A> {
    /// Empty accounts for so many windows.
    #[must_use]
    pub fn new(windows: usize) -> Self {
        Self {
            windows: vec![A::default(); windows],
            nobody: A::default(),
            everything: A::default(),
        }
    }

    /// Charges `owner`.
    pub fn charge(&mut self, owner: Owner, mut post: impl FnMut(&mut A)) {
        post(&mut self.everything);
        match owner {
            Owner::Window(index) => match self.windows.get_mut(index) {
                Some(account) => post(account),
                None => post(&mut self.nobody),
            },
            Owner::Nobody => post(&mut self.nobody),
        }
    }

    /// The account of a window.
    #[must_use]
    pub fn window(&self, index: usize) -> Option<&A> {
        self.windows.get(index)
    }

    /// All windows' accounts, in the caller's order.
    #[must_use]
    pub fn windows(&self) -> &[A] {
        &self.windows
    }

    /// What fell into no window.
    #[must_use]
    pub fn nobody(&self) -> &A {
        &self.nobody
    }

    /// Everything, as it was posted.
    #[must_use]
    pub fn everything(&self) -> &A {
        &self.everything
    }

    /// Whether the sum over all owners is what was posted.
    #[must_use]
    pub fn balances(&self, mut add: impl FnMut(&mut A, &A)) -> bool {
        let mut sum = self.nobody.clone();
        for account in &self.windows {
            add(&mut sum, account);
        }
        sum == self.everything
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { start: Moment(start), end: Moment(end) }
    }

    #[test]
    fn time_between_windows_is_nobodys() {
        // 0         10        20        30
        // 0123456789012345678901234567890
        //   <--- w1 --->      <-- w0 -->        spans, end excluded
        //  n1          n     n0        n        owners
        let mut windows = Windows::new([span(21, 31), span(2, 14)]);
        let owners: Vec<_> =
            [1, 2, 13, 14, 20, 21, 30, 31, 2].map(|at| windows.owner(Moment(at))).to_vec();
        let (nobody, first, second) = (Owner::Nobody, Owner::Window(1), Owner::Window(0));
        assert_eq!(owners, [nobody, first, first, nobody, nobody, second, second, nobody, first]);
    }

    #[test]
    fn neighbours_share_no_moment() {
        let mut windows = Windows::new([span(0, 10), span(10, 20)]);
        assert_eq!(windows.owner(Moment(9)), Owner::Window(0));
        assert_eq!(windows.owner(Moment(10)), Owner::Window(1));
    }

    #[test]
    fn the_books_balance_whatever_is_posted() {
        let mut ledger: Ledger<u64> = Ledger::new(3);
        for index in 0..100_u64 {
            let owner = match index % 5 {
                4 => Owner::Nobody,
                window => Owner::Window(window as usize),
            };
            ledger.charge(owner, |account| *account += index);
        }
        assert!(ledger.balances(|sum, account| *sum += account));
        assert_eq!(*ledger.everything(), 4950);
    }
}
