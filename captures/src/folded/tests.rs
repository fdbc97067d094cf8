//! Lines in, stacks and problems out.

use std::fmt::Write;

use super::*;
use crate::hostile::{chunks, cuts, flips};
use crate::parsed::{Problem, Sink};

/// Prints what it is given, one line each.
#[derive(Default)]
struct Printed(String);

impl Sink<Stack<'_>> for Printed {
    fn record(&mut self, stack: Stack<'_>) {
        let frames: Vec<&str> = stack.frames().collect();
        let _never = write!(self.0, "{} {}", frames.join("|"), stack.weight);
        if let Some(earlier) = stack.earlier {
            let _never = write!(self.0, " was {earlier}");
        }
        self.0.push_str(if stack.ended { "\n" } else { " open\n" });
    }

    fn problem(&mut self, problem: Problem) {
        let _never = writeln!(self.0, "{problem}");
    }
}

fn read(bytes: &[u8], size: usize) -> String {
    let (mut decoder, mut printed) = (Decoder::default(), Printed::default());
    chunks(bytes, size, |chunk| decoder.feed(chunk, &mut printed));
    decoder.finish(&mut printed);
    printed.0
}

fn check(text: &str, expected: &str) {
    for size in [1, 7, 4096] {
        assert_eq!(read(text.as_bytes(), size), expected, "in chunks of {size}");
    }
}

#[test]
fn names_may_hold_blanks_and_the_weight_is_the_last_word() {
    check(
        "a;b;c 12\nDOM Worker 7;<T as A<B>>::f 3\nmain;operator()(int, char) 1\n#1;x 2\n",
        "a|b|c 12\nDOM Worker 7|<T as A<B>>::f 3\nmain|operator()(int, char) 1\n#1|x 2\n",
    );
}

#[test]
fn weights_may_have_fractions_and_lines_any_end() {
    check("a;b 0.25\r\na\t7\n\na;b 5", "a|b 0.25\na 7\na|b 5 open\n");
}

#[test]
fn comments_are_passed_over_and_other_lines_are_problems() {
    check(
        "# made by hand\na;b 1\n// so\nnot a stack\na;c -3\na;d 1.2.3\n 4\n",
        "a|b 1\nline 3: not a stack and its weight\nline 4: not a stack and its weight\n\
         line 5: not a stack and its weight\nline 6: not a stack and its weight\n\
         line 7: not a stack and its weight\n",
    );
}

#[test]
fn a_comparison_has_two_weights() {
    check(
        "a;b 6 4\na;c 0 12\na;d 9\n",
        "a|b 4 was 6\na|c 12 was 0\nline 3: one weight, where other lines have two\n",
    );
    // Not a comparison: its first line has one weight, so a number may end a name.
    check("a;b 6\nworker 7 3\n", "a|b 6\nworker 7 3\n");
}

#[test]
fn no_cut_or_flipped_bit_breaks_anything() {
    let text = b"a;b;c 12\nDOM Worker 7;<T as A<B>>::f 3.5\n# x\nworker 7 3\n\xff;b 2\n";
    cuts(text, |prefix| assert!(read(prefix, 5).lines().count() <= 6));
    flips(text, 2_000, |broken| assert!(read(broken, 64).len() < 4_000));
}
