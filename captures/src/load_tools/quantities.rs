//! Numbers with units as load generators print them.

use crate::load_tools::model::Latency;
use crate::units::Nanos;

/// No run and no answer takes longer: about 31 years.
const LONGEST_SECONDS: f64 = 1e9;

/// Seconds as a length of time; `None` for what cannot be one.
pub(super) fn seconds(value: f64) -> Option<Nanos> {
    let believable = value.is_finite() && (0.0..LONGEST_SECONDS).contains(&value);
    believable.then(|| Nanos((value * 1e9).round() as u64))
}

/// `7.99ms`, `95.00us`, `2m`, `1.5h`, `41.1640 us`, `0.0853 secs`: a number and a unit, which must
/// be there.
pub(super) fn duration(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let end = text.find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.')?;
    let (number, unit) = text.split_at(end);
    let per_second = match unit.trim() {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" | "secs" | "seconds" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    seconds(number.parse::<f64>().ok()? * per_second)
}

/// Go's way of printing durations: `1m2.5s`, `145.082066ms`, `1h0m0s`.
pub(super) fn go_duration(text: &str) -> Option<Nanos> {
    let mut rest = text.trim();
    let mut sum = 0_u64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number = rest.find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.')?;
        let unit = rest[number..].find(|symbol: char| symbol.is_ascii_digit());
        let (piece, after) = rest.split_at(unit.map_or(rest.len(), |unit| number + unit));
        sum = sum.checked_add(duration(piece)?.0)?;
        rest = after;
    }
    Some(Nanos(sum))
}

/// `1,234` or `1234`.
pub(super) fn count(text: &str) -> Option<u64> {
    text.trim().replace(',', "").parse().ok()
}

/// A quantile's name from per cent: `50`, `99.9`, `50.000`.
pub(super) fn quantile(percent: &str) -> Option<String> {
    let percent: f64 = percent.trim().trim_end_matches('%').parse().ok()?;
    if percent == 100.0 {
        return Some("max".to_owned());
    }
    // Division leaves 0.9990000000000001; eight digits are more than any tool has.
    let text = format!("{:.8}", percent / 100.0);
    (0.0..100.0).contains(&percent).then(|| text.trim_end_matches('0').to_owned())
}

/// A point of a distribution.
pub(super) fn latency(quantile: impl Into<String>, time: Nanos) -> Latency {
    Latency { quantile: quantile.into(), time }
}

/// Whether a status is a good answer.
pub(super) fn good(status: u64) -> bool {
    (200..400).contains(&status)
}

/// A moment as RFC 3339 has it, in nanoseconds since the Unix epoch:
/// `2023-08-24T13:08:43.178+02:00`.
pub(super) fn moment(text: &str) -> Option<u64> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone = time.find(['Z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone);
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (clock.next()?.parse::<i64>().ok()?, clock.next()?.parse::<i64>().ok()?);
    let second: f64 = clock.next()?.parse().ok()?;
    let ahead = match zone.strip_prefix('Z') {
        Some(_) => 0,
        None => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    let in_range = (1970..2500).contains(&year)
        && (1..=12).contains(&month)
        && (0..3000).contains(&ahead.abs())
        && (0..62).contains(&(second as i64))
        && hour.abs() < 25
        && minute.abs() < 61
        && day.abs() < 32;
    in_range.then_some(())?;
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - ahead;
    let whole = u64::try_from(minutes * 60).ok()?.checked_mul(1_000_000_000)?;
    whole.checked_add(seconds(second)?.0)
}

/// Days since 1970-01-01 in the Gregorian calendar, by counting years from March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_no_duration() {
        assert_eq!(duration("1531867"), None);
        assert_eq!(duration("-nan"), None);
        assert_eq!(duration("307445734491.24m"), None);
        assert_eq!(duration("7.99ms"), Some(Nanos(7_990_000)));
        assert_eq!(duration("2.00m"), Some(Nanos(120_000_000_000)));
        assert_eq!(go_duration("1m2.5s"), Some(Nanos(62_500_000_000)));
        assert_eq!(go_duration(""), None);
    }

    #[test]
    fn moments_count_from_the_epoch() {
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(moment("2023-08-24T13:08:43.5+02:00"), Some(1_692_875_323_500_000_000));
        assert_eq!(moment("2023-13-24T13:08:43Z"), None);
    }

    #[test]
    fn quantiles_have_short_names() {
        assert_eq!(quantile("50%").as_deref(), Some("0.5"));
        assert_eq!(quantile("99.900").as_deref(), Some("0.999"));
        assert_eq!(quantile("100.000").as_deref(), Some("max"));
        assert_eq!(quantile("nan"), None);
    }
}
