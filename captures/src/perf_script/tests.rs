//! Tests of the perf script format.

use crate::parsed::{Problem, Sink};

use super::*;

/// Prints what is delivered.
#[derive(Default)]
struct Printed(String);

impl Sink<Sample<'_>> for Printed {
    fn record(&mut self, sample: Sample<'_>) {
        let Sample { thread, pid, tid, cpu, time, period, event, frames } = sample;
        let pid = pid.map_or("-".into(), |pid| pid.0.to_string());
        let cpu = cpu.map_or("-".into(), |cpu| cpu.to_string());
        let time = time.map_or("-".into(), |time| time.0.to_string());
        let period = period.map_or("-".into(), |period| period.to_string());
        let tid = tid.0;
        self.0 += &format!("<{thread}> {pid}/{tid} {cpu} {time} {period} {event}\n");
        for frame in frames {
            let offset = frame.offset.map_or("-".into(), |offset| format!("{offset:x}"));
            self.0 +=
                &format!("  {:x} {} {offset} {}\n", frame.address, frame.symbol, frame.module);
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.0 += &format!("{problem}\n");
    }
}

fn print(text: &[u8], piece: usize) -> String {
    let mut printed = Printed::default();
    let mut decoder = Decoder::default();
    for piece in text.chunks(piece) {
        decoder.feed(piece, &mut printed);
    }
    decoder.finish(&mut printed);
    printed.0
}

fn check(text: &str, expected: &str) {
    for piece in [1, 13, 4096] {
        assert_eq!(print(text.as_bytes(), piece), expected, "in pieces of {piece}");
    }
}

const SMOKE: &str = "\
axum-sqlx  4123/4127  [000]  1796080364.776693123:    2004008 cpu-clock:pppH: 
\tffffffff8a1c0e2b _raw_spin_unlock_irqrestore+0x1b ([kernel.kallsyms])
\t    7f2c1a0f2d94 send+0x64 (/usr/lib/libc.so.6)
\t    55d0c33a1b02 <a::B<(u8, c)> as d::E>::f+0x52 (/srv/app (deleted))

";

#[test]
fn a_sample_has_its_thread_time_and_stack() {
    check(
        SMOKE,
        "<axum-sqlx> 4123/4127 0 1796080364776693123 2004008 cpu-clock:pppH
  ffffffff8a1c0e2b _raw_spin_unlock_irqrestore 1b [kernel.kallsyms]
  7f2c1a0f2d94 send 64 /usr/lib/libc.so.6
  55d0c33a1b02 <a::B<(u8, c)> as d::E>::f 52 /srv/app (deleted)
",
    );
}

#[test]
fn thread_names_may_hold_anything() {
    check(
        "tokio: 1.5: [3] 7  12/13 [001] 5.000001: 1 cycles:u:\n\n\
         :-1 -1/-1 [000] 5.000002: 10 cycles:\n\n\
         kworker/0:1-ev 9 [000] 5.25: cycles:\n\n",
        "<tokio: 1.5: [3] 7> 12/13 1 5000001000 1 cycles:u
<:-1> 4294967295/4294967295 0 5000002000 10 cycles
<kworker/0:1-ev> -/9 0 5250000000 - cycles
",
    );
}

#[test]
fn a_stack_of_one_stands_on_the_same_line_and_unknown_names_stay() {
    check(
        "app 7 1.000000: 99 cycles: ffffffff81 [unknown] ([kernel.kallsyms])\n\
         app 7 1.000001: 99 cycles:\n\tabc [unknown] ([unknown])\n\t0 f (inlined)\n\n",
        "<app> -/7 - 1000000000 99 cycles
  ffffffff81 [unknown] - [kernel.kallsyms]
<app> -/7 - 1000001000 99 cycles
  abc [unknown] - [unknown]
  0 f - inlined
",
    );
}

#[test]
fn samples_without_stacks_need_no_empty_line_between() {
    check(
        "app 7 1.5: 1 x:  f00 f+0x1 (/a)\n  cafe 8 1.6: 1 x:  f00 f+0x1 (/a)\n",
        "<app> -/7 - 1500000000 1 x\n  f00 f 1 /a\n<cafe> -/8 - 1600000000 1 x\n  f00 f 1 /a\n",
    );
}

#[test]
fn a_stack_may_follow_after_an_empty_line() {
    check(
        "app 7 1.5: 1 x:\n\n\tf00 f+0x1 (/a)\n\tf10 g (/a)\n\napp 7 1.6: 1 x:\n\n",
        "<app> -/7 - 1500000000 1 x\n  f00 f 1 /a\n  f10 g - /a\n<app> -/7 - 1600000000 1 x\n",
    );
}

#[test]
fn fields_may_be_tabbed_flagged_or_followed_by_source_lines() {
    check(
        "Gecko\t7 [002] 1.5:\t\t10 task-clock:u:\n\tf00\tA::f() (/a)\n  a.c:12\n\n\
         app 7 [001] d..2. 1.6: 1 x:\n\n",
        "<Gecko> -/7 2 1500000000 10 task-clock:u\n  f00 A::f() - /a\n\
         <app> -/7 1 1600000000 1 x\n",
    );
}

#[test]
fn a_last_frame_without_line_feed_is_whole_when_its_parenthesis_is_closed() {
    check("app 7 1.5: 1 x:\n\tf00 f (/a)", "<app> -/7 - 1500000000 1 x\n  f00 f - /a\n");
    check("app 7 1.5: 1 x:\n\tf00 f (/", "line 2: the last line has no end\n");
}

#[test]
fn comments_are_left_out_and_nonsense_is_a_problem() {
    check(
        "# captured on: today\nnonsense here\n\napp 7 1.5: 1 x:\n\tnot hex\n\napp 8 1.",
        "line 2: not the first line of a sample
line 5: not a frame of a stack
<app> -/7 - 1500000000 1 x
line 7: the last line has no end
",
    );
}

#[test]
fn what_is_printed_is_read_back() {
    struct Again(String);
    impl Sink<Sample<'_>> for Again {
        fn record(&mut self, sample: Sample<'_>) {
            self.0 += &sample.to_string();
        }
        fn problem(&mut self, problem: Problem) {
            panic!("{problem}");
        }
    }
    let mut once = Again(String::new());
    Decoder::default().feed(SMOKE.as_bytes(), &mut once);
    let mut twice = Again(String::new());
    Decoder::default().feed(once.0.as_bytes(), &mut twice);
    assert_eq!(once.0, twice.0);
    assert_eq!(print(once.0.as_bytes(), 50), print(SMOKE.as_bytes(), 50));
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    let text = SMOKE.repeat(2).into_bytes();
    for cut in 0..text.len() {
        print(&text[..cut], 100);
        let mut flipped = text.clone();
        flipped[cut] ^= 1 << (cut % 8);
        print(&flipped, 100);
    }
}

#[test]
fn what_perf_says_of_itself_is_no_sample_and_losses_are_said() {
    check(
        "swapper     0 [000]     0.000000: PERF_RECORD_LOST lost 5\n\
         p 7 [001] 1.000000: 250 cycles:\n\t10 f (/p)\n\
         \tp     7 [001]     1.500000: PERF_RECORD_COMM: p:7/7\n\
         p 7 [001] 2.000000: 250 cycles:\n\t10 f (/p)\n\n",
        "line 1: perf lost samples: lost 5\n\
         <p> -/7 1 1000000000 250 cycles\n  10 f - /p\n\
         <p> -/7 1 2000000000 250 cycles\n  10 f - /p\n",
    );
}
