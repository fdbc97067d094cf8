//! The reference subject: a web service whose costs are known, because it does by hand and without
//! a framework exactly what the request asks for.
//!
//! ```text
//! GET /work?trips=4&executions=6     does it
//! GET /truth?trips=4&executions=6    says what /work costs, by Assay's own metrics
//! reference --truth '/work?trips=4'  says the same without a server
//! ```
//!
//! `BIND` says where it listens, `DATABASE_URL` and `REDIS_URL` whom it talks to, `PROCESSES` how
//! many processes serve (1), and `LEDGER` the file in which it keeps what it truly used.

mod burn;
mod calls;
mod connection;
mod ledger;
mod partner;
mod postgres;
mod redis;
mod scram;
mod socket;
mod truth;
mod work;

use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use connection::{Connection, Services};
use ledger::Ledger;
use work::Work;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let done = match arguments.as_slice() {
        [_] => serve(),
        [_, option, path] if option == "--truth" => tell(path),
        _ => Err(io::Error::other("usage: reference [--truth PATH]")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reference: {error}");
            ExitCode::FAILURE
        }
    }
}

fn tell(path: &str) -> io::Result<()> {
    let work = Work::parse(path).map_err(io::Error::other)?;
    print!("{}", truth::lines(&work));
    Ok(())
}

fn serve() -> io::Result<()> {
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| io::Error::other(format!("{name} is not set")))
    };
    let services = Services {
        postgres: std::env::var("DATABASE_URL").ok(),
        redis: std::env::var("REDIS_URL").ok(),
        iterations: burn::iterations_per_microsecond(),
    };
    let ledger = match std::env::var("LEDGER") {
        Ok(path) => Some(Ledger::open(&path)?),
        Err(_) => None,
    };
    let listener = TcpListener::bind(variable("BIND")?)?;
    let processes = std::env::var("PROCESSES").ok().and_then(|number| number.parse().ok());
    let processes: u32 = processes.unwrap_or(1);
    if processes > 1 && prefork(processes)? {
        return wait_for_ever();
    }
    accept(&listener, Arc::new(services), ledger.map(Arc::new))
}

/// One thread a connection; each lives as long as its connection.
fn accept(
    listener: &TcpListener,
    services: Arc<Services>,
    ledger: Option<Arc<Ledger>>,
) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept()?;
        let (services, ledger) = (Arc::clone(&services), ledger.clone());
        thread::Builder::new().spawn(move || {
            let ended = Connection::new(stream, services, ledger).and_then(Connection::serve);
            if let Err(error) = ended {
                eprintln!("reference: a connection ended: {error}");
            }
        })?;
    }
}

/// Starts processes that all accept from one socket. True in the parent, which serves nothing.
fn prefork(processes: u32) -> io::Result<bool> {
    for _ in 0..processes {
        // SAFETY: no other thread runs yet, so the child may do whatever the parent may.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: it only says that the child dies with its parent.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                return Ok(false);
            }
            _ => {}
        }
    }
    Ok(true)
}

fn wait_for_ever() -> io::Result<()> {
    loop {
        // SAFETY: waits for any child; nothing is written.
        if unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {
            return Err(io::Error::other("a serving process has ended"));
        }
    }
}
