//! Numbers as people read them: one scale a row, no more digits than the interval supports.

/// How many digits a figure gets at most.
const DIGITS: i32 = 4;

/// How one row shows its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The unit as printed, such as `µs`.
    pub unit: &'static str,
    /// Shown number = amount × factor.
    pub factor: f64,
    /// Digits after the point; negative ones round to tens, hundreds, …
    pub decimals: i32,
}

/// A value and the half-width of its interval, both in the metric's unit; zero for exact counts.
pub type Amount = (f64, f64);

impl Scale {
    /// The scale of a row of amounts in a UCUM unit (`s`, `By`, `1/s`, `1`); counts show `count`
    /// as their unit, and so do rates of something else than requests; shares are shown in `%`.
    #[must_use]
    pub fn of(ucum: &str, count: &'static str, amounts: &[Amount]) -> Self {
        let largest = amounts.iter().map(|(value, _)| value.abs()).fold(0.0, f64::max);
        let (unit, factor) = match ucum {
            "s" => time(largest),
            "By" => size(largest),
            "1" if count == "%" => (count, 100.0),
            "1/s" if count.is_empty() => ("req/s", 1.0),
            _ => (count, 1.0),
        };
        Self { unit, factor, decimals: decimals(amounts, factor) }
    }

    /// The same, in the unit that the largest of the amounts and `beside` have together.
    #[must_use]
    pub fn beside(ucum: &str, count: &'static str, amounts: &[Amount], beside: f64) -> Self {
        let shared = Self::of(ucum, count, &[(beside, 0.0)]);
        let own = Self::of(ucum, count, amounts);
        if shared.factor >= own.factor || beside == 0.0 {
            return own;
        }
        Self { decimals: decimals(amounts, shared.factor), ..shared }
    }

    /// An amount in the metric's unit as this row shows it, without the unit.
    #[must_use]
    pub fn show(&self, amount: f64) -> String {
        let shown = amount * self.factor;
        let text = number(shown, self.decimals);
        if shown != 0.0 && is_zero(&text) {
            let least = number(10f64.powi(-self.decimals), self.decimals);
            return format!("{}<{least}", if shown < 0.0 { "−" } else { "" });
        }
        text
    }

    /// A difference with its sign; `None` when the digits shown do not differ.
    #[must_use]
    pub fn show_difference(&self, difference: f64) -> Option<String> {
        let text = number(difference * self.factor, self.decimals);
        if is_zero(&text) {
            return None;
        }
        Some(if difference > 0.0 { format!("+{text}") } else { text })
    }
}

fn is_zero(text: &str) -> bool {
    !text.chars().any(|character| ('1'..='9').contains(&character))
}

fn time(seconds: f64) -> (&'static str, f64) {
    match seconds {
        _ if seconds >= 1.0 => ("s", 1.0),
        _ if seconds >= 1e-3 => ("ms", 1e3),
        _ if seconds >= 1e-6 || seconds == 0.0 => ("µs", 1e6),
        _ => ("ns", 1e9),
    }
}

fn size(bytes: f64) -> (&'static str, f64) {
    match bytes {
        _ if bytes >= 1_073_741_824.0 => ("GiB", 1.0 / 1_073_741_824.0),
        _ if bytes >= 1_048_576.0 => ("MiB", 1.0 / 1_048_576.0),
        _ if bytes >= 10_240.0 => ("KiB", 1.0 / 1024.0),
        _ => ("B", 1.0),
    }
}

/// Whole numbers stay whole. Others get four digits of the largest, fewer where even the
/// narrowest interval is wider than that, and never less than two digits.
fn decimals(amounts: &[Amount], factor: f64) -> i32 {
    let whole = |value: f64| (value - value.round()).abs() < 1e-9;
    if factor == 1.0 && amounts.iter().all(|&(value, half)| whole(value) && half == 0.0) {
        return 0;
    }
    let largest = amounts.iter().map(|(value, _)| (value * factor).abs()).fold(0.0, f64::max);
    let narrowest =
        amounts.iter().map(|(_, half)| half.abs() * factor).fold(f64::INFINITY, f64::min);
    if largest == 0.0 || !largest.is_finite() {
        return 0;
    }
    let digits = largest.log10().floor() as i32;
    let most = DIGITS - 1 - digits;
    let supported =
        if narrowest > 0.0 && narrowest.is_finite() { supported(narrowest) } else { most };
    most.min(supported).max(1 - digits).min(3)
}

/// Decimals at which a half-width still shows: two of its digits when it begins with 1 or 2, else
/// one, so that rounding never adds more than a tenth to it.
fn supported(half_width: f64) -> i32 {
    let digits = half_width.log10().floor() as i32;
    let leading = half_width / 10f64.powi(digits);
    if leading < 3.0 { 1 - digits } else { -digits }
}

