//! System calls of a whole trace, or of a span of it, from strace's text.

use std::collections::{BTreeMap, HashMap};

use assay_captures::parsed::{Problem, Sink};
use assay_captures::strace::{Call, NameTotals, Outcome, Record, Stamp, Totals};
use assay_captures::units::Span;
use foldhash::fast::RandomState;

use super::foreign::View;
use super::programs::Programs;
use crate::cost::{Amount, Cost};
use crate::metric::Metric;

/// Names of calls with errors, and errors of each, that are told apart.
const ERRORS_MAX: usize = 1024;

/// Adds up what a trace holds; a call belongs to the span in which it was entered.
#[derive(Clone, Debug, Default)]
pub struct TraceFold {
    /// Counts, times, signals, tables, problems.
    pub totals: Totals,
    /// Name → error → how often.
    errors: HashMap<String, HashMap<String, u64, RandomState>, RandomState>,
    /// Name → bytes that it returned.
    bytes: HashMap<String, u64, RandomState>,
    programs: Programs,
    span: Option<Span>,
    /// Calls outside the span.
    pub outside: u64,
    undated: u64,
}

impl TraceFold {
    /// A fold over the span, or over everything.
    #[must_use]
    pub fn new(span: Option<Span>) -> Self {
        Self { span, ..Self::default() }
    }

    /// Calls begun: the total and by name, the most frequent first; and failures by name and
    /// error. A file without any call but with a table of `-c` has the table's counts.
    #[must_use]
    pub fn costs(&self, view: &View) -> Vec<Cost> {
        if self.span.is_some() && self.undated > 0 {
            let why = "the trace has no dates, so no span of it can be told: strace -ttt has them";
            return vec![view.cost(Metric::Syscalls, Amount::NotMeasured(why.into()))];
        }
        let names = self.totals.names();
        if names.is_empty() && !self.totals.table.is_empty() {
            return self.table(view);
        }
        if names.is_empty() {
            let why = "the trace holds no system call";
            return vec![view.cost(Metric::Syscalls, Amount::NotMeasured(why.into()))];
        }
        let begun: Vec<(&str, u64)> =
            names.iter().map(|(name, totals)| (*name, begun(totals))).collect();
        let mut costs = counts(view, Metric::Syscalls, &begun);
        let failed: Vec<(&str, u64)> =
            names.iter().map(|(name, totals)| (*name, totals.errors)).collect();
        costs.push(view.count(Metric::SyscallErrors, sum(&failed)));
        let errors: BTreeMap<(&str, &str), u64> = (self.errors.iter())
            .flat_map(|(name, errors)| {
                errors.iter().map(|(errno, &count)| ((name.as_str(), errno.as_str()), count))
            })
            .collect();
        let mut errors: Vec<_> = errors.into_iter().collect();
        errors.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for ((name, errno), count) in errors.into_iter().take(view.top) {
            let cost = view.count(Metric::SyscallErrors, count as f64);
            costs.push(cost.with("name", name).with("errno", errno));
        }
        costs.extend(self.more(view, &names));
        costs
    }

    /// Times, bytes, calls without an end, and which program called.
    fn more(&self, view: &View, names: &BTreeMap<&str, NameTotals>) -> Vec<Cost> {
        let mut costs = Vec::new();
        let all = self.totals.all();
        if all.timed > 0 {
            let time = |of: &NameTotals| of.time.seconds();
            let mut by_name: Vec<_> = names.iter().filter(|(_, of)| of.timed > 0).collect();
            by_name.sort_by_key(|(_, of)| std::cmp::Reverse(of.time.0));
            costs.push(view.count(Metric::SyscallTime, time(&all)));
            costs.extend(
                by_name.into_iter().take(view.top).map(|(name, of)| {
                    view.count(Metric::SyscallTime, time(of)).with("name", *name)
                }),
            );
        }
        let mut bytes: Vec<_> = self.bytes.iter().filter(|&(_, &sum)| sum > 0).collect();
        bytes.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
        costs.extend(
            bytes.into_iter().take(view.top).map(|(name, &sum)| {
                view.count(Metric::SyscallBytes, sum as f64).with("name", name)
            }),
        );
        for (why, count) in [
            ("never returns", (|of| of.never) as fn(&NameTotals) -> u64),
            ("detached", |of| of.detached),
            ("unfinished", |of| of.unfinished),
        ] {
            let of_kind = names.iter().filter(|(_, of)| count(of) > 0);
            costs.extend(of_kind.map(|(name, of)| {
                let cost = view.count(Metric::SyscallUnreturned, count(of) as f64);
                cost.with("name", *name).with("why", why)
            }));
        }
        costs.extend(self.programs.costs(view));
        costs
    }

