//! Lines of every form that strace prints in, records and problems out.

use std::fmt::Write;

use super::*;
use crate::parsed::{Problem, Sink};

/// Prints records, one a line.
#[derive(Default)]
struct Printed(String);

impl Sink<Record<'_>> for Printed {
    fn record(&mut self, record: Record<'_>) {
        let line = match record {
            Record::Call(call) => {
                let tid = call.tid.map_or(String::new(), |tid| format!("{} ", tid.0));
                let stamp = call.stamp.map_or(String::new(), |stamp| match stamp {
                    Stamp::Unix(moment) => format!("@{} ", moment.0),
                    Stamp::SinceMidnight(time) => format!("midnight+{} ", time.0),
                    Stamp::SinceFirst(time) => format!("first+{} ", time.0),
                });
                let end = match call.outcome {
                    Outcome::Returned { value, errno, target, .. } => {
                        let target = target.map_or(String::new(), |target| {
                            format!("<{}>", String::from_utf8_lossy(target))
                        });
                        format!(
                            "{value}{target}{}",
                            errno.map_or(String::new(), |e| format!(" {e}"))
                        )
                    }
                    Outcome::Restarted { errno } => format!("restarted {errno}"),
                    other => format!("{other:?}").to_lowercase(),
                };
                let time = call.duration.map_or(String::new(), |time| format!(" {time}"));
                let head = if call.headless { " headless" } else { "" };
                let args = String::from_utf8_lossy(call.args);
                format!("{tid}{stamp}{}({args}) {end}{time}{head}", call.name)
            }
            Record::Signal(signal) if signal.stopped => format!("stopped {}", signal.name),
            Record::Signal(signal) => format!("signal {}", signal.name),
            Record::Exit(exit) => {
                format!("exit {:?} {:?} {}", exit.status, exit.signal, exit.core_dumped)
            }
            Record::Superseded(superseded) => format!("superseded by {}", superseded.by.0),
            Record::Frame(frame) => format!("frame {}", String::from_utf8_lossy(frame)),
            Record::Notice(notice) => format!("notice {}", String::from_utf8_lossy(notice)),
            Record::Row(row) => {
                format!("row {} {} {} {:?}", row.name, row.calls, row.errors, row.time)
            }
        };
        writeln!(self.0, "{line}").unwrap();
    }

    fn problem(&mut self, problem: Problem) {
        writeln!(self.0, "{problem}").unwrap();
    }
}

fn print(chunks: &[&[u8]]) -> String {
    let mut printed = Printed::default();
    let mut decoder = Decoder::new();
    for chunk in chunks {
        decoder.feed(chunk, &mut printed);
    }
    decoder.finish(&mut printed);
    printed.0
}

#[track_caller]
fn check(trace: &str, expected: &str) {
    let printed = print(&[trace.as_bytes()]);
    let lines = |text: &str| text.trim().lines().map(|line| line.trim().to_owned()).collect();
    let (printed, expected): (Vec<String>, Vec<String>) = (lines(&printed), lines(expected));
    assert_eq!(printed, expected);
}