/// A number with a point for decimals, commas for thousands, and a true minus sign.
#[must_use]
pub fn number(value: f64, decimals: i32) -> String {
    if !value.is_finite() {
        return "n/a".to_owned();
    }
    let rounded = if decimals < 0 {
        let step = 10f64.powi(-decimals);
        (value / step).round() * step
    } else {
        value
    };
    let text = format!("{:.*}", usize::try_from(decimals).unwrap_or(0), rounded.abs());
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text.as_str(), None),
    };
    let mut out = String::new();
    if rounded < 0.0 && !is_zero(&text) {
        out.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A whole number with commas for thousands.
#[must_use]
pub fn count(value: f64) -> String {
    number(value, if (value - value.round()).abs() < 1e-9 { 0 } else { 2 })
}

/// A relative change as a signed percentage, such as `+28.8 %`; `half_width` (relative, too)
/// limits its digits.
#[must_use]
pub fn percent(change: f64, half_width: Option<f64>) -> String {
    let decimals = digits_of_percent(change, half_width);
    let text = number(change * 100.0, decimals);
    let sign = if change > 0.0 && !is_zero(&text) { "+" } else { "" };
    format!("{sign}{text} %")
}

/// A half-width as a percentage, such as `±1.4 %`.
#[must_use]
pub fn plus_minus(half_width: f64) -> String {
    format!("±{} %", number(half_width * 100.0, if half_width < 0.095 { 1 } else { 0 }))
}

fn digits_of_percent(change: f64, half_width: Option<f64>) -> i32 {
    let wide = half_width.is_some_and(|half| half >= 0.1);
    i32::from(!wide && change.abs() < 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ucum: &str, amounts: &[Amount]) -> (String, Vec<String>) {
        let scale = Scale::of(ucum, "trips", amounts);
        let cells = amounts.iter().map(|&(value, _)| scale.show(value)).collect();
        (scale.unit.to_owned(), cells)
    }

    #[test]
    fn a_row_shares_one_scale() {
        let (unit, cells) = row("s", &[(316.3e-6, 2e-6), (8.9e-6, 1e-6)]);
        assert_eq!((unit.as_str(), cells), ("µs", vec!["316.3".to_owned(), "8.9".to_owned()]));
        let (unit, cells) = row("By", &[(49_356.8, 10.0), (0.0, 0.0)]);
        assert_eq!((unit.as_str(), cells), ("KiB", vec!["48.20".to_owned(), "0.00".to_owned()]));
    }

    #[test]
    fn whole_counts_stay_whole_and_others_get_four_digits() {
        assert_eq!(row("1", &[(9.0, 0.0), (6.0, 0.0)]).1, ["9", "6"]);
        assert_eq!(row("1", &[(9.008, 0.0), (6.0, 0.0)]).1, ["9.008", "6.000"]);
        assert_eq!(row("1", &[(373.63, 0.0)]).1, ["373.6"]);
        assert_eq!(row("1", &[(21_171_191.0, 0.0)]).1, ["21,171,191"]);
    }

    #[test]
    fn no_more_digits_than_the_interval_supports_and_never_less_than_two() {
        assert_eq!(row("1/s", &[(18_222.0, 130.0)]).1, ["18,220"]);
        assert_eq!(row("1/s", &[(18_222.0, 1400.0)]).1, ["18,200"]);
        assert_eq!(row("1/s", &[(18_222.0, 9000.0)]).1, ["18,000"]);
        assert_eq!(row("s", &[(149.68e-6, 21e-6)]).1, ["150"]);
        assert_eq!(row("s", &[(1.4e-6, 90e-6)]).1, ["1.4"]);
    }

    #[test]
    fn something_too_small_to_show_is_not_shown_as_nothing() {
        assert_eq!(row("1", &[(9.125, 0.01), (0.000_1, 0.01)]).1, ["9.125", "<0.001"]);
        assert_eq!(row("1", &[(0.0, 0.0)]).1, ["0"]);
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(percent(0.288, Some(0.014)), "+28.8 %");
        assert_eq!(percent(-0.194, Some(0.3)), "−19 %");
        assert_eq!(percent(0.000_01, None), "0.0 %");
        assert_eq!(plus_minus(0.014), "±1.4 %");
        let scale = Scale::of("1", "trips", &[(9.0, 0.0)]);
        assert_eq!(scale.show_difference(-3.0).as_deref(), Some("−3"));
        assert_eq!(scale.show_difference(0.0), None);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(number(-1_234_567.891, 2), "−1,234,567.89");
        assert_eq!(number(999.0, 0), "999");
        assert_eq!(number(f64::NAN, 0), "n/a");
        assert_eq!(number(-0.000_1, 1), "0.0");
    }
}
