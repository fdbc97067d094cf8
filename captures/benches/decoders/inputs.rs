//! What the decoders are timed on: a few megabytes of each format, always the same.

use std::fmt::Write as _;

/// About how large each input is, in bytes.
pub(crate) const SIZE: usize = 4 * 1024 * 1024;

/// A file and what its costs are counted in.
pub(crate) struct Input {
    /// The whole file.
    pub(crate) bytes: Vec<u8>,
    /// How many packets, lines, samples it has.
    pub(crate) units: u64,
}

/// Repeats a fixture that holds whole lines.
pub(crate) fn lines(fixture: &[u8]) -> Input {
    let times = SIZE.div_ceil(fixture.len());
    let bytes = fixture.repeat(times);
    let units = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
    Input { bytes, units }
}

/// Collections of a Go program, numbered as it numbers them.
pub(crate) fn gctrace() -> Input {
    let (mut text, mut units) = (String::new(), 0);
    while text.len() < SIZE {
        units += 1;
        let _never = writeln!(
            text,
            "gc {units} @{}.{:03}s 2%: 0.031+0.42+0.004 ms clock, 0.062+0.11/0.39/0.20+0.008 ms cpu, \
             4->4->2 MB, 5 MB goal, 0 MB stacks, 0 MB globals, 2 P",
            units / 1000,
            units % 1000
        );
    }
    Input { bytes: text.into_bytes(), units }
}

/// What one side says.
struct Turn {
    client: bool,
    payload: Vec<u8>,
}

/// A packet capture of one connection, on `lo`.
fn packets(port: u16, turns: &[Turn]) -> Input {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    let (mut next, mut units) = ([1u32; 2], 0);
    let mut segment = |client: bool, flags: u8, payload: &[u8]| {
        let from = usize::from(!client);
        let ports = [40_000, port];
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((40 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        frame.extend(ports[from].to_be_bytes());
        frame.extend(ports[1 - from].to_be_bytes());
        frame.extend(next[from].to_be_bytes());
        frame.extend(next[1 - from].to_be_bytes());
        frame.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        frame.extend(payload);
        for word in [units / 1_000_000, units % 1_000_000, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
        next[from] = next[from].wrapping_add(payload.len() as u32 + u32::from(flags & 2 != 0));
        units += 1;
        bytes.len()
    };
    segment(true, 2, b"");
    segment(false, 18, b"");
    'full: loop {
        for turn in turns {
            let length = segment(turn.client, 24, &turn.payload);
            segment(!turn.client, 16, b"");
            if length > SIZE {
                break 'full;
            }
        }
    }
    Input { units: u64::from(units), bytes }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

/// A prepared statement that is run again and again and gives 30 rows.
pub(crate) fn postgres() -> Input {
    let bind =
        message(b'B', b"\0sqlx_s_1\0\0\x01\0\x01\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x07\0\x01\0\x01");
    let asked = [bind, message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat();
    let row =
        message(b'D', &[b"\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\x28", &[b'x'; 40][..]].concat());
    let mut answer = message(b'2', b"");
    answer.extend(row.repeat(30));
    answer.extend(message(b'C', b"SELECT 30\0"));
    answer.extend(message(b'Z', b"I"));
    packets(5432, &[Turn { client: true, payload: asked }, Turn { client: false, payload: answer }])
}

/// A key that is read, of two kilobytes.
pub(crate) fn redis() -> Input {
    let asked = b"*2\r\n$3\r\nGET\r\n$9\r\npage:main\r\n".to_vec();
    let answer = [b"$2048\r\n", &[b'x'; 2048][..], b"\r\n"].concat();
    packets(6379, &[Turn { client: true, payload: asked }, Turn { client: false, payload: answer }])
}

/// A page of three kilobytes, in chunks.
pub(crate) fn http() -> Input {
    let asked = b"GET /post/first HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n".to_vec();
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = [&head[..], b"bb8\r\n", &[b'x'; 3000], b"\r\n0\r\n\r\n"].concat();
    packets(8080, &[Turn { client: true, payload: asked }, Turn { client: false, payload: answer }])
}

/// Samples of a Rust service with stacks of a dozen frames.
pub(crate) fn perf_script() -> Input {
    let (mut text, mut units) = (String::new(), 0);
    while text.len() < SIZE {
        let (tid, at) = (400 + units % 8, units * 2_004);
        let _never = writeln!(
            text,
            "axum-sqlx 400/{tid} [000] {}.{:06}: 2004008 cpu-clock:pppH:",
            at / 1_000_000,
            at % 1_000_000
        );
        for depth in 0..4 + units % 13 {
            let part = (units * 7 + depth) % 90;
            let _never = writeln!(
                text,
                "\t{:16x} <app::part{part}::Step as core::future::Future>::poll+0x{part:x} (/srv/app)",
                0x5600_0000_0000 + part * 64
            );
        }
        text.push('\n');
        units += 1;
    }
    Input { bytes: text.into_bytes(), units }
}

/// Folded stacks of a dozen frames.
pub(crate) fn folded() -> Input {
    let (mut text, mut units) = (String::new(), 0);
    while text.len() < SIZE {
        text.push_str("app");
        for depth in 0..4 + units % 13 {
            let _never =
                write!(text, ";<app::part{}::Step as Future>::poll", (units * 7 + depth) % 90);
        }
        let _never = writeln!(text, " {}", units % 50 + 1);
        units += 1;
    }
    Input { bytes: text.into_bytes(), units }
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

fn field(number: u64, content: &[u8], out: &mut Vec<u8>) {
    varint(number << 3 | 2, out);
    varint(content.len() as u64, out);
    out.extend(content);
}

/// Fields of numbers only.
fn numbers(fields: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for &(number, value) in fields {
        varint(number << 3, &mut out);
        varint(value, &mut out);
    }
    out
}

/// A profile of samples and nanoseconds, 600 places in 200 functions.
pub(crate) fn pprof() -> Input {
    let (mut bytes, mut units) = (Vec::new(), 0u64);
    field(1, &numbers(&[(1, 1), (2, 2)]), &mut bytes);
    field(1, &numbers(&[(1, 3), (2, 4)]), &mut bytes);
    for place in 1..=600 {
        let mut location = numbers(&[(1, place), (3, 0x40_0000 + place * 16)]);
        field(4, &numbers(&[(1, place % 200 + 1)]), &mut location);
        field(4, &location, &mut bytes);
    }
    for function in 1..=200 {
        field(5, &numbers(&[(1, function), (2, function + 4)]), &mut bytes);
    }
    let names = ["", "samples", "count", "cpu", "nanoseconds"].map(str::to_owned);
    for name in names.into_iter().chain((0..200).map(|at| format!("app.(*Server).step{at}"))) {
        field(6, name.as_bytes(), &mut bytes);
    }
    while bytes.len() < SIZE {
        let (mut stack, mut values, mut sample) = (Vec::new(), Vec::new(), Vec::new());
        for depth in 0..8 + units % 30 {
            varint((units * 31 + depth * 17) % 600 + 1, &mut stack);
        }
        varint(units % 5 + 1, &mut values);
        varint((units % 5 + 1) * 10_000_000, &mut values);
        field(1, &stack, &mut sample);
        field(2, &values, &mut sample);
        field(2, &sample, &mut bytes);
        units += 1;
    }
    Input { bytes, units }
}
