//! The preloaded counter and its probe, on a child whose allocations are known.
//!
//! The child is this test program itself, told by its environment to play that part.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use assay_captures::allocation_counts::Sample;
use assay_captures::capture;

const PART: &str = "ASSAY_TEST_ALLOCATES";
const BLOCKS: usize = 1000;
const THREADS: usize = 4;

/// The library, built beside this test by the same `cargo test`.
fn library() -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_assay-probe-allocations"))
        .parent()
        .expect("a program lies in a folder");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--package", "assay-allocation-counter"])
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the counter library does not build");
    target.join("libassay_allocation_counter.so")
}

/// Waits for a byte on standard input, without allocating.
fn wait() {
    let mut byte = 0u8;
    // SAFETY: one byte of a live local.
    unsafe { libc::read(0, (&raw mut byte).cast(), 1) };
}

/// Says that a stage is over, without allocating.
fn tell() {
    // SAFETY: one byte of a static string.
    unsafe { libc::write(2, c"x".as_ptr().cast(), 1) };
}

fn allocate() {
    for _ in 0..BLOCKS {
        drop(black_box(Box::new([0u8; 100])));
    }
}

/// Not a test but the child: does nothing unless it was started as one.
#[test]
fn child() {
    let Ok(part) = std::env::var(PART) else { return };
    tell();
    wait();
    match part.as_str() {
        "boxes" => allocate(),
        "realloc" => {
            // SAFETY: a block is resized and freed once; the pointers are the allocator's.
            unsafe {
                let mut block = libc::malloc(100);
                for size in [200, 300, 50] {
                    block = libc::realloc(black_box(block), size);
                }
                libc::free(block);
            }
        }
        "fork" => {
            // SAFETY: the forked child allocates through the C library and leaves at once.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    allocate();
                    libc::_exit(0);
                }
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
        other => panic!("unknown part {other}"),
    }
    tell();
    wait();
}

/// Not a test but a child with threads: they wait for each other between two stages.
#[test]
fn threaded_child() {
    if std::env::var(PART).as_deref() != Ok("threads") {
        return;
    }
    let barrier = std::sync::Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                barrier.wait();
                allocate();
                barrier.wait();
                // A thread that ends frees what the runtime gave it.
                barrier.wait();
            });
        }
        barrier.wait();
        tell();
        wait();
        barrier.wait();
        barrier.wait();
        tell();
        wait();
        barrier.wait();
    });
}

struct Subject {
    child: Child,
}

impl Subject {
    fn start(test: &str, part: &str, counter: &Path) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env("LD_PRELOAD", library())
            .env("ASSAY_ALLOCATION_COUNTER", counter)
            .env(PART, part)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the child starts");
        Self { child }
    }

    /// Until the child says that it has reached the end of a stage.
    fn stage_over(&mut self) {
        let mut byte = [0];
        let said = self.child.stderr.as_mut().expect("piped").read_exact(&mut byte);
        said.expect("the child is alive");
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().expect("piped").write_all(b"x").expect("the child listens");
    }
}

/// Runs a child and returns what its known stage added: blocks, bytes, frees.
fn counted(test: &str, part: &str) -> (u64, u64, u64) {
    let folder = std::env::temp_dir().join(format!("assay-test-{part}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let counter = folder.join("counter");
    let mut subject = Subject::start(test, part, &counter);
    subject.stage_over();
    let mut probe = Command::new(env!("CARGO_BIN_EXE_assay-probe-allocations"))
        .args(["--out".as_ref(), folder.join("capture").as_os_str()])
        .args(["--counter".as_ref(), counter.as_os_str()])
        .args(["--target", &format!("subject:pid={}", subject.child.id())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the probe starts");
    let mut commands = probe.stdin.take().expect("piped");
    let mut replies = BufReader::new(probe.stdout.take().expect("piped")).lines();
    let mut reply = |word: &str| {
        let line = replies.next().expect("a reply").expect("text");
        assert!(line.contains(word), "{line}");
    };
    reply("ready");
    writeln!(commands, "mark").expect("the probe listens");
    reply("mark");
    subject.go_on();
    subject.stage_over();
    writeln!(commands, "mark").expect("the probe listens");
    reply("mark");
    drop(commands);
    reply("complete");
    assert!(probe.wait().expect("the probe ends").success());
    subject.go_on();
    subject.child.wait().expect("the child ends");
    let samples: Vec<Sample> =
        capture::json_lines(&folder.join("capture/allocations.jsonl")).expect("samples");
    std::fs::remove_dir_all(&folder).expect("removed");
    let [_, before, after, _] = samples[..] else { panic!("{samples:?}") };
    (after.blocks - before.blocks, after.bytes - before.bytes, after.frees - before.frees)
}

#[test]
fn every_block_and_byte_of_a_thread_is_counted_once() {
    let blocks = BLOCKS as u64;
    assert_eq!(counted("child", "boxes"), (blocks, blocks * 100, blocks));
}

#[test]
fn a_realloc_is_a_block_of_its_whole_new_size() {
    assert_eq!(counted("child", "realloc"), (4, 100 + 200 + 300 + 50, 4));
}

#[test]
fn threads_and_forked_processes_add_to_the_same_counters() {
    let blocks = BLOCKS as u64;
    assert_eq!(counted("child", "fork"), (blocks, blocks * 100, blocks));
    let all = blocks * THREADS as u64;
    assert_eq!(counted("threaded_child", "threads"), (all, all * 100, all));
}

#[test]
fn a_program_without_the_counter_is_refused() {
    let folder = std::env::temp_dir().join(format!("assay-test-none-{}", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_assay-probe-allocations"))
        .args(["--out".as_ref(), folder.as_os_str()])
        .args(["--counter".as_ref(), folder.join("counter").as_os_str()])
        .args(["--target", &format!("subject:pid={}", std::process::id())])
        .stdin(Stdio::null())
        .output()
        .expect("the probe starts");
    let _gone = std::fs::remove_dir_all(&folder);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("does not call the C library's malloc"), "{said}");
}
