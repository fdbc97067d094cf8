//! What a file is, by its first bytes: people name files as they like.

use crate::gctrace;
use crate::json_keys::Keys;
use crate::load_tools::{self, Form};
use crate::{perf_script, pprof, strace};

/// How many bytes [`kind`] should be given, where the file has as many.
pub const HEAD: usize = 256 * 1024;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No byte at all.
    Empty,
    /// gzip: unpack it, and ask again.
    Gzip,
    /// `pcap`, in any byte order and resolution.
    Pcap,
    /// `pcapng`.
    PcapNg,
    /// strace's log.
    Strace,
    /// The table of `strace -c`.
    StraceTable,
    /// A profile in callgrind's format.
    Callgrind,
    /// A heap profile of DHAT.
    Dhat,
    /// A pprof profile in protobuf.
    Pprof,
    /// A pprof profile of a form older than protobuf; which.
    PprofOld(&'static str),
    /// The text of `perf script`.
    PerfScript,
    /// `perf.data`, which only perf can turn into text.
    PerfData,
    /// Folded stacks.
    Folded,
    /// What a load generator printed.
    LoadTool(Form),
    /// Output of a Go program with `GODEBUG=gctrace=1`.
    GcTrace,
    /// Our samples of what processes use.
    Usage,
    /// Our counts of system calls.
    SyscallCounts,
    /// Our counts of allocations.
    AllocationCounts,
    /// Our log of the requests of a serial lap.
    RequestLog,
    /// Our log of laps.
    Laps,
    /// Our manifest of a capture, or record of a run.
    Manifest,
    /// None of these.
    Unknown,
}

impl Kind {
    /// What to call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "an empty file",
            Self::Gzip => "gzip",
            Self::Pcap => "pcap",
            Self::PcapNg => "pcapng",
            Self::Strace => "strace log",
            Self::StraceTable => "table of strace -c",
            Self::Callgrind => "callgrind profile",
            Self::Dhat => "DHAT heap profile",
            Self::Pprof => "pprof profile",
            Self::PprofOld(_) => "old pprof profile",
            Self::PerfScript => "text of perf script",
            Self::PerfData => "perf.data",
            Self::Folded => "folded stacks",
            Self::LoadTool(_) => "load generator's output",
            Self::GcTrace => "Go GC trace",
            Self::Usage => "assay's usage samples",
            Self::SyscallCounts => "assay's system call counts",
            Self::AllocationCounts => "assay's allocation counts",
            Self::RequestLog => "assay's request log",
            Self::Laps => "assay's laps",
            Self::Manifest => "assay's manifest",
            Self::Unknown => "nothing that is known here",
        }
    }
}

/// Recognises a file by its first bytes; [`HEAD`] of them are enough.
#[must_use]
pub fn kind(head: &[u8]) -> Kind {
    if head.is_empty() {
        return Kind::Empty;
    }
    if let Some(kind) = magic(head) {
        return kind;
    }
    if let Some(form) = pprof::old_form(head) {
        return Kind::PprofOld(form);
    }
    if head.contains(&0) || std::str::from_utf8(head).is_err_and(|error| error.valid_up_to() < 8) {
        return if pprof::looks_like(head) { Kind::Pprof } else { Kind::Unknown };
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let whole = String::from_utf8_lossy(text);
    let found = if whole.trim_start().starts_with('{') { json(&whole) } else { None };
    if let Some(kind) = found.or_else(|| prose(&whole)) {
        return kind;
    }
    // A profile without any NUL among its first bytes is rare, but possible.
    if pprof::looks_like(head) { Kind::Pprof } else { Kind::Unknown }
}

fn magic(head: &[u8]) -> Option<Kind> {
    const PCAP: [u32; 3] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34];
    if head.starts_with(&[0x1f, 0x8b]) {
        return Some(Kind::Gzip);
    }
    if head.starts_with(b"PERFILE2") || head.starts_with(b"2ELIFREP") {
        return Some(Kind::PerfData);
    }
    if head.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
        return Some(Kind::PcapNg);
    }
    let first: [u8; 4] = head.get(..4)?.try_into().ok()?;
    let (big, little) = (u32::from_be_bytes(first), u32::from_le_bytes(first));
    (PCAP.contains(&big) || PCAP.contains(&little)).then_some(Kind::Pcap)
}

