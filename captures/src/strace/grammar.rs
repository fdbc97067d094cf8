//! The grammar of one line.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_until, take_while, take_while1};
use nom::character::complete::{char, digit1, space0, space1};
use nom::combinator::{all_consuming, map, map_opt, opt, recognize, value, verify};
use nom::multi::many0_count;
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

use super::model::Outcome;
use super::plain;
use crate::ids::Tid;
use crate::units::{Moment, Nanos};

type Parsed<'a, T> = IResult<&'a [u8], T>;

/// Largest pid that Linux gives (2^22); a larger number at a line's start is a stamp.
pub(super) const PID_MAX: u32 = 4_194_304;
/// Seconds since 1970 have nine digits from 1973 on; what `-r` prints never has.
const UNIX_MIN: u64 = 100_000_000;

/// What stands before a call: who and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) tid: Option<Tid>,
    pub(super) stamp: Option<Printed>,
}

/// A stamp, as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Printed {
    Unix(Moment),
    TimeOfDay(Nanos),
    Step(Nanos),
}

/// What a line says, behind its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// A call, or its first part.
    Call { name: &'a str, rest: &'a [u8] },
    /// The second part of a call.
    Resumed { name: &'a str, rest: &'a [u8] },
    /// A signal.
    Signal { name: &'a str, stopped: bool, detail: &'a [u8] },
    /// `exited with`.
    Exited(i32),
    /// `killed by`.
    Killed { signal: &'a str, core_dumped: bool },
    /// `superseded by execve in pid`.
    Superseded(Tid),
}

/// How a part of a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<'a> {
    /// With a result.
    Whole { args: &'a [u8], outcome: Outcome<'a>, duration: Option<Nanos> },
    /// With `<unfinished ...>`.
    Unfinished { args: &'a [u8] },
    /// With `<pid changed to N ...>`: an `execve` whose thread takes its leader's number.
    Renamed { args: &'a [u8], to: Tid },
    /// With `<detached ...>`.
    Detached { args: &'a [u8] },
}

/// Splits a line into its prefix and the rest.
pub(super) fn prefix(line: &[u8]) -> (Prefix, &[u8]) {
    plain::prefix(line).unwrap_or_else(|| prefix_by_rules(line))
}

pub(super) fn prefix_by_rules(line: &[u8]) -> (Prefix, &[u8]) {
    let (line, tid) = opt(tid).parse(line).unwrap_or((line, None));
    let (line, stamp) = opt(stamp).parse(line).unwrap_or((line, None));
    let (line, _) = many0_count(bracketed).parse(line).unwrap_or((line, 0));
    (Prefix { tid, stamp }, line)
}

/// What the rest of a line says; `None` where it is nothing that strace prints.
pub(super) fn body(rest: &[u8]) -> Option<Body<'_>> {
    match rest.first()? {
        b'<' => resumed(rest),
        b'-' => signal(rest),
        b'+' => all_consuming(delimited(tag("+++ "), ending, tag(" +++"))).parse(rest),
        _ => call(rest),
    }
    .ok()
    .map(|(_, body)| body)
}

/// `[pid 123] `, `123 `, either with the program's name (`-Y`).
fn tid(line: &[u8]) -> Parsed<'_, Tid> {
    let number = || map_opt(digit1, number32);
    let program = || opt((char('<'), take_until(">"), char('>')));
    let bracket =
        delimited((tag("[pid"), space1), terminated(number(), program()), (tag("]"), space0));
    let bare =
        terminated(verify(terminated(number(), program()), |&number| number <= PID_MAX), space1);
    map(alt((bracket, bare)), Tid).parse(line)
}

/// One of the stamps, with the step that `-r` adds to an absolute one.
fn stamp(line: &[u8]) -> Parsed<'_, Printed> {
    let step = opt((tag("(+"), space0, seconds, tag(") ")));
    delimited(space0, terminated(alt((time_of_day, since)), space1), step).parse(line)
}

