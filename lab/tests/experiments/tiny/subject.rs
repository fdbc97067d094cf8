//! A small web service of the standard library alone: one page, one thread a connection.
//!
//! `BIND` says where it listens. With `SPAWN=1` it starts a child that leaves its session, as
//! services do that look after themselves. With `SLOW_S` it waits before it listens; with `FAIL=1`
//! it prints two lines and gives up.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

fn main() {
    if env::var_os("FAIL").is_some() {
        eprintln!("the first line of trouble");
        eprintln!("the last line of trouble");
        std::process::exit(7);
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

fn answer(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    loop {
        // A request without a body ends with an empty line.
        while !lines.next()?.ok()?.is_empty() {}
        let page = "a page that is always the same\n";
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", page.len());
        stream.write_all(format!("{head}{page}").as_bytes()).ok()?;
    }
}