    fn table(&self, view: &View) -> Vec<Cost> {
        let rows = &self.totals.table;
        let of = |count: fn(&NameTotals) -> u64| -> Vec<(&str, u64)> {
            rows.iter().map(|(name, totals)| (name.as_str(), count(totals))).collect()
        };
        let mut costs = counts(view, Metric::Syscalls, &of(|totals| totals.calls));
        costs.extend(counts(view, Metric::SyscallErrors, &of(|totals| totals.errors)));
        let mut rows: Vec<_> = rows.iter().filter(|(_, totals)| totals.time.0 > 0).collect();
        rows.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.time.0));
        costs.extend(rows.into_iter().take(view.top).map(|(name, totals)| {
            let cost = view.count(Metric::SyscallTime, totals.time.seconds());
            cost.with("name", name).doubted("CPU time of the kernel, unless -w was given")
        }));
        costs
    }

    /// How many calls there are, in which time.
    #[must_use]
    pub fn about(&self) -> Option<String> {
        let all = self.totals.all();
        (begun(&all) > 0).then(|| self.period(&all))
    }

    /// What limits the counts, one sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let all = self.totals.all();
        let mut notes = Vec::new();
        if self.outside > 0 {
            notes.push(format!("{} calls were entered outside the span", self.outside));
        }
        for (count, what) in [
            (all.never, "never returned (exits, threads that were killed)"),
            (all.detached, "were under way when strace let go"),
            (all.unfinished, "had not returned when the trace ended"),
        ] {
            if count > 0 {
                notes.push(format!("{count} calls {what}"));
            }
        }
        if !self.totals.table.is_empty() {
            notes.push(
                "the times of a table of -c are CPU time of the kernel, not time waited, unless \
                 -w was given; the table does not say"
                    .into(),
            );
            let tabled: u64 = self.totals.table.values().map(|totals| totals.calls).sum();
            if all.calls > 0 && tabled != all.calls && self.span.is_none() {
                let calls = all.calls;
                notes.push(format!("the table counts {tabled} calls, the trace {calls}"));
            }
        }
        notes
    }

    fn period(&self, all: &NameTotals) -> String {
        let seconds = |nanos: Option<_>| {
            nanos.map_or("an unknown time".to_owned(), |span: assay_captures::units::Nanos| {
                format!("{:.6} s", span.seconds())
            })
        };
        let date = match self.totals.stamps {
            Some((Stamp::Unix(_), _)) | None => "",
            Some(_) => ", of an unknown date",
        };
        let mut text = format!("{} calls in {}{date}", begun(all), seconds(self.totals.span()));
        if all.timed > 0 {
            text.push_str(&format!(
                "; {:.6} s were spent in calls, waits included",
                all.time.seconds()
            ));
        }
        text
    }

    fn returned(&mut self, call: &Call<'_>) {
        let Outcome::Returned { value, errno: None, .. } = call.outcome else { return };
        let Ok(value) = u64::try_from(value) else { return };
        if !moves_bytes(call.name) {
            return;
        }
        match self.bytes.get_mut(call.name) {
            Some(sum) => *sum = sum.saturating_add(value),
            None => {
                self.bytes.insert(call.name.to_owned(), value);
            }
        }
    }

    fn error(&mut self, call: &Call<'_>) {
        let Some(errno) = call.outcome.errno() else { return };
        // Allocates for the first of a kind only.
        let Some(errors) = self.errors.get_mut(call.name) else {
            // A broken file can have any number of names.
            if self.errors.len() >= ERRORS_MAX {
                return;
            }
            let first = HashMap::from_iter([(errno.to_owned(), 1)]);
            self.errors.insert(call.name.to_owned(), first);
            return;
        };
        if let Some(count) = errors.get_mut(errno) {
            *count += 1;
        } else if errors.len() < ERRORS_MAX {
            errors.insert(errno.to_owned(), 1);
        }
    }
}

impl Sink<Record<'_>> for TraceFold {
    fn record(&mut self, record: Record<'_>) {
        if let Record::Call(call) = &record {
            if let Some(span) = self.span {
                let Some(moment) = call.stamp.and_then(|stamp| stamp.moment()) else {
                    self.undated += 1;
                    return;
                };
                if !span.contains(moment) {
                    self.outside += 1;
                    return;
                }
            }
            self.error(call);
            self.returned(call);
            self.programs.call(call);
        }
        self.totals.record(record);
    }

    fn problem(&mut self, problem: Problem) {
        self.totals.problem(problem);
    }
}

/// Calls whose value is a number of bytes.
fn moves_bytes(name: &str) -> bool {
    matches!(
        name,
        "read"
            | "write"
            | "pread64"
            | "pwrite64"
            | "readv"
            | "writev"
            | "preadv"
            | "pwritev"
            | "preadv2"
            | "pwritev2"
            | "recv"
            | "send"
            | "recvfrom"
            | "sendto"
            | "recvmsg"
            | "sendmsg"
            | "sendfile"
            | "sendfile64"
            | "splice"
            | "copy_file_range"
    )
}

fn begun(totals: &NameTotals) -> u64 {
    totals.calls + totals.never + totals.detached + totals.unfinished
}

fn sum(counts: &[(&str, u64)]) -> f64 {
    counts.iter().map(|&(_, count)| count).sum::<u64>() as f64
}

