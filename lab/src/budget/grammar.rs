//! One limit, as a line of text:
//!
//! ```text
//! postgres.flights <= 4
//! detail: postgres.flights{reason=pool ping} <= 0
//! detail, tag @ blog.page in serial: allocations.blocks <= +2 % of baseline
//! cpu.time{process=subject} <= 300 µs
//! throughput >= baseline - 5 %
//! ```

use std::collections::BTreeMap;

use assay_analyses::budget::{ArmPattern, Bound, Limit, Side};
use assay_analyses::metric::Metric;

use crate::experiment::nearest;

/// Reads one limit. The error is one line: what is wrong, and what to do.
pub(super) fn limit(text: &str) -> Result<Limit, String> {
    let (place, rest) = split_place(text);
    let (name, labels, rest) = split_labels(rest)?;
    let metric = Metric::from_name(name).ok_or_else(|| unknown_metric(name))?;
    let (side, bound) = split_side(rest)?;
    let mut limit = Limit::everywhere(metric, side, bound_of(bound.trim(), metric)?);
    limit.text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    limit.labels = labels;
    if let Some(place) = place {
        read_place(place, &mut limit)?;
    }
    Ok(limit)
}

/// What stands before a colon, unless that colon is inside labels or behind the sign.
fn split_place(text: &str) -> (Option<&str>, &str) {
    match text.find([':', '{', '<', '>', '=']) {
        Some(at) if text[at..].starts_with(':') => (Some(text[..at].trim()), text[at + 1..].trim()),
        _ => (None, text.trim()),
    }
}

type Labels = BTreeMap<String, Option<String>>;

/// The name of the metric, its labels, and the rest.
fn split_labels(text: &str) -> Result<(&str, Labels, &str), String> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    if name.is_empty() {
        return Err("a limit is METRIC <= AMOUNT, such as postgres.flights <= 4".to_owned());
    }
    let Some(inner) = rest.trim_start().strip_prefix('{') else {
        return Ok((name, Labels::new(), rest.trim()));
    };
    let mut labels = Labels::new();
    let mut inner = inner.trim_start();
    while !inner.starts_with('}') {
        let (key, after) = inner
            .split_once('=')
            .ok_or_else(|| format!("labels are {{name=value, …}}, not {{{inner}"))?;
        let (value, after) = label_value(after.trim_start())?;
        labels.insert(key.trim().to_owned(), (value != "*").then(|| value.to_owned()));
        inner = after.trim_start();
        inner = inner.strip_prefix(',').unwrap_or(inner).trim_start();
    }
    Ok((name, labels, inner[1..].trim()))
}

/// A value up to the next comma or brace, or in quotes when it has those inside.
fn label_value(text: &str) -> Result<(&str, &str), String> {
    let unclosed = || format!("the labels have no end: a }} is missing after {text:?}");
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.split_once('"').ok_or_else(unclosed);
    }
    let end = text.find([',', '}']).ok_or_else(unclosed)?;
    Ok((text[..end].trim_end(), &text[end..]))
}

fn unknown_metric(name: &str) -> String {
    let names = Metric::ALL.map(Metric::name);
    match nearest(name, names) {
        Some(near) => format!("there is no metric {name:?}; did you mean {near:?}?"),
        None => format!("there is no metric {name:?} (there are: {})", names.join(", ")),
    }
}

fn split_side(text: &str) -> Result<(Side, &str), String> {
    for side in [Side::AtMost, Side::AtLeast, Side::Below, Side::Above] {
        if let Some(bound) = text.strip_prefix(side.sign()) {
            return Ok((side, bound));
        }
    }
    Err(match text {
        "" => "the limit is missing: <= AMOUNT, < AMOUNT, >= AMOUNT or > AMOUNT".to_owned(),
        _ => format!("{text:?} begins with none of <=, <, >=, >"),
    })
}

fn bound_of(text: &str, metric: Metric) -> Result<Bound, String> {
    if let Some(step) = text.strip_prefix("baseline") {
        return if step.trim().is_empty() {
            Ok(Bound::Baseline { factor: 1.0, plus: 0.0 })
        } else {
            step_of(step.trim(), metric)
        };
    }
    if let Some(before) = text.strip_suffix("baseline") {
        let words = before.trim_end();
        let step = words.strip_suffix("of").or_else(|| words.strip_suffix("from"));
        let step = step.ok_or_else(|| wrong_bound(text))?;
        return step_of(step.trim(), metric);
    }
    if text.contains('%') && metric.unit() != "1" {
        return Err(format!("{text:?} is a share of what? write {text} of baseline"));
    }
    Ok(Bound::Amount(amount(text, metric)?))
}

