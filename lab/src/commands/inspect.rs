//! `assay inspect`: what files of any tool hold.

use anyhow::Result;
use assay_analyses::costs::wire::WirePorts;
use assay_captures::units::{Moment, Span};
use assay_reports::json::render_inspection;

use super::WrongUsage;
use crate::cli::InspectArgs;
use crate::exit::Exit;
use crate::inspect::{self, Question};
use crate::ui::Ui;

/// Reads the files and prints what they hold. A file that gives no figure at all ends with
/// "could not measure".
pub fn inspect(ui: &Ui, args: &InspectArgs) -> Result<Exit> {
    let question = Question {
        files: args.files.clone(),
        ports: ports(&args.port)?,
        requests: args.requests,
        span: span(args.since, args.until)?,
        top: args.top,
    };
    if args.folded {
        let folded = inspect::fold(&question, args.event.as_deref())?;
        folded.notes.iter().for_each(|note| ui.warn(note));
        ui.result(&folded.text);
        return Ok(Exit::Done);
    }
    let found = inspect::inspect(&question)?;
    if args.json {
        ui.result(&render_inspection(&found));
    } else {
        ui.result(&inspect::render(&found));
    }
    Ok(if inspect::is_measured(&found) { Exit::Done } else { Exit::CannotMeasure })
}

fn ports(words: &[String]) -> Result<WirePorts, WrongUsage> {
    let mut ports = WirePorts::default();
    for word in words {
        let wrong = || WrongUsage(format!("{word} is not pg=PORT, http=PORT or redis=PORT"));
        let (protocol, port) = word.split_once('=').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        match protocol {
            "pg" | "postgres" => ports.postgres.push(port),
            "http" => ports.http.push(port),
            "redis" => ports.redis.push(port),
            _ => return Err(wrong()),
        }
    }
    Ok(ports)
}

fn span(since: Option<f64>, until: Option<f64>) -> Result<Option<Span>, WrongUsage> {
    if since.is_none() && until.is_none() {
        return Ok(None);
    }
    let moment = |seconds: f64| Moment((seconds.max(0.0) * 1e9) as u64);
    let start = since.map_or(Moment(0), moment);
    let end = until.map_or(Moment(u64::MAX), moment);
    if start >= end {
        return Err(WrongUsage("--since lies after --until".to_owned()));
    }
    Ok(Some(Span { start, end }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_named_by_protocol() {
        let words = ["pg=6543", "http=8080", "redis=6380"].map(str::to_owned);
        let ports = ports(&words).unwrap();
        assert_eq!((ports.postgres, ports.http, ports.redis), (vec![6543], vec![8080], vec![6380]));
        for wrong in ["pg", "smtp=25", "pg=99999"] {
            assert!(super::ports(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_span_that_ends_before_it_begins_is_wrong_usage() {
        assert!(span(Some(2.0), Some(1.0)).is_err());
        assert_eq!(span(None, None), Ok(None));
        let half = Span { start: Moment(1_500_000_000), end: Moment(u64::MAX) };
        assert_eq!(span(Some(1.5), None), Ok(Some(half)));
    }
}