/// The total, and the names with the most.
fn counts(view: &View, metric: Metric, names: &[(&str, u64)]) -> Vec<Cost> {
    let mut costs = vec![view.count(metric, sum(names))];
    let mut names: Vec<_> = names.iter().filter(|&&(_, count)| count > 0).collect();
    names.sort_by_key(|&&(_, count)| std::cmp::Reverse(count));
    costs.extend(
        names
            .into_iter()
            .take(view.top)
            .map(|&(name, count)| view.count(metric, count as f64).with("name", name)),
    );
    costs
}

#[cfg(test)]
mod tests {
    use assay_captures::strace::Decoder;
    use assay_captures::units::Moment;

    use super::*;
    use crate::cost::Origin;

    fn check(text: &str, span: Option<(u64, u64)>, expected: &str) {
        let span = span.map(|(start, end)| Span {
            start: Moment(start * 1_000_000_000),
            end: Moment(end * 1_000_000_000),
        });
        let mut fold = TraceFold::new(span);
        let mut decoder = Decoder::new();
        decoder.feed(text.as_bytes(), &mut fold);
        decoder.finish(&mut fold);
        let origin = Origin {
            subject: String::new(),
            variant: String::new(),
            route: String::new(),
            pass: "inspect".into(),
            capture: None,
        };
        let costs = fold.costs(&View { origin, requests: None, top: 10 });
        let rows = costs.iter().map(|cost| {
            let labels: Vec<&str> = cost.labels.values().map(String::as_str).collect();
            let amount = match &cost.amount {
                Amount::NotMeasured(why) => why.clone(),
                amount => amount.figure().map_or(String::new(), |figure| figure.value.to_string()),
            };
            format!("{} {} {amount}\n", cost.metric.name(), labels.join(" "))
        });
        assert_eq!(rows.collect::<String>(), expected);
    }

    const TRACE: &str = "7 1700000010.5 read(3, \"\", 9) = -1 EAGAIN (Again) <0.1>\n\
                         7 1700000011.5 read(3, \"\", 9) = 0 <0.1>\n\
                         7 1700000012.5 exit_group(0) = ?\n";

    #[test]
    fn calls_count_when_they_begin_and_failures_have_names() {
        check(
            TRACE,
            None,
            "syscalls  3\nsyscalls read 2\nsyscalls exit_group 1\nsyscalls.errors  1\n\
             syscalls.errors EAGAIN read 1\nsyscalls.time  0.2\nsyscalls.time read 0.2\n\
             syscalls.unreturned exit_group never returns 1\n",
        );
    }

    #[test]
    fn a_span_takes_what_was_entered_in_it() {
        check(
            TRACE,
            Some((1_700_000_011, 1_700_000_012)),
            "syscalls  1\nsyscalls read 1\nsyscalls.errors  0\nsyscalls.time  0.1\n\
             syscalls.time read 0.1\n",
        );
        check(
            "7 12:00:00 getpid() = 7\n",
            Some((1_700_000_011, 1_700_000_012)),
            "syscalls  the trace has no dates, so no span of it can be told: strace -ttt has \
             them\n",
        );
    }

    #[test]
    fn a_table_counts_where_no_call_is_printed() {
        check(
            "% time     seconds  usecs/call     calls    errors syscall\n\
             ------ ----------- ----------- --------- --------- ----------------\n \
             60.00    0.000060          20         3         2 access\n \
             40.00    0.000040          40         1           execve\n\
             ------ ----------- ----------- --------- --------- ----------------\n\
             100.00    0.000100          25         4         2 total\n",
            None,
            "syscalls  4\nsyscalls access 3\nsyscalls execve 1\nsyscalls.errors  2\n\
             syscalls.errors access 2\nsyscalls.time access 0.00006\n\
             syscalls.time execve 0.00004\n",
        );
    }

    #[test]
    fn bytes_are_counted_where_a_call_returns_them() {
        check(
            "7 write(1, \"ab\", 2) = 2\n7 write(1, \"\", 1) = -1 EPIPE (Broken pipe)\n",
            None,
            "syscalls  2\nsyscalls write 2\nsyscalls.errors  1\nsyscalls.errors EPIPE write 1\n\
             syscalls.bytes write 2\n",
        );
    }

    #[test]
    fn each_program_has_its_own_calls_and_children_have_their_parents() {
        check(
            "7 execve(\"./a\", [\"a\"], 0x1) = 0\n7 read(3, \"\", 1) = 0\n7 fork() = 8\n\
             8 read(3, \"\", 1) = 0\n8 execve(\"./b\", [\"b\"], 0x1) = 0\n8 getpid() = 8\n\
             7 read(3, \"\", 1) = 0\n",
            None,
            "syscalls  7\nsyscalls read 3\nsyscalls execve 2\nsyscalls fork 1\n\
             syscalls getpid 1\nsyscalls.errors  0\nsyscalls ./a 5\n\
             syscalls read ./a 3\nsyscalls execve ./a 1\nsyscalls fork ./a 1\n\
             syscalls ./b 1\nsyscalls getpid ./b 1\n\
             syscalls (before the first execve) 1\n\
             syscalls execve (before the first execve) 1\n",
        );
    }
}
