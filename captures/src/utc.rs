//! Moments as people read them: date and time of day in UTC.

use crate::units::Moment;

/// A moment in UTC, in the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utc {
    /// The year.
    pub year: u64,
    /// The month, 1 to 12.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The hour, 0 to 23.
    pub hour: u64,
    /// The minute, 0 to 59.
    pub minute: u64,
    /// The second, 0 to 59.
    pub second: u64,
}

impl Utc {
    /// A moment, cut to whole seconds.
    #[must_use]
    pub fn of(moment: Moment) -> Self {
        let seconds = moment.0 / 1_000_000_000;
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = civil(days);
        Self {
            year,
            month,
            day,
            hour: second / 3_600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }

    /// The date: `2026-12-01`.
    #[must_use]
    pub fn date(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// Hours and minutes: `10:02`.
    #[must_use]
    pub fn time(self) -> String {
        format!("{:02}:{:02}", self.hour, self.minute)
    }
}

/// The date of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut rest = days;
    let mut year = 1970;
    while rest >= 365 + u64::from(leap(year)) {
        rest -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    (year, month, rest + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_years_and_ends_of_months_are_kept() {
        let date = |seconds: u64| Utc::of(Moment(seconds * 1_000_000_000)).date();
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(951_868_800), "2000-03-01");
        assert_eq!(date(4_107_542_400), "2100-03-01");
        assert_eq!(Utc::of(Moment(1_796_119_331_000_000_000)).time(), "10:02");
    }
}
