//! The command line. Help texts are the doc comments.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::experiment::plan::Choice;
use crate::run::GivenServices;

/// Say what one request of a running service costs, and why
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Example: assay demo")]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the blog that ships, with a private Postgres and Redis
    #[command(after_help = "Example: assay demo --route detail")]
    Demo(MeasureArgs),
    /// Measure an experiment
    #[command(after_help = "Example: assay run experiment.toml --quick --pass fair,wire\n\
                            Example: assay run lab/experiments/blog --rigorous")]
    Run(RunArgs),
    /// Say what a request of a service costs that is already running, or what a command says to
    /// Postgres and Redis
    #[command(after_help = "Example: assay observe --url http://127.0.0.1:8080/posts/1\n\
                            Example: assay observe --budget budget.toml -- pytest -q")]
    Observe(ObserveArgs),
    /// Build the results of a run again from its captures
    #[command(after_help = "Example: assay analyze runs/2026-12-01T10-02-11-blog")]
    Analyze(AnalyzeArgs),
    /// Show a run
    #[command(after_help = "Example: assay report runs/2026-12-01T10-02-11-blog --route detail")]
    Report(ReportArgs),
    /// Write a part of a run in the format of another program
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArgs),
    /// Hold a run against a budget; exit code 3 when a limit is broken
    #[command(
        after_help = "Example: assay check runs/2026-12-01T10-02-11-blog --budget budget.toml"
    )]
    Check(CheckArgs),
    /// Hold every instrument against a service of known costs, and print the certificate
    #[command(after_help = CALIBRATE_HELP)]
    Calibrate(CalibrateArgs),
    /// Say which tools and rights are there, and what each missing one costs
    #[command(after_help = "Example: assay doctor --json")]
    Doctor(DoctorArgs),
    /// Say what a capture of any tool holds, per request where it can be told
    #[command(after_help = "Example: assay inspect trace.pcap callgrind.out --json")]
    Inspect(InspectArgs),
    /// List the runs that are kept here
    #[command(after_help = "Example: assay runs --json")]
    Runs(RunsArgs),
}

/// What `run` takes.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The experiment file, or the folder that has an experiment.toml
    pub experiment: PathBuf,
    /// Take the short plan of the experiment's `[quick]`
    #[arg(long)]
    pub quick: bool,
    /// Start every subject anew for each round, ten rounds where the experiment says nothing, and
    /// `--aa`
    #[arg(long, conflicts_with = "quick")]
    pub rigorous: bool,
    /// Measure a second copy of the reference: a difference found there is the method's own error
    #[arg(long)]
    pub aa: bool,
    /// Rounds of the fair pass, an even number, instead of the experiment's
    #[arg(long, value_name = "N", value_parser = even)]
    pub rounds: Option<u32>,
    /// Length of laps under load in seconds, instead of the experiment's
    #[arg(long, value_name = "SECONDS", value_parser = lap_length)]
    pub lap: Option<Duration>,
    /// What `demo` takes as well
    #[command(flatten)]
    pub measure: MeasureArgs,
}

/// What `demo` and `run` take.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// Only these subjects, or SUBJECT.VARIANT
    #[arg(long, value_name = "SUBJECT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only these routes
    #[arg(long, value_name = "ROUTE", value_delimiter = ',')]
    pub route: Vec<String>,
    /// Only these passes
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    pub pass: Vec<String>,
    /// Keep the run in this folder, new or empty [default: runs/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Use this Postgres instead of a private one; nothing in it is changed
    #[arg(long, value_name = "URL")]
    pub postgres_url: Option<String>,
    /// Use this Redis instead of a private one
    #[arg(long, value_name = "URL")]
    pub redis_url: Option<String>,
}

