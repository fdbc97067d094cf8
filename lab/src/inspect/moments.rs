//! Moments and lengths of time as people read them.

use assay_captures::units::Moment;
use assay_captures::utc::Utc;

/// A moment as a date and time of day, UTC.
pub(super) fn utc(moment: Moment) -> String {
    let utc = Utc::of(moment);
    let (hour, minute, second) = (utc.hour, utc.minute, utc.second);
    format!("{} {hour:02}:{minute:02}:{second:02} UTC", utc.date())
}

/// How long it is from one moment to another.
pub(super) fn length(first: Moment, last: Moment) -> String {
    format!("{:.6} s", last.since(first).unwrap_or_default().seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_700_000_000, "2023-11-14 22:13:20 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
        ] {
            assert_eq!(utc(Moment(seconds * 1_000_000_000)), expected);
        }
    }
}
