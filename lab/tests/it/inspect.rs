//! `assay inspect` from outside: files in, text and JSON out, the exit code, and refusals.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn inspect(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.current_dir(folder).arg("inspect").args(words).output().expect("assay starts")
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file in it");
    }
    folder
}

fn fixture(name: &str) -> String {
    format!("{}/../captures/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn json(folder: &Path, words: &[&str]) -> Value {
    let output = inspect(folder, &[words, &["--json"]].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The amount of a metric that has just these values of labels.
fn amount(found: &Value, metric: &str, labels: &[&str]) -> Option<f64> {
    let costs = found["costs"].as_array().expect("costs are a list");
    let has = |cost: &&Value| {
        let of: Vec<&str> = cost["labels"]
            .as_object()
            .expect("labels")
            .values()
            .filter_map(Value::as_str)
            .collect();
        cost["metric"] == metric && of == labels
    };
    costs.iter().find(has)?["amount"].as_f64()
}

const TRACE: &str = "1700000010.5 read(3, \"\", 9) = -1 EAGAIN (Again) <0.1>\n\
                     1700000011.5 read(3, \"\", 9) = 0 <0.1>\n\
                     nonsense\n\
                     1700000012.5 write(1, \"\", 0) = 0 <0.1>\n";

#[test]
fn a_trace_is_counted_by_name_and_its_problems_have_lines() {
    let folder = folder(&[("t.strace", TRACE)]);
    let found = json(folder.path(), &["t.strace"]);
    assert_eq!(found["source"][0]["holds"], "strace log");
    assert_eq!(amount(&found, "syscalls", &[]), Some(3.0));
    assert_eq!(amount(&found, "syscalls", &["read"]), Some(2.0));
    assert_eq!(amount(&found, "syscalls.errors", &["EAGAIN", "read"]), Some(1.0));
    assert_eq!(found["problems"][0], "t.strace: line 3: not a line of strace");
    assert_eq!(found["costs"][0]["per"], "capture");
    let per_request = json(folder.path(), &["t.strace", "--requests", "2"]);
    assert_eq!(amount(&per_request, "syscalls", &["read"]), Some(1.0));
    assert_eq!(per_request["costs"][0]["per"], "request");
}

#[test]
fn files_of_ff_are_one_capture() {
    let folder = folder(&[("t.7", TRACE), ("t.8", TRACE)]);
    let found = json(folder.path(), &["t.7", "t.8"]);
    assert_eq!(found["source"].as_array().unwrap().len(), 2);
    assert_eq!(amount(&found, "syscalls", &[]), Some(6.0));
}

#[test]
fn text_says_what_it_is_what_it_holds_and_what_is_wrong() {
    let folder = folder(&[("t.strace", TRACE)]);
    let output = inspect(folder.path(), &["t.strace"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(text.starts_with("t.strace: strace log\n"), "{text}");
    for part in ["\n  read ", "\n  3 calls in 2.000000 s", "\nProblems\n"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn samples_and_periods_stand_apart_and_stacks_are_weighed() {
    let perf = "p 10 1.0: 5 cycles:\n\t10 a (/p)\n\np 10 1.1: 7 cycles:\n\t10 a (/p)\n\n";
    let folder = folder(&[("p.txt", perf), ("f.txt", "main;a b 1.5\nmain 2\n")]);
    let found = json(folder.path(), &["p.txt"]);
    assert_eq!(amount(&found, "profile.self", &["cycles", "a", "samples"]), Some(2.0));
    assert_eq!(amount(&found, "profile.self", &["cycles", "a", "cycles"]), Some(12.0));
    let found = json(folder.path(), &["f.txt"]);
    assert_eq!(found["source"][0]["holds"], "folded stacks");
    assert_eq!(amount(&found, "profile.value", &["stacks", "1"]), Some(3.5));
    assert_eq!(amount(&found, "profile.total", &["stacks", "main", "1"]), Some(3.5));
}

#[test]
fn our_own_counters_are_read_from_their_ends() {
    let line = |moment: u64, blocks: u64| {
        format!(
            "{{\"moment\":{moment},\"at\":\"mark\",\"blocks\":{blocks},\"bytes\":{blocks}0,\
             \"frees\":0}}\n"
        )
    };
    let text = line(1, 10) + &line(2, 15) + &line(3, 40);
    let folder = folder(&[("allocations.jsonl", &text), ("one.jsonl", &line(1, 10))]);
    let found = json(folder.path(), &["allocations.jsonl"]);
    assert_eq!(amount(&found, "allocations.blocks", &[]), Some(30.0));
    assert_eq!(amount(&found, "allocations.bytes", &[]), Some(300.0));
    // One sample of a counter says nothing, which is not 0.
    let output = inspect(folder.path(), &["one.jsonl"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("needs two samples"));
}

#[test]
fn fixtures_of_other_tools_are_read() {
    let here = TempDir::new().unwrap();
    for (file, holds, metric) in [
        ("callgrind/plain.out", "callgrind profile", "profile.value"),
        ("dhat/heap.json", "DHAT heap profile", "allocations.blocks"),
        ("pprof/cpu.pprof", "pprof profile", "profile.self"),
        ("gctrace/hold.txt", "Go GC trace", "gc.stop_the_world_share"),
    ] {
        let found = json(here.path(), &[&fixture(file)]);
        assert_eq!(found["source"][0]["holds"], holds, "{file}");
        let metrics = found["costs"].as_array().unwrap().iter().map(|cost| &cost["metric"]);
        assert!(metrics.into_iter().any(|found| found == metric), "{file}");
    }
}

#[test]
fn a_span_is_cut_out_of_what_has_a_timeline_and_refused_elsewhere() {
    let perf = "p 10 1.0: 5 cycles:\n\t10 a (/p)\n\np 10 2.0: 7 cycles:\n\t10 a (/p)\n\n";
    let folder = folder(&[("t.strace", TRACE), ("p.txt", perf), ("f.txt", "main;a 1\n")]);
    let span = ["--since", "1700000011", "--until", "1700000012"];
    let found = json(folder.path(), &[&["t.strace"][..], &span].concat());
    assert_eq!(amount(&found, "syscalls", &[]), Some(1.0));
    let found = json(folder.path(), &["p.txt", "--since", "1.5"]);
    assert_eq!(amount(&found, "profile.value", &["cycles", "samples"]), Some(1.0));
    let found = json(folder.path(), &[&fixture("gctrace/hold.txt"), "--until", "3.1"]);
    assert_eq!(found["source"][0]["about"][0].as_str().unwrap().split(' ').next(), Some("2"));
    let output = inspect(folder.path(), &["f.txt", "--since", "1"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("f.txt: folded stacks: has no timeline"), "{said}");
}

/// A capture of one HTTP connection to port 8080, cut after so many of its frames.
fn capture(frames: std::ops::Range<usize>) -> Vec<u8> {
    let asked = b"GET /a HTTP/1.1\r\n\r\n";
    let answered = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    let mut next = [1_u32, 1];
    let talk: [(usize, u8, &[u8]); 7] = [
        (0, 2, b""),
        (1, 18, b""),
        (0, 24, asked),
        (1, 24, answered),
        (0, 24, asked),
        (1, 24, answered),
        (0, 17, b""),
    ];
    for (index, (from, flags, payload)) in talk.into_iter().enumerate() {
        let ports: [u16; 2] = [40_000, 8080];
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
        next[from] += payload.len() as u32 + u32::from(flags & 3 != 0);
        if frames.contains(&index) {
            for word in [1, index as u32, frame.len() as u32, frame.len() as u32] {
                file.extend(word.to_le_bytes());
            }
            file.extend(frame);
        }
    }
    file
}

#[test]
fn rotated_packet_captures_are_one_whatever_their_order() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("late.pcap"), capture(4..7)).unwrap();
    fs::write(folder.path().join("early.pcap"), capture(0..4)).unwrap();
    let found = json(folder.path(), &["late.pcap", "early.pcap", "--requests", "1"]);
    assert_eq!(amount(&found, "http.responses", &[]), Some(2.0));
    assert_eq!(amount(&found, "http.responses", &["200"]), Some(2.0));
    // The connection was seen from its start on: nothing is said of one that was open before.
    let notes = found["integrity"].to_string();
    assert!(!notes.contains("open before"), "{notes}");
    let about = found["source"][1]["about"].to_string();
    assert!(about.contains("4 packets, 4 of them TCP, from 1970-01-01"), "{about}");
}

#[test]
fn text_fits_a_terminal_and_names_the_file_once() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.pcap"), capture(0..7)).unwrap();
    let output = inspect(folder.path(), &["a.pcap"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(text.matches("a.pcap").count(), 1, "{text}");
    assert!(text.contains("connections: 1 of http"), "{text}");
}

#[test]
fn what_is_gzipped_is_unpacked_and_of_a_cut_file_the_part_that_is_there() {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
    for line in 0..20_000 {
        writeln!(packed, "17000{:05}.5 read(3, \"{line}\", 9) = 1 <0.1>", line).unwrap();
    }
    let packed = packed.finish().unwrap();
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.gz"), &packed).unwrap();
    fs::write(folder.path().join("cut.gz"), &packed[..packed.len() / 2]).unwrap();
    let found = json(folder.path(), &["t.gz"]);
    assert_eq!(amount(&found, "syscalls", &[]), Some(20_000.0));
    let found = json(folder.path(), &["cut.gz"]);
    let part = amount(&found, "syscalls", &[]).unwrap();
    assert!(part > 1_000.0 && part < 20_000.0, "{part}");
    assert!(found["problems"][0].as_str().unwrap().contains("the gzip data is broken or cut"));
}

#[test]
fn nonsense_is_refused_in_one_line() {
    let folder = folder(&[("n.txt", "hello world\n"), ("empty", "")]);
    for (file, why) in [("n.txt", "nothing that is known here"), ("empty", "the file is empty")] {
        let output = inspect(folder.path(), &[file]);
        assert_eq!(output.status.code(), Some(1), "{file}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(why), "{file}");
    }
    for (words, code, why) in [
        (&["missing"][..], 1, "cannot read missing"),
        (&["."][..], 1, "without a manifest.json"),
        (&["n.txt", "--port", "smtp=25"][..], 2, "smtp=25 is not"),
        (&["n.txt", "--since", "2", "--until", "1"][..], 2, "--since lies after --until"),
    ] {
        let output = inspect(folder.path(), words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(why) && said.trim_end().lines().count() == 1, "{words:?}: {said}");
    }
}

#[test]
fn stacks_are_folded_for_flame_graphs_and_nothing_else_is_printed() {
    let sample = "app 7/8 [000] 1.000001: 500 cycles:\n\tabc g+0x2 (/srv/app)\n\
                  \tabd f+0x1 (/srv/app)\n\n";
    let folder = folder(&[("perf.txt", &sample.repeat(2)), ("t.strace", TRACE)]);
    let output = inspect(folder.path(), &["--folded", "perf.txt"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "app;f;g 1000\n");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let refused = inspect(folder.path(), &["--folded", "t.strace"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("only perf script and folded stacks can be folded"), "{said}");
    assert_eq!(refused.status.code(), Some(2));
}