/// What `observe` takes.
#[derive(Debug, Args)]
pub struct ObserveArgs {
    /// The service that listens on this TCP port [default: the port of --url]
    #[arg(long, value_name = "PORT", group = "service")]
    pub port: Option<u16>,
    /// The service that this process is the first of
    #[arg(long, value_name = "N", group = "service")]
    pub pid: Option<u32>,
    /// The service whose processes have this name
    #[arg(long, value_name = "NAME", group = "service")]
    pub name: Option<String>,
    /// What to request; several are measured one after another
    #[arg(long, value_name = "[NAME=]URL")]
    pub url: Vec<String>,
    /// Send nothing: watch what others send
    #[arg(long)]
    pub foreign_load: bool,
    /// Show what it costs right now, once a second, until q or Ctrl-C; in a pipe a line each second
    ///
    /// Without --url, of what others send. Nothing is kept.
    #[arg(long, conflicts_with_all = ["serial", "pass", "out", "json", "budget", "command"])]
    pub follow: bool,
    /// Connections that requests are sent over, each as soon as it has its answer
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// Seconds of load for each URL, all passes together
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub duration: f64,
    /// Send so many requests one at a time, and nothing else
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub serial: Option<u32>,
    /// HTTP method [default: GET, or POST with --data]
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Header field to send
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Body to send
    #[arg(long, value_name = "TEXT")]
    pub data: Option<String>,
    /// Only these passes: fair, serial, wire, syscalls, cpu
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    pub pass: Vec<String>,
    /// Keep the run in this folder, new or empty [default: runs/TIME-NAME; nothing of a COMMAND]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print JSON; of a COMMAND on standard error, and DIR/results.json has it with --out DIR
    #[arg(long)]
    pub json: bool,
    /// Hold what COMMAND said against these limits: exit code 3 when one is broken
    #[arg(long, value_name = "FILE", requires = "command")]
    pub budget: Option<PathBuf>,
    /// Run this, and count what all of its processes say to Postgres and Redis, over TCP and Unix
    /// sockets
    ///
    /// Its output is its own; the table goes to standard error. The exit code is the command's, or
    /// 3 when it succeeded and broke the budget. Killing assay leaves the command running.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = [
        "service", "url", "foreign_load", "serial", "method", "header", "data", "pass",
    ])]
    pub command: Vec<OsString>,
}

/// What `analyze` takes.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// The run directory
    pub run: PathBuf,
}

/// What `report` takes.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run directory
    pub run: PathBuf,
    /// Only these routes
    #[arg(long, value_name = "ROUTE", value_delimiter = ',')]
    pub route: Vec<String>,
    /// How: a table for the terminal, Markdown, a page for a browser, or JSON
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// What `export` takes.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The run directory
    pub run: PathBuf,
    /// For which program
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Only this variant of a subject
    #[arg(long, value_name = "SUBJECT.VARIANT")]
    pub arm: Option<String>,
    /// Only this route
    #[arg(long, value_name = "ROUTE")]
    pub route: Option<String>,
    /// Only the stacks of this process: subject or postgres
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// Write to this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// A format of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Folded stacks, nanoseconds of CPU per request: for flame graphs
    Folded,
    /// speedscope, nanoseconds of CPU per request
    Speedscope,
    /// pprof, nanoseconds of CPU per request: for `go tool pprof`
    Pprof,
    /// Single requests as a trace: for Perfetto and chrome://tracing
    ChromeTrace,
    /// Bencher's metric format: all totals with their intervals
    Bencher,
    /// What github-action-benchmark reads as customSmallerIsBetter
    GithubActionBenchmark,
}

/// A dress of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For the terminal
    Table,
    /// Markdown
    Md,
    /// One self-contained page for a browser
    Html,
    /// The records of results.json
    Json,
}

/// What `check` takes.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The run directory
    pub run: PathBuf,
    /// The file of limits, such as `limits = ["detail: postgres.flights <= 4"]`
    #[arg(long, value_name = "FILE")]
    pub budget: Option<PathBuf>,
    /// One more limit, such as 'throughput >= -5 % of baseline'; may be given again
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// The figures that limits may name as the baseline [default: what the budget names]
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Keep the figures that the limits are about in this file (all without a limit), judge none
    #[arg(long, value_name = "FILE", conflicts_with_all = ["baseline", "strict", "json"])]
    pub save_baseline: Option<PathBuf>,
    /// Count a limit of which the noise leaves nothing to tell as broken
    #[arg(long)]
    pub strict: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What follows the options of `calibrate`.
const EXPORT_HELP: &str = "\
Example: assay export runs/2026-12-01T10-02-11-blog --format pprof --out page.pprof
Example: assay export runs/2026-12-01T10-02-11-blog --format chrome-trace --route detail > t.json

Stacks below four parts in a thousand count in their callers. callgrind and DHAT files of a run are
left as valgrind wrote them: open them as they are.";

const CALIBRATE_HELP: &str = "Example: assay calibrate --markdown > CERTIFICATE.md

Counts must be exact, CPU time within 3 %, context switches within 2 %, shares of CPU samples inside
their interval in 17 of 20 recordings. A probe may cost the service: wire 6 %, syscalls 3 %, usage
1 %, cpu 10 %, the first three together 8 %. Exit code 3 when one lies outside, 1 when one could not
be measured. Later runs on this machine carry the result in their reports.";