fn time_of_day(line: &[u8]) -> Parsed<'_, Printed> {
    let (rest, (hours, _, minutes, _, Nanos(seconds))) =
        (two_digits, char(':'), two_digits, char(':'), seconds).parse(line)?;
    let nanos = (hours * 60 + minutes) * 60 * 1_000_000_000 + seconds;
    Ok((rest, Printed::TimeOfDay(Nanos(nanos))))
}

fn since(line: &[u8]) -> Parsed<'_, Printed> {
    map(seconds, |length| {
        if length.0 >= UNIX_MIN * 1_000_000_000 {
            Printed::Unix(Moment(length.0))
        } else {
            Printed::Step(length)
        }
    })
    .parse(line)
}

fn two_digits(line: &[u8]) -> Parsed<'_, u64> {
    map_opt(verify(digit1, |digits: &[u8]| digits.len() == 2), number64).parse(line)
}

/// Seconds with up to nine decimals.
pub(super) fn seconds(line: &[u8]) -> Parsed<'_, Nanos> {
    let (rest, whole) = map_opt(digit1, number64).parse(line)?;
    let (rest, decimals) = opt(preceded(char('.'), digit1)).parse(rest)?;
    let mut nanos = 0;
    let mut scale = 100_000_000;
    for digit in decimals.unwrap_or_default().iter().take(9) {
        nanos += u64::from(digit - b'0') * scale;
        scale /= 10;
    }
    // A number of seconds that does not fit is none.
    let sum = whole.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(nanos));
    match sum {
        Some(sum) => Ok((rest, Nanos(sum))),
        None => Err(nom::Err::Error(nom::error::Error::new(line, nom::error::ErrorKind::Digit))),
    }
}

/// The instruction pointer of `-i`, the number of `-n`.
fn bracketed(line: &[u8]) -> Parsed<'_, ()> {
    let inside = take_while1(|byte: u8| byte.is_ascii_hexdigit() || b" ?x".contains(&byte));
    value((), (char('['), inside, tag("] "))).parse(line)
}

/// The longest name of a call has 28 letters; what is much longer is none, and need not be kept.
pub(super) const NAME_MAX: usize = 64;

fn name(line: &[u8]) -> Parsed<'_, &str> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'?';
    let short = |name: &&[u8]| name.len() <= NAME_MAX;
    map_opt(verify(take_while1(letter), short), text).parse(line)
}

fn call(rest: &[u8]) -> Parsed<'_, Body<'_>> {
    let (rest, name) = terminated(name, char('(')).parse(rest)?;
    Ok((&[], Body::Call { name, rest }))
}

fn resumed(rest: &[u8]) -> Parsed<'_, Body<'_>> {
    let (rest, name) = delimited(tag("<... "), name, tag(" resumed>")).parse(rest)?;
    Ok((&[], Body::Resumed { name, rest }))
}

fn signal(rest: &[u8]) -> Parsed<'_, Body<'_>> {
    let (rest, _) = tag("--- ").parse(rest)?;
    let (rest, stopped) = opt(tag("stopped by ")).parse(rest)?;
    let (rest, name) = name(rest)?;
    let Some(detail) = rest.strip_suffix(b"---") else {
        return Err(nom::Err::Error(nom::error::Error::new(rest, nom::error::ErrorKind::Tag)));
    };
    let stopped = stopped.is_some();
    Ok((&[], Body::Signal { name, stopped, detail: detail.trim_ascii() }))
}

fn ending(rest: &[u8]) -> Parsed<'_, Body<'_>> {
    let exited =
        preceded(tag("exited with "), map_opt(signed, |number| i32::try_from(number).ok()));
    let killed = (preceded(tag("killed by "), name), opt(tag(" (core dumped)")));
    let superseded = preceded(tag("superseded by execve in pid "), map_opt(digit1, number32));
    alt((
        map(exited, Body::Exited),
        map(killed, |(signal, core)| Body::Killed { signal, core_dumped: core.is_some() }),
        map(superseded, |number| Body::Superseded(Tid(number))),
    ))
    .parse(rest)
}

