//! Moments and lengths of time as people read them.

use assay_captures::units::Moment;

/// A moment as a date and time of day, UTC.
pub(super) fn utc(moment: Moment) -> String {
    let seconds = moment.0 / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// How long it is from one moment to another.
pub(super) fn length(first: Moment, last: Moment) -> String {
    format!("{:.6} s", last.since(first).unwrap_or_default().seconds())
}

/// Year, month and day of a day since 1970-01-01, in the Gregorian calendar. Counted from March,
/// so that the leap day is a year's last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
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