/// A step from the baseline: its sign, then a share of it or an amount.
fn step_of(text: &str, metric: Metric) -> Result<Bound, String> {
    let (sign, size) = if let Some(size) = text.strip_prefix('+') {
        (1.0, size)
    } else if let Some(size) = text.strip_prefix('-').or_else(|| text.strip_prefix('−')) {
        (-1.0, size)
    } else {
        let what = format!("a step from the baseline needs its sign: +{text} or -{text}");
        return Err(what);
    };
    if let Some(percent) = size.trim().strip_suffix('%') {
        let share = number(percent).ok_or_else(|| wrong_bound(text))? / 100.0;
        return Ok(Bound::Baseline { factor: 1.0 + sign * share, plus: 0.0 });
    }
    Ok(Bound::Baseline { factor: 1.0, plus: sign * amount(size.trim(), metric)? })
}

fn wrong_bound(text: &str) -> String {
    format!("{text:?} is no limit; write an amount, baseline, or +2 % of baseline")
}

/// An amount with its unit, in the metric's own unit.
fn amount(text: &str, metric: Metric) -> Result<f64, String> {
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '_' | '-' | '+' | ' ');
    let end = text.find(|c: char| !digits(c)).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let value = number(digits).ok_or_else(|| wrong_bound(text))?;
    let unit = unit.trim();
    let units = units(metric.unit());
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    let factor = factor.ok_or_else(|| {
        let names = units.iter().map(|(name, _)| *name).filter(|name| !name.is_empty());
        let names = names.collect::<Vec<_>>().join(", ");
        let what = metric.name();
        match (unit, names.as_str()) {
            ("", _) => format!("{text} of what? {what} needs a unit: {names}"),
            (_, "") => format!("{what} is a plain number, without the unit {unit:?}"),
            _ => format!("{what} is not counted in {unit:?}; units here: {names}"),
        }
    })?;
    Ok(value * factor)
}

/// Units that may be written, and what they are in the metric's own.
fn units(ucum: &str) -> &'static [(&'static str, f64)] {
    match ucum {
        "s" => &[("ns", 1e-9), ("µs", 1e-6), ("μs", 1e-6), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)],
        "By" => &[
            ("B", 1.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
        ],
        "1/s" => &[("", 1.0), ("/s", 1.0), ("req/s", 1.0)],
        _ => &[("", 1.0), ("%", 0.01)],
    }
}

