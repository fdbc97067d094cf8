//! Interval logic: how long at least one of several spans lasts, and the phases of one request.

use assay_captures::units::{Moment, Nanos, Span};

/// Time covered by at least one of the spans.
#[must_use]
pub fn union(spans: &[Span]) -> Nanos {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable_by_key(|span| (span.start, span.end));
    let mut covered = 0;
    let mut until = Moment(0);
    for span in sorted {
        let start = span.start.max(until);
        if span.end > start {
            covered += span.end.0 - start.0;
            until = span.end;
        }
    }
    Nanos(covered)
}

/// The parts of spans that lie inside `within`.
#[must_use]
pub fn clip(spans: &[Span], within: Span) -> Vec<Span> {
    spans
        .iter()
        .map(|span| Span { start: span.start.max(within.start), end: span.end.min(within.end) })
        .filter(|span| span.start < span.end)
        .collect()
}

/// Where the time of one request went. The parts sum to its length: `before`, the time that some
/// trip took, `between`, `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// From the request to the first trip.
    pub before: Nanos,
    /// On at least one trip.
    pub waiting: Nanos,
    /// Between trips.
    pub between: Nanos,
    /// From the last answer to the response.
    pub after: Nanos,
}

/// The phases of a request that waited in `trips`; `None` if it made none.
#[must_use]
pub fn phases(request: Span, trips: &[Span]) -> Option<Phases> {
    let inside = clip(trips, request);
    let first = inside.iter().map(|span| span.start).min()?;
    let last = inside.iter().map(|span| span.end).max()?;
    let waiting = union(&inside);
    let before = first.since(request.start)?;
    let after = request.end.since(last)?;
    let between = last.since(first)?.0.checked_sub(waiting.0)?;
    Some(Phases { before, waiting, between: Nanos(between), after })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { start: Moment(start), end: Moment(end) }
    }

    #[test]
    fn overlapping_waits_count_once() {
        // 0         10        20
        // 012345678901234567890123
        //   aaaa      cccc
        //     bbbb      c             union: 6 + 4
        assert_eq!(union(&[span(2, 6), span(12, 16), span(4, 8), span(14, 15)]), Nanos(10));
        assert_eq!(union(&[]), Nanos(0));
    }

    #[test]
    fn the_phases_of_a_request_sum_to_its_length() {
        // 0         10        20        30
        // 0123456789012345678901234567890123
        //   <---------- request ------->
        //      aaaa   bbbb                      trips
        //               cccccc        dddd      d goes on after the response
        //
        // before 3, waiting 4 + 8 + 1, between 3 + 8, after 0
        let request = span(2, 30);
        let trips = [span(5, 9), span(12, 16), span(14, 20), span(29, 33)];
        let phases = phases(request, &trips).unwrap();
        assert_eq!(phases.before, Nanos(3));
        assert_eq!(phases.waiting, Nanos(13));
        assert_eq!(phases.between, Nanos(12));
        assert_eq!(phases.after, Nanos(0));
        let sum = phases.before.0 + phases.waiting.0 + phases.between.0 + phases.after.0;
        assert_eq!(Nanos(sum), request.length());
    }

    #[test]
    fn a_release_after_the_response_is_no_phase() {
        let found = phases(span(0, 10), &[span(2, 4), span(11, 12)]).unwrap();
        assert_eq!(found.after, Nanos(6));
        assert_eq!(phases(span(0, 10), &[span(11, 12)]), None);
    }
}
