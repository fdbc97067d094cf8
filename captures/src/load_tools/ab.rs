//! ab. `Failed requests` counts answers whose length differs from the first one's beside real
//! failures; only the breakdown in the next line tells them apart.

use crate::load_tools::model::{Report, Stated, Tool};
use crate::load_tools::quantities::{count, latency, quantile, seconds};

/// Reads one run.
pub(super) fn text(text: &str) -> Result<Report, &'static str> {
    let mut report = Report::of(Tool::Ab);
    let (mut failed, mut breakdown, mut non_2xx) = (0, None, 0);
    let (mut host, mut port, mut path) = ("", "", "");
    let mut latencies = Vec::new();
    let mut below_resolution = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(parts) = line.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            breakdown = breakdown.or(failures(parts));
            continue;
        }
        if let Some((percent, rest)) = line.split_once("% ").filter(|_| !line.contains(':')) {
            let time = rest.split_whitespace().next().and_then(|ms| ms.parse::<f64>().ok());
            let time = time.and_then(|ms| seconds(ms / 1e3));
            match (quantile(percent), time) {
                (Some(_), Some(time)) if time.0 == 0 => below_resolution = true,
                (Some(quantile), Some(time)) => latencies.push(latency(quantile, time)),
                _ => {}
            }
            continue;
        }
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let number = value.split_whitespace().next().unwrap_or_default();
        match key {
            "Server Hostname" => host = value,
            "Server Port" => port = value,
            "Document Path" => path = value,
            "Concurrency Level" => report.connections = count(number),
            "Time taken for tests" => {
                report.duration = number.parse().ok().and_then(seconds).into();
            }
            "Complete requests" => report.requests = count(number).into(),
            "Failed requests" => failed = count(number).unwrap_or(0),
            "Non-2xx responses" => non_2xx = count(number).unwrap_or(0),
            "Requests per second" => report.rate = number.parse().ok().into(),
            // The second line of that name is divided by the concurrency: not a latency.
            "Time per request" if value.ends_with("(mean)") => {
                let mean = number.parse::<f64>().ok().and_then(|ms| seconds(ms / 1e3));
                latencies.extend(mean.map(|mean| latency("mean", mean)));
            }
            _ => {}
        }
    }
    let Some(&requests) = report.requests.value() else {
        return Err("the number of complete requests is missing: the run did not end");
    };
    if !host.is_empty() {
        report.target = Some(format!("{host}:{port}{path}"));
    }
    report.error("non-2xx", non_2xx, true);
    count_failures(requests, non_2xx, failed, breakdown, &mut report);
    report.latency = match requests {
        0 => Stated::refused("no request was answered"),
        _ => Stated::from((!latencies.is_empty()).then_some(latencies)),
    };
    if below_resolution {
        report.notes.push("quantiles below ab's resolution of 1 ms are left out".to_owned());
    }
    Ok(report)
}

/// `Connect: 0, Receive: 0, Length: 85, Exceptions: 0`
fn failures(text: &str) -> Option<[u64; 4]> {
    let mut found = [0; 4];
    for part in text.split(',') {
        let (kind, number) = part.split_once(':')?;
        let at = ["Connect", "Receive", "Length", "Exceptions"]
            .iter()
            .position(|known| *known == kind.trim())?;
        found[at] = count(number)?;
    }
    Some(found)
}

fn count_failures(
    requests: u64,
    non_2xx: u64,
    failed: u64,
    breakdown: Option<[u64; 4]>,
    report: &mut Report,
) {
    let broken = match (failed, breakdown) {
        (0, _) => 0,
        (_, Some([connect, receive, length, exceptions])) => {
            report.error("connect", connect, false);
            report.error("read", receive, false);
            report.error("exception", exceptions, false);
            if length > 0 {
                report.notes.push(format!(
                    "{length} of ab's failed requests are answers of another length than the \
                     first one's: not errors"
                ));
            }
            connect.saturating_add(receive).saturating_add(exceptions)
        }
        (failed, None) => {
            report.good = Stated::refused(format!(
                "ab says that {failed} failed, but the line that tells why is missing; an answer \
                 of another length is among ab's failures"
            ));
            return;
        }
    };
    report.good = Stated::Value(requests.saturating_sub(non_2xx).saturating_sub(broken));
}