/// How a call, or a part of one, ends; `None` where the line is cut off. `cut` lines have lost
/// their middle, and with it the ends of strings.
pub(super) fn end(rest: &[u8], cut: bool) -> Option<End<'_>> {
    if let Some(before) = rest.strip_suffix(b" ...>") {
        for (mark, detached) in [(&b"<unfinished"[..], false), (b"<detached", true)] {
            if let Some(args) = before.strip_suffix(mark) {
                let args = args.trim_ascii_end();
                return Some(if detached {
                    End::Detached { args }
                } else {
                    End::Unfinished { args }
                });
            }
        }
        let start = memchr::memrchr(b'<', before)?;
        let number = before[start..].strip_prefix(b"<pid changed to ")?;
        let args = before[..start].trim_ascii_end();
        return Some(End::Renamed { args, to: Tid(number32(number)?) });
    }
    let (before, duration) = duration(rest);
    // From the right: arguments can look like results, results hardly like arguments.
    let mut right = before.len();
    for _ in 0..CANDIDATES {
        right = last_equals(&before[..right])?;
        let args = before[..right].trim_ascii_end();
        let Some(args) = args.strip_suffix(b")") else { continue };
        if let Some(outcome) = outcome(&before[right + 3..])
            && (cut || is_outside_strings(args))
        {
            return Some(End::Whole { args, outcome, duration });
        }
    }
    None
}

/// Where the last ` = ` begins.
#[inline]
fn last_equals(bytes: &[u8]) -> Option<usize> {
    let mut end = bytes.len();
    loop {
        let sign = memchr::memrchr(b'=', &bytes[..end])?;
        if sign > 0 && bytes[sign - 1] == b' ' && bytes.get(sign + 1) == Some(&b' ') {
            return Some(sign - 1);
        }
        end = sign;
    }
}

/// How many places a result is looked for at: in a line that has more of them it is not found,
/// but a hostile one costs no more than its length.
const CANDIDATES: usize = 32;

/// Takes ` <0.000031>` off a line's end.
fn duration(rest: &[u8]) -> (&[u8], Option<Nanos>) {
    let rest = rest.trim_ascii_end();
    let split = || {
        let before = rest.strip_suffix(b">")?;
        let start = memchr::memrchr(b'<', before)?;
        let inside = &before[start + 1..];
        let length = match plain::seconds(inside) {
            Some(length) => length,
            None => all_consuming(seconds).parse(inside).ok()?.1,
        };
        // `3<0.1>` would be a descriptor with an odd path.
        let args = before[..start].strip_suffix(b" ")?;
        Some((args, length))
    };
    split().map_or((rest, None), |(args, length)| (args.trim_ascii_end(), Some(length)))
}

/// What stands behind `=`, all of it.
fn outcome(result: &[u8]) -> Option<Outcome<'_>> {
    if let Some(value) = plain::result(result) {
        return Some(Outcome::Returned { value, errno: None, target: None, comment: None });
    }
    if let Some(rest) = result.strip_prefix(b"?") {
        let (rest, errno) = opt(errno).parse(rest).ok()?;
        let explained = rest.is_empty()
            || rest.starts_with(b" (") && rest.ends_with(b")")
            || rest == b" <unavailable>";
        return explained
            .then_some(errno.map_or(Outcome::Never, |errno| Outcome::Restarted { errno }));
    }
    let (rest, value) = alt((hexadecimal, signed)).parse(result).ok()?;
    let (rest, target) = target(rest);
    let (rest, errno) = match rest {
        [] => (rest, None),
        _ => opt(errno).parse(rest).ok()?,
    };
    let comment = match rest {
        [] => None,
        [b' ', b'(', comment @ .., b')'] => Some(comment),
        _ => return None,
    };
    // An error that strace has no name for: `-1 (errno 530)`.
    let unnamed = comment.filter(|comment| value == -1 && comment.starts_with(b"errno "));
    let errno = errno.or_else(|| unnamed.and_then(text));
    Some(Outcome::Returned { value, errno, target, comment })
}