fn json(text: &str) -> Option<Kind> {
    let keys = Keys::of(text);
    if keys.has("dhatFileVersion") {
        return Some(Kind::Dhat);
    }
    if let Some(form) = load_tools::form(text.as_bytes()) {
        return Some(Kind::LoadTool(form));
    }
    let has = |key: &str| keys.has(key);
    let sample = has("moment");
    if sample && has("groups") {
        Some(Kind::Usage)
    } else if sample && has("roles") {
        Some(Kind::SyscallCounts)
    } else if sample && has("blocks") {
        Some(Kind::AllocationCounts)
    } else if has("start") && has("answered") {
        Some(Kind::RequestLog)
    } else if has("span") && has("requests") {
        Some(Kind::Laps)
    } else if has("version") && (has("probe") || has("experiment")) {
        Some(Kind::Manifest)
    } else {
        None
    }
}

fn prose(text: &str) -> Option<Kind> {
    let lines = || text.lines().take(2_000);
    let starts = |word: &str| lines().any(|line| line.starts_with(word));
    if text.starts_with("# callgrind format")
        || starts("creator: callgrind")
        || (starts("events:") && ["fn=", "fl=", "fi=", "ob="].into_iter().any(starts))
    {
        return Some(Kind::Callgrind);
    }
    if let Some(form) = load_tools::form(text.as_bytes()) {
        return Some(Kind::LoadTool(form));
    }
    if perf_script(text) {
        return Some(Kind::PerfScript);
    }
    // Most lines decide: other output can stand between those of a trace.
    // The last line can be longer than all that was looked at.
    let calls =
        lines().filter(|line| strace::is_line(line.as_bytes(), is_torn(text, line))).count();
    let traced = lines().filter(|line| gctrace::is_trace(line)).count();
    let folded = lines().filter(|line| folded_line(line)).count();
    let stacked = lines().filter(|line| folded_line(line) && line.contains(';')).count();
    // With `-k` a trace has a stack below each call.
    let filled = lines().filter(|line| !line.trim().is_empty() && !line.starts_with(" > ")).count();
    // A log may end with the table, if there is more than the table.
    let table = lines().any(|line| strace::is_table(line.as_bytes()));
    if traced > 0 && traced >= calls {
        return Some(Kind::GcTrace);
    }
    if calls > 0 && (table || calls * 4 >= filled && calls >= folded) {
        return Some(Kind::Strace);
    }
    if table {
        return Some(Kind::StraceTable);
    }
    // Any text may have numbers at the ends of its lines; semicolons make them stacks.
    (folded * 2 >= filled && stacked > 0 && stacked * 2 >= folded).then_some(Kind::Folded)
}

/// Samples with a stack below them, or lines that each are a whole sample.
fn perf_script(text: &str) -> bool {
    let (mut head, mut heads, mut others) = (false, 0, 0);
    for line in text.lines().take(2_000) {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let frame = line.starts_with([' ', '\t'])
            && first.bytes().all(|byte| byte.is_ascii_hexdigit())
            && words.next().is_some();
        if head && frame {
            return true;
        }
        if first.is_empty() || line.starts_with('#') {
            continue;
        }
        let stamped = perf_script::is_stamped(line);
        // Without time stamps a sample's head ends with its event and a colon.
        head = stamped || line.trim_end().ends_with(':');
        heads += usize::from(stamped);
        others += usize::from(!stamped);
    }
    heads > 0 && heads >= others
}

/// Whether a line is the last one, and so long that its end is not among the bytes.
fn is_torn(text: &str, line: &str) -> bool {
    line.len() > LONG && text.ends_with(line)
}

/// Lines from this length on are taken for what they begin as, if their end is out of sight.
const LONG: usize = 32 * 1024;

