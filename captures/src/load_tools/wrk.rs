//! wrk and wrk2. `Requests/sec` holds error answers; socket errors are counted apart.

use crate::load_tools::model::{Latency, Report, Stated, Tool};
use crate::load_tools::quantities::{count, duration, latency, quantile};
use crate::units::Nanos;

/// How much longer than asked for a run may have taken.
const LONGEST_OVERRUN: u64 = 20;

/// Reads one run.
pub(super) fn text(text: &str) -> Result<Report, &'static str> {
    let wrk2 = text.contains("Thread calibration:") || text.contains("HdrHistogram");
    let mut report = Report::of(if wrk2 { Tool::Wrk2 } else { Tool::Wrk });
    let mut asked = None;
    let mut latencies = Vec::new();
    let mut average = Stated::Absent;
    let mut non_2xx = 0;
    let mut distribution = true;
    for line in text.lines().map(str::trim) {
        if let Some((length, target)) =
            line.strip_prefix("Running ").and_then(|rest| rest.split_once(" test @ "))
        {
            asked = duration(length);
            report.target = Some(target.to_owned());
        } else if let Some((threads, rest)) = line.split_once(" threads and ") {
            report.threads = count(threads);
            report.connections = rest.strip_suffix(" connections").and_then(count);
        } else if line.starts_with("Latency Distribution") {
            // wrk2 -U prints a second one that hides queueing; the first is the one to believe.
            distribution = !line.contains("Uncorrected");
        } else if line.starts_with("Detailed Percentile spectrum") {
            distribution = false;
        } else if let Some(rest) = line.strip_prefix("Latency ") {
            average = thread_latency(rest);
        } else if let Some((requests, rest)) = line.split_once(" requests in ") {
            report.requests = count(requests).into();
            report.duration = stated_length(rest, asked);
        } else if let Some(rest) = line.strip_prefix("Socket errors: ") {
            socket_errors(rest, &mut report);
        } else if let Some(rest) = line.strip_prefix("Non-2xx or 3xx responses:") {
            non_2xx = count(rest).unwrap_or(0);
        } else if let Some(rest) = line.strip_prefix("Requests/sec:") {
            report.rate = rest.trim().parse().ok().into();
        } else if distribution {
            latencies.extend(point(line));
        }
    }
    let Some(&requests) = report.requests.value() else {
        return Err("the line with the number of requests is missing: the run did not end");
    };
    report.error("non-2xx or 3xx", non_2xx, true);
    report.good = match requests.checked_sub(non_2xx) {
        Some(good) => Stated::Value(good),
        None => Stated::refused("more error answers than answers"),
    };
    report.latency = distribution_of(requests, average, latencies);
    believe_rate(requests, &mut report);
    if wrk2 {
        report.notes.push("latency is counted from when each request was due".to_owned());
    }
    Ok(report)
}

/// `7.99ms    1.70ms  12.71ms   93.85%`: mean, deviation, maximum.
fn thread_latency(text: &str) -> Stated<(Nanos, Nanos)> {
    let mut words = text.split_whitespace();
    let (mean, _, most) = (words.next(), words.next(), words.next());
    let (Some(mean), Some(most)) = (mean, most) else {
        return Stated::Absent;
    };
    if text.to_ascii_lowercase().contains("nan") {
        return Stated::refused("wrk printed NaN: no request was answered");
    }
    match (duration(mean), duration(most)) {
        (Some(mean), Some(most)) => Stated::Value((mean, most)),
        _ => Stated::refused(format!("latency {mean} has no unit or cannot be true")),
    }
}

fn stated_length(rest: &str, asked: Option<Nanos>) -> Stated<Nanos> {
    let text = rest.split(',').next().unwrap_or_default();
    let refused = || Stated::refused(format!("a run time of {text} cannot be true"));
    match (duration(text), asked) {
        (None | Some(Nanos(0)), _) => refused(),
        (Some(Nanos(long)), Some(Nanos(asked))) if long / LONGEST_OVERRUN > asked => refused(),
        (Some(length), _) => Stated::Value(length),
    }
}

/// `connect 1, read 20, write 0, timeout 4`
fn socket_errors(text: &str, report: &mut Report) {
    for error in text.split(',') {
        if let Some((kind, number)) = error.trim().split_once(' ') {
            report.error(kind, count(number).unwrap_or(0), false);
        }
    }
}

/// `50%  155.00us`, or wrk2's `50.000%    1.23ms`.
fn point(line: &str) -> Option<Latency> {
    let (percent, time) = line.split_once('%')?;
    Some(latency(quantile(percent)?, duration(time)?))
}

fn distribution_of(
    requests: u64,
    average: Stated<(Nanos, Nanos)>,
    mut latencies: Vec<Latency>,
) -> Stated<Vec<Latency>> {
    if requests == 0 {
        return Stated::refused("no request was answered");
    }
    match average {
        Stated::Value((mean, most)) => {
            latencies.push(latency("mean", mean));
            if latencies.iter().all(|point| point.quantile != "max") {
                latencies.push(latency("max", most));
            }
        }
        Stated::Refused(why) if latencies.is_empty() => return Stated::Refused(why),
        _ => {}
    }
    // Where a run broke, wrk prints a distribution of zeros.
    if latencies.iter().all(|point| point.time.0 == 0) {
        return Stated::refused("every latency is printed as 0");
    }
    Stated::Value(latencies)
}

fn believe_rate(requests: u64, report: &mut Report) {
    let printed = report.rate.value().copied();
    if requests > 0 && printed == Some(0.0) {
        report.rate = Stated::refused("a rate of 0.00 beside answered requests cannot be true");
    } else if let (Some(rate), Stated::Value(length)) = (printed, &report.duration) {
        let expected = requests as f64 / length.seconds();
        if (rate - expected).abs() > 0.05 * expected.max(1.0) {
            report.rate = Stated::refused(format!(
                "a rate of {rate} is not {requests} requests in {:.2} s",
                length.seconds()
            ));
        }
    }
}
