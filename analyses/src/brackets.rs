//! Cumulative counters and windows: which two samples stand around a window.

use assay_captures::units::Span;

/// For each window the last sample that was read before it began, and the first that was begun to
/// be read when it had ended. Memory is bounded by the number of windows.
#[derive(Clone, Debug)]
pub struct Brackets<S> {
    windows: Vec<Span>,
    around: Vec<(Option<S>, Option<S>)>,
}

impl<S: Clone> Brackets<S> {
    /// Brackets for these windows, in any order.
    #[must_use]
    pub fn new(windows: impl IntoIterator<Item = Span>) -> Self {
        let windows: Vec<Span> = windows.into_iter().collect();
        let around = vec![(None, None); windows.len()];
        Self { windows, around }
    }

    /// Takes a sample, in the order of recording. `read` is from the first counter read to the
    /// last.
    pub fn take(&mut self, read: Span, sample: &S) {
        for (window, (before, after)) in self.windows.iter().zip(&mut self.around) {
            if read.end <= window.start {
                *before = Some(sample.clone());
            } else if read.start >= window.end && after.is_none() {
                *after = Some(sample.clone());
            }
        }
    }

    /// The samples around each window, in the order of the windows; `None` where one is missing.
    pub fn pairs(&self) -> impl Iterator<Item = Option<(&S, &S)>> {
        self.around.iter().map(|(before, after)| before.as_ref().zip(after.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use assay_captures::units::Moment;

    use super::*;

    #[test]
    fn a_window_lies_between_the_nearest_samples_that_do_not_touch_it() {
        // 0         10        20        30
        // 0123456789012345678901234567890
        //   s    s   s      s     s    s       samples (each takes one)
        //          <----------->               first window 9..22
        //               <---------------->     second window 14..32: nothing after it
        let span = |start, end| Span { start: Moment(start), end: Moment(end) };
        let mut brackets = Brackets::new([span(9, 22), span(14, 32)]);
        for moment in [2, 7, 11, 18, 24, 29] {
            brackets.take(span(moment, moment + 1), &moment);
        }
        let pairs: Vec<Option<(&u64, &u64)>> = brackets.pairs().collect();
        assert_eq!(pairs, [Some((&7, &24)), None]);
    }
}