/// A number, with commas or low lines between thousands.
fn number(text: &str) -> Option<f64> {
    let digits: String = text.trim().chars().filter(|c| !matches!(c, ',' | '_')).collect();
    digits.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Where a limit holds: `ROUTE, … @ SUBJECT.VARIANT, … in PASS`, each part optional.
fn read_place(place: &str, limit: &mut Limit) -> Result<(), String> {
    let (place, pass) = match place.strip_prefix("in ") {
        Some(pass) => ("", Some(pass)),
        None => match place.rsplit_once(" in ") {
            Some((place, pass)) => (place, Some(pass)),
            None => (place, None),
        },
    };
    limit.pass = pass.map(|pass| pass.trim().to_owned());
    let (routes, arms) = place.split_once('@').unwrap_or((place, ""));
    let words = |list: &str| -> Vec<String> {
        let words = list.split(',').map(str::trim);
        words.filter(|word| !word.is_empty() && *word != "*").map(str::to_owned).collect()
    };
    limit.routes = words(routes);
    limit.arms = words(arms).iter().map(|word| arm(word)).collect();
    if limit.routes.iter().any(|route| route.contains(' ')) {
        return Err(format!("{place:?} is not ROUTE, … @ SUBJECT.VARIANT in PASS"));
    }
    Ok(())
}

/// As `--only` takes it: a subject, or one of its variants behind a point.
fn arm(word: &str) -> ArmPattern {
    match word.split_once('.') {
        Some((subject, variant)) => {
            ArmPattern { subject: subject.to_owned(), variant: Some(variant.to_owned()) }
        }
        None => ArmPattern { subject: word.to_owned(), variant: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a limit was read as, or why it was not.
    fn check(text: &str, expected: &str) {
        let read = match limit(text) {
            Err(error) => error,
            Ok(limit) => {
                let arms: Vec<String> = (limit.arms.iter())
                    .map(|a| format!("{}.{}", a.subject, a.variant.as_deref().unwrap_or("*")))
                    .collect();
                let labels: Vec<String> = (limit.labels.iter())
                    .map(|(key, value)| format!("{key}={}", value.as_deref().unwrap_or("*")))
                    .collect();
                format!(
                    "[{}] [{}] [{}] {} [{}] {} {:?}",
                    limit.routes.join("|"),
                    arms.join("|"),
                    limit.pass.unwrap_or_default(),
                    limit.metric.name(),
                    labels.join("|"),
                    limit.side.sign(),
                    limit.bound,
                )
            }
        };
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn a_limit_says_what_where_and_how_much() {
        check("postgres.flights <= 4", "[] [] [] postgres.flights [] <= Amount(4.0)");
        check("*: postgres.flights<4", "[] [] [] postgres.flights [] < Amount(4.0)");
        check(
            "detail, tag @ blog.page, shop in serial: syscalls{name=recvfrom} >= 1,000",
            "[detail|tag] [blog.page|shop.*] [serial] syscalls [name=recvfrom] >= Amount(1000.0)",
        );
        check("@blog: syscalls > 1", "[] [blog.*] [] syscalls [] > Amount(1.0)");
        check("in wire: postgres.rows <= 9", "[] [] [wire] postgres.rows [] <= Amount(9.0)");
        check(
            "instructions{function=\"a::b<{c}, d>\"} <= 9",
            "[] [] [] instructions [function=a::b<{c}, d>] <= Amount(9.0)",
        );
        check(
            "context_switches{process=subject, kind=*} <= 5",
            "[] [] [] context_switches [kind=*|process=subject] <= Amount(5.0)",
        );
    }

    #[test]
    fn amounts_carry_the_units_that_people_write() {
        check(
            "cpu.time{process=subject} <= 250 ms",
            "[] [] [] cpu.time [process=subject] <= Amount(0.25)",
        );
        check(
            "memory.resident{process=subject, rule=peak} <= 64 MiB",
            "[] [] [] memory.resident [process=subject|rule=peak] <= Amount(67108864.0)",
        );
        check("throughput >= 1,000 req/s", "[] [] [] throughput [] >= Amount(1000.0)");
        check("gc.stop_the_world_share <= 50 %", {
            "[] [] [] gc.stop_the_world_share [] <= Amount(0.5)"
        });
    }

    #[test]
    fn a_step_from_the_baseline_is_a_share_or_an_amount() {
        let read = |text: &str| limit(text).map(|limit| limit.bound);
        let step = |factor, plus| Ok(Bound::Baseline { factor, plus });
        assert_eq!(read("syscalls <= baseline"), step(1.0, 0.0));
        assert_eq!(read("syscalls <= +2 % of baseline"), step(1.02, 0.0));
        assert_eq!(read("syscalls <= baseline + 2 %"), step(1.02, 0.0));
        assert_eq!(read("throughput >= -50% of baseline"), step(0.5, 0.0));
        assert_eq!(read("syscalls <= +1.5 from baseline"), step(1.0, 1.5));
        assert_eq!(read("cpu.time <= baseline + 5 ms"), step(1.0, 0.005));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_to_do() {
        check(
            "postgres.flight <= 4",
            "there is no metric \"postgres.flight\"; did you mean \"postgres.flights\"?",
        );
        check("cpu.time <= 300", "300 of what? cpu.time needs a unit: ns, µs, μs, us, ms, s");
        check("syscalls <= 3 ms", "syscalls is not counted in \"ms\"; units here: %");
        check("cpu.time <= 2 %", "\"2 %\" is a share of what? write 2 % of baseline");
        check("syscalls <= 2 % of baseline", {
            "a step from the baseline needs its sign: +2 % or -2 %"
        });
        check("syscalls", "the limit is missing: <= AMOUNT, < AMOUNT, >= AMOUNT or > AMOUNT");
        check("syscalls = 4", "\"= 4\" begins with none of <=, <, >=, >");
        check(
            "syscalls <= four",
            "\"four\" is no limit; write an amount, baseline, or +2 % of \
                                   baseline",
        );
        check("syscalls <= 1e400", "syscalls is not counted in \"e400\"; units here: %");
        check("syscalls{name <= 4", "the labels have no end: a } is missing after \"4\"");
        check("syscalls{name} <= 4", "the labels have no end: a } is missing after \"4\"");
        check("syscalls{name", "labels are {name=value, …}, not {name");
        check("syscalls{name=a <= 4", "the labels have no end: a } is missing after \"a <= 4\"");
        check("", "a limit is METRIC <= AMOUNT, such as postgres.flights <= 4");
        check("the page: syscalls <= 4", "\"the page\" is not ROUTE, … @ SUBJECT.VARIANT in PASS");
    }
}
