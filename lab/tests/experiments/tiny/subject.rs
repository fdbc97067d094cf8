//! A small web service of the standard library alone: one page, one thread a connection.
//!
//! `BIND` says where it listens. With `SPAWN=1` it starts a child that leaves its session, as
//! services do that look after themselves. With `SLOW_S` it waits before it listens; with `FAIL=1`
//! it prints two lines and gives up; with `DIE_AFTER` it does so after that many answers. `PAGE`
//! is what it answers.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn main() {
    if env::var_os("FAIL").is_some() {
        give_up();
    }
    if env::var_os("SPAWN").is_some() {
        Command::new("setsid").args(["sleep", "600"]).spawn().expect("setsid is there");
    }
    if let Ok(seconds) = env::var("SLOW_S") {
        thread::sleep(Duration::from_secs(seconds.parse().expect("SLOW_S is a number")));
    }
    let listener = TcpListener::bind(env::var("BIND").expect("BIND is set")).expect("can listen");
    for stream in listener.incoming().flatten() {
        thread::spawn(move || answer(stream));
    }
}

fn give_up() -> ! {
    eprintln!("the first line of trouble");
    eprintln!("the last line of trouble");
    std::process::exit(7);
}

fn answer(mut stream: TcpStream) -> Option<()> {
    static ANSWERS: AtomicU64 = AtomicU64::new(0);
    stream.set_nodelay(true).ok()?;
    let last = env::var("DIE_AFTER").ok().and_then(|number| number.parse::<u64>().ok());
    let page = env::var("PAGE").unwrap_or("a page that is always the same".to_owned()) + "\n";
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    loop {
        // A request without a body ends with an empty line.
        while !lines.next()?.ok()?.is_empty() {}
        if last.is_some_and(|last| ANSWERS.fetch_add(1, Ordering::Relaxed) >= last) {
            give_up();
        }
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", page.len());
        stream.write_all(format!("{head}{page}").as_bytes()).ok()?;
    }
}