#[test]
fn a_call_that_was_printed_in_two_parts_is_one_and_has_the_first_stamp() {
    check(
        "501 1700000000.000100 read(7,  <unfinished ...>\n\
         502 1700000000.000200 write(1, \"x\", 1) = 1 <0.000010>\n\
         501 1700000000.050100 <... read resumed>\"ab\", 4096) = 2 <0.050000>\n",
        "502 @1700000000000200000 write(1, \"x\", 1) 1 10000ns
         501 @1700000000000100000 read(7, \"ab\", 4096) 2 50000000ns",
    );
}

#[test]
fn arguments_that_look_like_results_are_arguments() {
    check(
        "write(1, \"a) = 3 <0.1>\", 12)     = 12 <0.000001>\n\
         openat(AT_FDCWD</srv/odd>, \"a)> = 3 <b\", O_RDONLY) = 3</srv/odd/a)\\76 = 3 \\74b>\n\
         write(3</srv/a,b)> = 3 (x).txt>, \"hi\", 2) = 2\n\
         write(1, \"a\\\") = 1\\\\\", 7) = 7\n\
         write(1, \") = 3 <unfinished ...>\", 22) = 22\n",
        "write(1, \"a) = 3 <0.1>\", 12) 12 1000ns
         openat(AT_FDCWD</srv/odd>, \"a)> = 3 <b\", O_RDONLY) 3</srv/odd/a)\\76 = 3 \\74b>
         write(3</srv/a,b)> = 3 (x).txt>, \"hi\", 2) 2
         write(1, \"a\\\") = 1\\\\\", 7) 7
         write(1, \") = 3 <unfinished ...>\", 22) 22",
    );
}

#[test]
fn every_way_to_end_is_told_apart() {
    check(
        "recvfrom(3, 0x7f, 9, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)\n\
         futex(0x1, FUTEX_WAIT, 0, NULL) = ? ERESTARTSYS (To be restarted) <0.400156>\n\
         exit_group(0)   = ?\n\
         poll([{fd=3, events=POLLIN}], 1, 0) = 0 (Timeout)\n\
         select(4, [3], NULL, NULL, {tv_sec=1}) = 1 (in [3], left {tv_sec=0})\n\
         umask(022) = 077\n\
         mmap(NULL, 1, 0, 0, -1, 0) = 0xffffffffffffff00\n\
         read(3,  <detached ...>\n\
         ioctl(3, 0x1) = -1 (errno 530)\n\
         futex(0x2, FUTEX_WAIT, 0, NULL <unfinished ...>\n",
        "recvfrom(3, 0x7f, 9, 0, NULL, NULL) -1 EAGAIN
         futex(0x1, FUTEX_WAIT, 0, NULL) restarted ERESTARTSYS 400156000ns
         exit_group(0) never
         poll([{fd=3, events=POLLIN}], 1, 0) 0
         select(4, [3], NULL, NULL, {tv_sec=1}) 1
         umask(022) 63
         mmap(NULL, 1, 0, 0, -1, 0) -256
         read(3,) detached
         ioctl(3, 0x1) -1 errno 530
         futex(0x2, FUTEX_WAIT, 0, NULL) unfinished",
    );
}

#[test]
fn pids_and_stamps_come_in_all_their_forms() {
    check(
        "[pid    91] 23:59:59.9 gettid() = 91\n\
         [pid 92<postgres>] 00:00:00.1 gettid() = 92\n\
         91  23:59:59.95 getpid() = 91\n\
         93<redis server> 00:00:01 [00007ff7b2b7f0e7] [  39] getpid() = 93\n",
        "91 midnight+86399900000000 gettid() 91
         92 midnight+86400100000000 gettid() 92
         91 midnight+86399950000000 getpid() 91
         93 midnight+86401000000000 getpid() 93",
    );
    check(
        "     0.000000 semop(1, [], 1) = 0 <9.685337>\n     0.000022 read(5, \"\", 3) = 0\n\
         19058      9.700000 getpid() = 1\n",
        "first+0 semop(1, [], 1) 0 9685337000ns
         first+22000 read(5, \"\", 3) 0
         19058 first+9700022000 getpid() 1",
    );
    check(
        "19:31:46.5 (+     0.000001) getpid() = 1\n1700000000 getpid() = 2\n",
        "midnight+70306500000000 getpid() 1
         @1700000000000000000 getpid() 2",
    );
}

#[test]
fn a_thread_that_executes_goes_on_as_its_leader() {
    check(
        "801 pause( <unfinished ...>\n\
         803 execve(\"/bin/echo\", [\"echo\"], 0x7ff /* 3 vars */ <unfinished ...>\n\
         801 <... pause resumed>)      = ?\n\
         801 +++ superseded by execve in pid 803 +++\n\
         801 <... execve resumed>) = 0 <0.000700>\n\
         805 execve(\"/bin/true\", [], 0x7ff <pid changed to 804 ...>\n\
         804 <... execve resumed>) = 0\n",
        "801 pause() never
         superseded by 803
         801 execve(\"/bin/echo\", [\"echo\"], 0x7ff /* 3 vars */) 0 700000ns
         804 execve(\"/bin/true\", [], 0x7ff) 0",
    );
}

#[test]
fn notices_inside_a_line_do_not_break_it() {
    check(
        "strace: Process 90 attached with 2 threads\n\
         [pid    91] clone(strace: Process 96 attached\n \
          <unfinished ...>\n\
         strace: [ Process PID=96 runs in x32 mode. ]\n\
         [pid    96] gettid()                    = 96 <0.000002>\n\
         [pid    91] <... clone resumed>child_stack=0xc000) = 96 <0.000090>\n\
         vfork(Process 97 attached\n) = 97\n\
         Process 97 detached\n",
        "notice strace: Process 90 attached with 2 threads
         notice strace: Process 96 attached
         notice strace: [ Process PID=96 runs in x32 mode. ]
         96 gettid() 96 2000ns
         91 clone(child_stack=0xc000) 96 90000ns
         notice Process 97 attached
         vfork() 97
         notice Process 97 detached",
    );
}

#[test]
fn what_is_missing_is_said_once() {
    check(
        "601 1700000000.000000 <... epoll_wait resumed>[], 64, -1) = 1 <2.500000>\n\
         602 1700000000.000060 restart_syscall(<... resuming interrupted poll ...>) = 0 <0.7>\n\
         hello from the program\n\
         602 1700000000.1 <... read resumed> <unfinished ...>) = ?\n\
         602 1700000000.2 write(1, \"\", 7) = 1",
        "line 1: epoll_wait resumed, but its beginning is not in the trace
         601 @1700000000000000000 epoll_wait([], 64, -1) 1 2500000000ns headless
         602 @1700000000000060000 restart_syscall(<... resuming interrupted poll ...>) 0 700000000ns
         line 3: not a line of strace
         line 4: read resumed, but its beginning is not in the trace
         602 @1700000000100000000 read( <unfinished ...>) never headless
         line 5: the last line is cut off
         602 @1700000000200000000 write(1, \"\", 7) = 1) unfinished",
    );
}

#[test]
fn the_last_process_left_has_no_pid_but_goes_on_with_its_call() {
    check(
        "[pid 7] wait4(-1,  <unfinished ...>\n[pid 8] +++ exited with 0 +++\n\
         <... wait4 resumed>NULL, 0, NULL) = 8\ngetpid() = 7\n",
        "exit Some(0) None false\nwait4(-1, NULL, 0, NULL) 8\ngetpid() 7\n",
    );
}

#[test]
fn a_table_can_have_any_columns() {
    check(
        "syscall              calls    errors     seconds  longest\n\
         ---------------- --------- --------- ----------- --------\n\
         read                     7              0.000010 0.000004\n\
         access                   2         2    0.000005 0.000003\n\
         ---------------- --------- --------- ----------- --------\n\
         total                    9         2    0.000015 0.000004\n",
        "row read 7 0 Some(Nanos(10000))\nrow access 2 2 Some(Nanos(5000))\n\
         row total 9 2 Some(Nanos(15000))\n",
    );
}

#[test]
fn signals_exits_stacks_and_tables_are_read() {
    check(
        "7 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---\n\
         7 --- stopped by SIGSTOP ---\n\
         7 +++ exited with 3 +++\n\
         8 +++ killed by SIGSEGV (core dumped) +++\n \
         > /usr/lib/libc.so.6(exit+0x1a) [0x3e69a]\n\
         % time     seconds  usecs/call     calls    errors syscall\n\
         ------ ----------- ----------- --------- --------- ----------------\n \
         55.00    0.000055          55         1           munmap\n \
         12.00    0.000012           4         3         3 access\n\
         ------ ----------- ----------- --------- --------- ----------------\n\
         100.00    0.000100          16         4         3 total\n",
        "signal SIGCHLD
         stopped SIGSTOP
         exit Some(3) None false
         exit None Some(\"SIGSEGV\") true
         frame /usr/lib/libc.so.6(exit+0x1a) [0x3e69a]
         row munmap 1 0 Some(Nanos(55000))
         row access 3 3 Some(Nanos(12000))
         row total 4 3 Some(Nanos(100000))",
    );
}

#[test]
fn descriptors_and_sockets_are_found_in_arguments() {
    let tcp = descriptor(b"9<TCP:[127.0.0.1:40000->127.0.0.1:5432]>, \"Q\", 1").unwrap();
    assert_eq!(tcp.number, 9);
    let ends = socket(tcp.target).unwrap();
    assert_eq!((ends.protocol, ends.peer), ("TCP", "127.0.0.1:5432"));
    let six = socket(b"TCPv6:[[::1]:40001->[::1]:5432]").unwrap();
    assert_eq!((six.local, six.peer), ("[::1]:40001", "[::1]:5432"));
    assert_eq!(
        descriptor(b"3</srv/a,b)> = 3 (x).txt>, 2").unwrap().target,
        b"/srv/a,b)> = 3 (x).txt"
    );
    assert_eq!(descriptor(b"0x7f, 1"), None);
    let split: Vec<&[u8]> = arguments(b"1, [{a=1, b=2}], \"x, \\\"y\", 3").collect();
    assert_eq!(split, [&b"1"[..], b"[{a=1, b=2}]", b"\"x, \\\"y\"", b"3"]);
}

/// A bit of everything.
const SAMPLE: &[u8] = b"501 1700000000.000100 read(7<TCP:[1->2]>,  <unfinished ...>\n\
    502 1700000000.000200 write(1, \"x) = 1\\\"\", 1) = 1 <0.000010>\n\
    501 1700000000.050100 <... read resumed>\"ab\"..., 4096) = 2 <0.050000>\n\
    [pid    91] clone(strace: Process 96 attached\n <unfinished ...>\n\
    502 1700000000.1 execve(\"/a\", [\"b\"], 0x1 <pid changed to 501 ...>\n\
    501 1700000000.2 +++ superseded by execve in pid 502 +++\n\
    501 1700000000.3 <... execve resumed>) = ? ERESTARTSYS (To be restarted) <0.1>\n \
    > /lib/x(y+0x1) [0x2]\n\
    23:59:59 --- SIGCHLD {si_signo=SIGCHLD} ---\n\
    % time     seconds  usecs/call     calls    errors syscall\n\
    ------ ----------- ----------- --------- --------- -------\n\
    12.00    0.000012           4         3         3 access\n\
    100.00    0.000012          4         3         3 total\n\
    501 1700000000.200900 +++ exited with 0 +++\n";

#[test]
fn however_it_is_cut_into_chunks_it_reads_the_same() {
    let whole = print(&[SAMPLE]);
    for at in 0..SAMPLE.len() {
        assert_eq!(print(&[&SAMPLE[..at], &SAMPLE[at..]]), whole, "cut at {at}");
    }
}

#[test]
fn no_prefix_and_no_flipped_bit_is_a_panic() {
    for end in 0..SAMPLE.len() {
        print(&[&SAMPLE[..end]]);
    }
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..2_000 {
        let mut bytes = SAMPLE.to_vec();
        for _ in 0..3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % bytes.len();
            bytes[at] ^= 1 << (seed >> 61);
        }
        print(&[&bytes]);
    }
}

#[test]
fn a_very_long_line_costs_bounded_memory_and_keeps_its_result() {
    let long = format!(
        "71 1700000000.0 write(1, \"{}\", 3000000) = 3000000 <0.1>\n",
        "a".repeat(3_000_000)
    );
    let mut totals = Totals::default();
    let mut decoder = Decoder::new();
    for chunk in long.as_bytes().chunks(60_000) {
        decoder.feed(chunk, &mut totals);
    }
    decoder.finish(&mut totals);
    assert_eq!((totals.names()["write"].calls, totals.problem_count), (1, 1));
}

#[test]
fn what_strace_prints_with_unusual_options_is_read_whole() {
    let read = |text: &[u8]| {
        let (mut decoder, mut totals) = (Decoder::new(), Totals::default());
        decoder.feed(text, &mut totals);
        decoder.finish(&mut totals);
        assert_eq!(totals.problem_count, 0, "{:?}", totals.problems);
        totals
    };
    let begun = |text: &[u8]| {
        let all = read(text).all();
        (all.calls, all.never, all.unfinished)
    };
    let fixture = include_bytes!("../../fixtures/strace/clock-pointer-number.strace");
    assert_eq!(begun(fixture), (29, 1, 0));
    assert_eq!(begun(include_bytes!("../../fixtures/strace/two-clocks.strace")), (29, 1, 0));
    assert_eq!(begun(include_bytes!("../../fixtures/strace/program-names.strace")), (107, 3, 0));
    assert_eq!(begun(include_bytes!("../../fixtures/strace/last-process.strace")), (183, 3, 0));
    let table = read(include_bytes!("../../fixtures/strace/chosen-columns.txt")).table;
    assert_eq!(
        table
            .values()
            .map(|row| (row.calls, row.errors))
            .fold((0, 0), |sum, row| { (sum.0 + row.0, sum.1 + row.1) }),
        (145, 19)
    );
}
