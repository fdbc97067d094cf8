//! `assay observe --follow`: a line each second in a pipe, a picture in a terminal, which gets
//! back what it was.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::{Signal, kill};

use crate::observe_far::{Site, cannot_be_run};

/// Requests from elsewhere, until dropped.
struct Others(Arc<AtomicBool>, Option<thread::JoinHandle<()>>);

impl Others {
    fn ask(address: &str, path: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (address, request) =
            (address.to_owned(), format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"));
        let until = Arc::clone(&stop);
        let asking = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("the service listens");
            let mut answer = [0; 4096];
            while !until.load(Ordering::Relaxed) {
                stream.write_all(request.as_bytes()).expect("it reads");
                assert!(stream.read(&mut answer).expect("it answers") > 0);
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self(stop, Some(asking))
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(asking) = self.1.take() {
            asking.join().expect("each request was answered");
        }
    }
}

fn assay(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.arg("observe").arg("--follow").args(options).env_remove("CARGO");
    command
}

#[test]
fn a_pipe_gets_a_line_each_second_until_it_is_interrupted() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open();
    let (_service, bind) = site.service(&site.postgres.url);
    let _others = Others::ask(&bind, "/flush");
    let port = bind.rsplit(':').next().expect("a port");
    let mut command = assay(&["--port", port]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("assay starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    // The first second may have begun amid a request.
    let line = lines.nth(2).expect("three seconds").expect("text");
    assert!(line.contains("Postgres trips 2.0"), "{line}");
    assert!(!line.contains('\u{1b}'), "{line}");
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    kill(pid, Signal::SIGINT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn the_driver_s_own_requests_can_be_followed_as_well() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open();
    let (_service, bind) = site.service(&site.postgres.url);
    let mut command = assay(&["--url", &format!("http://{bind}/plain")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("assay starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines.nth(1).expect("two seconds").expect("text");
    assert!(line.contains("Postgres trips 1.00 a request"), "{line}");
    drop(lines);
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    kill(pid, Signal::SIGTERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// A terminal of 100 columns and 40 rows: the side of a person, and that of a program.
fn terminal() -> (File, OwnedFd) {
    let (mut person, mut program) = (0, 0);
    let size = libc::winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let (name, modes) = (std::ptr::null_mut(), std::ptr::null());
    // SAFETY: both descriptors are written, and the size is read.
    let made =
        unsafe { libc::openpty(&raw mut person, &raw mut program, name, modes, &raw const size) };
    assert_eq!(made, 0, "a terminal");
    // SAFETY: both are open, and nobody else's.
    unsafe { (File::from_raw_fd(person), OwnedFd::from_raw_fd(program)) }
}

fn modes(terminal: &OwnedFd) -> (libc::tcflag_t, [libc::cc_t; libc::NCCS]) {
    // SAFETY: plain integers, filled in by the call.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is a terminal's.
    let read = unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes) };
    assert_eq!(read, 0);
    (modes.c_lflag, modes.c_cc)
}

#[test]
fn a_terminal_gets_a_picture_and_is_given_back_when_q_is_pressed() {
    if cannot_be_run() {
        return;
    }
    let site = Site::open();
    let (_service, bind) = site.service(&site.postgres.url);
    let _others = Others::ask(&bind, "/flush");
    let port = bind.rsplit(':').next().expect("a port");
    for colour in [true, false] {
        let (mut person, program) = terminal();
        let before = modes(&program);
        let same = || Stdio::from(program.try_clone().expect("a copy"));
        let mut command = assay(&["--port", port]);
        command.stdin(same()).stdout(same()).stderr(Stdio::null()).env_remove("NO_COLOR");
        if !colour {
            command.env("NO_COLOR", "1");
        }
        let mut child = command.spawn().expect("assay starts");
        drop(command);
        let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
        let until = Instant::now() + Duration::from_secs(60);
        while String::from_utf8_lossy(&seen).matches("q or Ctrl-C ends").count() < 3 {
            assert!(Instant::now() < until, "{}", String::from_utf8_lossy(&seen));
            let read = person.read(&mut piece).expect("it writes");
            seen.extend(&piece[..read]);
        }
        let text = String::from_utf8_lossy(&seen).into_owned();
        assert!(text.contains("Postgres round trips"), "{text}");
        assert!(text.contains("GET /flush"), "{text}");
        assert!(text.contains("\u{1b}[?25l"), "the cursor is hidden");
        assert_eq!(text.contains("\u{1b}[1m"), colour, "{text}");
        assert_ne!(modes(&program), before, "keys come one by one");
        person.write_all(b"q").expect("a key is pressed");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        assert_eq!(modes(&program), before, "as it was");
        let read = person.read(&mut piece).expect("the end");
        assert!(String::from_utf8_lossy(&piece[..read]).contains("\u{1b}[?25h"), "the cursor");
    }
}
