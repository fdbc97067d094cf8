//! The functions of the fuzz targets on stable Rust: fixtures cut anywhere, with bits flipped,
//! with pieces doubled, swapped and joined, and bytes made up from each format's own words. What
//! fuzzing found is tried again each time.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../fuzz/src/formats.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets are another crate")]
mod formats;

use formats::{FORMATS, Try};
use proptest::collection::vec;
use proptest::prelude::*;

/// A generator of numbers: any sequence will do, as long as it is the same one each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % most.max(1)
    }
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder, in a fixed order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    let inside = paths.iter().filter(|path| path.is_dir()).flat_map(|path| files(path));
    let all: Vec<_> = inside.collect();
    paths.into_iter().filter(|path| path.is_file()).chain(all).collect()
}

/// What each format is tried with: its fixtures, and a few lines of what is hard in it.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let mut folders =
        vec![here().join("fixtures").join(name), here().join("fuzz/found").join(name)];
    if name == "recognise" {
        folders.push(here().join("fixtures"));
    }
    let all = folders.iter().flat_map(|folder| files(folder));
    let mut seeds: Vec<Vec<u8>> = all.filter_map(|path| fs::read(path).ok()).collect();
    seeds.extend(words(name).iter().map(|text| text.to_vec()));
    seeds
}

fn words(name: &str) -> &'static [&'static [u8]] {
    match name {
        "strace" => &[
            b"7 1700000000.5 read(3</a,b)> = 3 (x)>, \"\\\"\", 1) = -1 EAGAIN (Again) <0.1>\n",
            b"[pid 8] <... wait4 resumed>NULL) = ? ERESTARTSYS (To be restarted)\n",
            b"% time     seconds  usecs/call     calls    errors syscall\n---- ---\n 1 0.1 2 3 a\n",
        ],
        "postgres" => &[
            b"\x00\x0e\0\0\0\x0e\0\x03\0\0user\0a\x02\x0fR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I",
            b"\x00\x0eQ\0\0\0\x0dselect 1\0\x02\x1fD\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0",
        ],
        "redis" => &[
            b"\x00\x16*2\r\n$3\r\nGET\r\n$1\r\na\r\n\x02\x05$-1\r\n",
            b"\x02\x20|1\r\n+ttl\r\n:3600\r\n%1\r\n+a\r\n*2\r\n:1\r\n_\r\n",
        ],
        "http" => &[
            b"\x00\x30POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            b"\x02\x40HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 100 C\r\n\r\n",
        ],
        "perf_script" => &[b"a b;c 7/8 [001] 17.5: 1 cycles:u:\n\t55d0 f(int)+0x5 (/x (deleted))\n\n"],
        "folded" => &[b"main;work;read 17\nmain;[k] 0.5\nmain 1 2\n"],
        "load_tools" => &[
            b"Running 1s test @ http://x\n  1 threads and 2 connections\n  10 requests in 1.00s\n",
            b"{\"metric\":\"http_reqs\",\"type\":\"Point\",\"data\":{\"value\":1}}\n",
        ],
        "json_lines" => &[b"{\"moment\":1,\"at\":\"mark\",\"blocks\":1,\"bytes\":2,\"frees\":0}\n{\n"],
        _ => &[],
    }
}

/// Breaks a file in one of the ways in which files break.
fn broken(seed: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        match dice.below(7) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            2 if at < bytes.len() => {
                bytes[at] = [0, 0xff, 0x7f, b'\n', b'<', b'"', b'(', b'9'][dice.below(8)];
            }
            3 => drop(bytes.drain(at..(at + dice.below(40)).min(bytes.len()))),
            4 => {
                let piece = bytes[at..(at + dice.below(200)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let from = dice.below(other.len() + 1);
                let piece = &other[from..(from + dice.below(200)).min(other.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            _ => bytes.truncate(bytes.len().min(16 * 1024)),
        }
    }
    bytes
}

fn attack(name: &str, read: Try, rounds: usize) {
    let seeds = seeds(name);
    read(b"");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for seed in &seeds {
        let seed = &seed[..seed.len().min(64 * 1024)];
        read(seed);
        for _ in 0..rounds / seeds.len().max(1) {
            let other = &seeds[dice.below(seeds.len())];
            read(&broken(seed, other, &mut dice));
        }
    }
    // Bytes without any sense.
    for _ in 0..rounds / 10 {
        let length = dice.below(300);
        let bytes: Vec<u8> = (0..length).map(|_| dice.below(256) as u8).collect();
        read(&bytes);
    }
}

#[test]
fn no_broken_file_of_any_format_makes_its_decoder_panic_or_disagree_with_itself() {
    // More by hand: HOSTILE_ROUNDS=100000 cargo test -p assay-captures --release --test hostile
    let rounds = std::env::var("HOSTILE_ROUNDS").ok().and_then(|text| text.parse().ok());
    for (name, read) in FORMATS {
        attack(name, read, rounds.unwrap_or(300));
    }
}

#[test]
fn each_format_has_a_fuzz_target_and_something_to_begin_with() {
    for (name, _) in FORMATS {
        let target = here().join(format!("fuzz/fuzz_targets/{name}.rs"));
        assert!(target.is_file(), "{}", target.display());
    }
    let targets = files(&here().join("fuzz/fuzz_targets"));
    assert_eq!(targets.len(), FORMATS.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    #[test]
    fn no_format_minds_any_bytes(bytes in vec(any::<u8>(), 0..400)) {
        for (_, read) in FORMATS {
            read(&bytes);
        }
    }

    #[test]
    fn no_format_minds_its_own_words_in_any_order(
        picks in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..30),
    ) {
        for (name, read) in FORMATS {
            let words = words(name);
            let pieces = picks.iter().filter(|_| !words.is_empty()).map(|(which, from)| {
                let word = words[which.index(words.len())];
                &word[from.index(word.len())..]
            });
            read(&pieces.collect::<Vec<_>>().concat());
        }
    }
}