/// `main;work;read 17`, `main 0.5`
fn folded_line(line: &str) -> bool {
    let Some((stack, weight)) = line.trim_end().rsplit_once([' ', '\t']) else {
        return false;
    };
    let number = weight.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    !stack.is_empty()
        && !stack.contains('\t')
        && number
        && weight.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{cuts, flips};

    #[test]
    fn each_format_is_known_by_its_first_lines() {
        let cases: [(&[u8], Kind); 33] = [
            (b"", Kind::Empty),
            (b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00", Kind::Pcap),
            (b"\xa1\xb2\x3c\x4d\x00\x02\x00\x04", Kind::Pcap),
            (b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00", Kind::PcapNg),
            (b"\x1f\x8b\x08\x00", Kind::Gzip),
            (b"PERFILE2....", Kind::PerfData),
            (b"\x0a\x04\x08\x01\x10\x02\x12\x00", Kind::Pprof),
            (b"heap profile: 1: 2 [3: 4] @ heapz\n", Kind::PprofOld("a heap profile in text")),
            (b"# callgrind format\nversion: 1\n", Kind::Callgrind),
            (b"version: 1\nevents: Ticks\n\nfi=(0) ~\nfn=(0) f\n", Kind::Callgrind),
            (b"{\"dhatFileVersion\":2\n,\"mode\":\"heap\"", Kind::Dhat),
            (
                b"Running 1s test @ http://x\n  1 threads and 2 connections\n",
                Kind::LoadTool(Form::Wrk),
            ),
            (b"% time     seconds  usecs/call     calls    errors syscall\n", Kind::StraceTable),
            (b"12  17.5 read(3, \"x\", 1) = 1 <0.1>\n", Kind::Strace),
            (b"[pid 7] <... read resumed>) = 0\n", Kind::Strace),
            (b"a 7 17.5: 1 cpu-clock: \n\t  55d0c33a1b02 f+0x5 (/x)\n", Kind::PerfScript),
            (b"a 7 17.5: 1 cpu-clock:  55d0c33a1b02 f+0x5 (/x)\n", Kind::PerfScript),
            (b"a 7 cpu-clock:\n\n\t  55d0c33a1b02 f+0x5 (/x)\n", Kind::PerfScript),
            (b"main;work 17\nmain 2\n", Kind::Folded),
            (b"main;work 0.5\n", Kind::Folded),
            (b"x\ngc 1 @0.1s 2%: 0.1+0.2+0.3 ms clock\n", Kind::GcTrace),
            (b"hello world\n", Kind::Unknown),
            (b"x\ty\ta;b 2\nx\ty\tc;d 2\n", Kind::Unknown),
            (
                b"{\"$schema\":\"x\",\"properties\":{\"summary\":{\"successRate\":1}}}",
                Kind::Unknown,
            ),
            (b"{\"readme\":\"a \\\"dhatFileVersion\\\" has\"}", Kind::Unknown),
            (b"Blocks:\nCB: 1\nSHB: 2\n", Kind::Unknown),
            (b"a 7 17.5: 1 cpu-clock:\n\t  643 f (/x)\n", Kind::PerfScript),
            (b"7 17.5 brk(NULL) = 0\n > a\n > b\n > c\n > d\n > e\n", Kind::Strace),
            (b"syscall              calls    errors     seconds  longest\n", Kind::StraceTable),
            (b"04:40:46 [  59] [00007f7d98221ad7] brk(NULL) = 0\n", Kind::Strace),
            (b"1796100049.217937820 (+     0.000455204) brk(NULL) = 0\n", Kind::Strace),
            (b"24908<sh> brk(NULL)        = 0x55e037ef4000\n", Kind::Strace),
            (b"brk(0) = 0\n% time seconds  usecs/call calls errors syscall\n", Kind::Strace),
        ];
        for (head, expected) in cases {
            assert_eq!(kind(head), expected, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn a_first_line_longer_than_all_that_is_looked_at_is_known_by_its_beginning() {
        let line = format!("7 1700000000.5 write(1, \"{}", "x".repeat(HEAD));
        assert_eq!(kind(&line.as_bytes()[..HEAD]), Kind::Strace);
    }

    #[test]
    fn no_cut_or_flipped_bit_breaks_anything() {
        let text = b"12  17.5 read(3, \"x\", 1) = 1 <0.1>\n# callgrind format\n{\"a\":1}\nx;y 1\n";
        cuts(text, |prefix| assert!(!kind(prefix).name().is_empty()));
        flips(text, 2_000, |broken| assert!(!kind(broken).name().is_empty()));
    }
}