/// ` EAGAIN`.
fn errno(line: &[u8]) -> Parsed<'_, &str> {
    let letters = take_while(|byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    map_opt(preceded(char(' '), recognize((char('E'), letters))), text).parse(line)
}

/// The path of a descriptor; it ends at the first `>` that the result could go on behind.
fn target(rest: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(path) = rest.strip_prefix(b"<") else { return (rest, None) };
    memchr::memchr_iter(b'>', path)
        .find(|&end| path.get(end + 1).is_none_or(|&after| after == b' '))
        .map_or((rest, None), |end| (&path[end + 1..], Some(&path[..end])))
}

fn hexadecimal(line: &[u8]) -> Parsed<'_, i64> {
    let digits = take_while1(|byte: u8| byte.is_ascii_hexdigit());
    map_opt(preceded(tag("0x"), digits), |digits| {
        u64::from_str_radix(text(digits)?, 16).ok().map(u64::cast_signed)
    })
    .parse(line)
}

/// Decimal, or octal where it begins with 0 (`umask`).
fn signed(line: &[u8]) -> Parsed<'_, i64> {
    let (rest, (minus, digits)) = (opt(char('-')), digit1).parse(line)?;
    let radix = if digits.len() > 1 && digits[0] == b'0' { 8 } else { 10 };
    let size = text(digits).and_then(|digits| u64::from_str_radix(digits, radix).ok());
    match size {
        Some(size) => {
            let size = size.cast_signed();
            Ok((rest, if minus.is_some() { size.wrapping_neg() } else { size }))
        }
        None => Err(nom::Err::Error(nom::error::Error::new(line, nom::error::ErrorKind::Digit))),
    }
}

/// Whether the end of `args` is in no string. A quote opens a string only where an argument can
/// begin: older stracers do not escape quotes in paths.
pub(super) fn is_outside_strings(args: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'"', &args[at..]) {
        let quote = at + found;
        at = quote + 1;
        if quote > 0 && !b"(, [{=@|&~!*".contains(&args[quote - 1]) {
            continue;
        }
        loop {
            let Some(next) = memchr::memchr2(b'"', b'\\', &args[at..]) else { return false };
            let escaped = args[at + next] == b'\\';
            at += next + 1 + usize::from(escaped);
            if !escaped {
                break;
            }
            if at > args.len() {
                return false;
            }
        }
    }
    true
}

/// Where in a line a notice of strace about itself begins; it always reaches the line's end.
pub(super) fn notice(line: &[u8]) -> Option<usize> {
    if line.starts_with(b"strace: ") || line.starts_with(b"System call usage summary") {
        return Some(0);
    }
    const ENDS: [&[u8]; 7] = [
        b" attached",
        b" detached",
        b" threads",
        b" suspended",
        b"(waiting for parent)",
        b" ready)",
        b" mode. ]",
    ];
    if !matches!(line.last()?, b'd' | b's' | b')' | b']')
        || !ENDS.iter().any(|end| line.ends_with(end))
    {
        return None;
    }
    let start = memchr::memmem::rfind(line, b"Process ")?;
    process(&line[start..]).ok()?;
    let start = if line[..start].ends_with(b"[ ") { start - 2 } else { start };
    let start = if line[..start].ends_with(b"strace: ") { start - 8 } else { start };
    is_outside_strings(&line[..start]).then_some(start)
}

fn process(line: &[u8]) -> Parsed<'_, ()> {
    value((), (tag("Process "), opt(tag("PID=")), digit1)).parse(line)
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn number32(digits: &[u8]) -> Option<u32> {
    text(digits)?.parse().ok()
}

fn number64(digits: &[u8]) -> Option<u64> {
    text(digits)?.parse().ok()
}