/// What `calibrate` takes.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Fewer loads and shorter laps: about two minutes instead of ten
    #[arg(long)]
    pub quick: bool,
    /// Only these stages (one-connection, eight-connections, three-processes, fixed-rate, shares,
    /// costs); the certificate is then not kept as this machine's
    #[arg(long, value_name = "STAGE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Keep the captures in this folder, new or empty [default: runs/TIME-calibration]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown
    #[arg(long)]
    pub markdown: bool,
}

/// What `doctor` takes.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Exit with 1 also when a piece is missing that only some figures need
    #[arg(long)]
    pub strict: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `inspect` takes.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// pcap, pcapng, strace log or table, callgrind.out, DHAT JSON, pprof, perf script, folded
    /// stacks, GC trace, output of oha, k6, wrk, hey, ab, vegeta; gzipped or not; - is standard
    /// input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print the stacks of perf script folded, one a line, for flame graphs
    #[arg(long, conflicts_with = "json")]
    pub folded: bool,
    /// With --folded: the event to take where the file has several, such as cycles
    #[arg(long, value_name = "NAME", requires = "folded")]
    pub event: Option<String>,
    /// How many functions, statements, calls to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// What is spoken on which port, such as pg=6543,http=8080,redis=6380 [default: by content]
    #[arg(long, value_name = "WHAT=PORT", value_delimiter = ',')]
    pub port: Vec<String>,
    /// How many requests the files cover [default: HTTP responses in the capture]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Only from here on: seconds by the file's own clock, which for packets, strace -ttt and our
    /// captures is the Unix epoch's; a GC trace begins at 0
    #[arg(long, value_name = "SECONDS")]
    pub since: Option<f64>,
    /// Only until here
    #[arg(long, value_name = "SECONDS")]
    pub until: Option<f64>,
}

/// What `runs` takes.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// The folder that holds runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl RunArgs {
    /// What of the experiment's plan is wanted.
    #[must_use]
    pub fn choice(&self) -> Choice {
        Choice {
            rigorous: self.rigorous,
            rounds: self.rounds,
            lap: self.lap,
            ..self.measure.choice(self.quick)
        }
    }
}

/// A number of rounds: order is balanced in pairs of them.
fn even(typed: &str) -> Result<u32, String> {
    match typed.parse() {
        Ok(rounds) if rounds > 0 && rounds % 2 == 0 => Ok(rounds),
        _ => Err("order is balanced in pairs of rounds: an even number above 0".to_owned()),
    }
}

fn lap_length(typed: &str) -> Result<Duration, String> {
    match typed.parse() {
        Ok(seconds) if (0.05..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a number of seconds from 0.05 to a day".to_owned()),
    }
}

impl MeasureArgs {
    /// What of the experiment's plan is wanted.
    #[must_use]
    pub fn choice(&self, quick: bool) -> Choice {
        Choice {
            only: self.only.clone(),
            routes: self.route.clone(),
            passes: self.pass.clone(),
            quick,
            ..Choice::default()
        }
    }

    /// The services that were given.
    #[must_use]
    pub fn given(&self) -> GivenServices {
        GivenServices { postgres: self.postgres_url.clone(), redis: self.redis_url.clone() }
    }
}

/// An error of the command line as one line: what is wrong, a tip, and where help is.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let mut line = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    for more in lines {
        if more.starts_with("Usage:") || more.starts_with("For more information") {
            break;
        }
        line.push_str(if line.ends_with(':') { " " } else { "; " });
        line.push_str(more);
    }
    line.push_str(" (--help says what there is)");
    line
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_shows_an_example_in_its_help() {
        let mut command = Cli::command();
        command.build();
        for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
            let example = part.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                example.starts_with(&format!("Example: assay {}", part.get_name())),
                "{} has no example",
                part.get_name()
            );
        }
    }

    #[test]
    fn wrong_usage_is_one_line_with_a_tip() {
        let wrong = |words: &[&str]| one_line(&Cli::try_parse_from(words).unwrap_err());
        let line = wrong(&["assay", "demo", "--rout", "x"]);
        assert_eq!(
            line,
            "unexpected argument '--rout' found; tip: a similar argument exists: '--route' \
             (--help says what there is)"
        );
        let line = wrong(&["assay", "run"]);
        assert!(line.starts_with("the following required arguments were not provided: <EXP"));
        assert_eq!(line.lines().count(), 1);
    }
}
