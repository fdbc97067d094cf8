//! What private services have in common: a user without rights, a random password, a free port,
//! files that nobody else reads, a log, and an end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, User};

use crate::child::Upbringing;
use crate::processes;
use crate::subject::tail;

/// How long a server may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Who runs services: nobody special when we are root, ourselves otherwise.
pub(super) fn service_user() -> Result<Option<User>> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let Some(user) = User::from_name(name)? {
            return Ok(Some(user));
        }
    }
    bail!("there is neither a user postgres nor a user nobody to run services as")
}

/// Makes a folder that only the service's user can enter.
pub(super) fn private_folder(path: &Path, user: Option<&User>) -> Result<()> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(path)
        .with_context(|| format!("cannot make the folder {}", path.display()))?;
    give(path, user)
}

/// Writes a file that only the service's user can read.
pub(super) fn private_file(path: &Path, text: &str, user: Option<&User>) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    };
    write().with_context(|| format!("cannot write {}", path.display()))?;
    give(path, user)
}

fn give(path: &Path, user: Option<&User>) -> Result<()> {
    let Some(user) = user else { return Ok(()) };
    chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
        .with_context(|| format!("cannot give {} to {}", path.display(), user.name))
}

/// 144 random bits as text that needs no quoting anywhere.
pub(super) fn random_password() -> Result<String> {
    let mut bytes = [0; 18];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A port of loopback that nobody listens on right now.
pub(crate) fn free_port() -> Result<u16> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}

/// A server process that ends with this value.
#[derive(Debug)]
pub(super) struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
    stop: Signal,
}

impl Server {
    /// Starts `command`; both its streams go to `log`.
    pub(super) fn start(
        name: &'static str,
        mut command: Command,
        upbringing: Upbringing,
        log: PathBuf,
        stop: Signal,
    ) -> Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&log)
            .with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        upbringing.dying_of(stop).apply(&mut command);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, child, log, stop })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// An error with the last lines of the log when the server has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        let lines = tail(&self.log, 5).join(" / ");
        bail!("{} ended ({status}); its last words: {lines}", self.name)
    }

    /// Returns when something listens on `port`.
    pub(super) async fn wait_for_port(&mut self, port: u16, limit: Duration) -> Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let deadline = Instant::now() + limit;
        loop {
            self.check()?;
            if TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let lines = tail(&self.log, 5).join(" / ");
                bail!("{} does not listen after {limit:?}; its last words: {lines}", self.name);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let pid = Pid::from_raw(self.pid().cast_signed());
        processes::signal_tree(pid, Signal::SIGCONT);
        let _gone = kill(pid, self.stop);
        let deadline = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _gone = self.child.kill();
                let _status = self.child.wait();
                return;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_long_and_never_the_same() {
        let (one, two) = (random_password().unwrap(), random_password().unwrap());
        assert_eq!(one.len(), 36);
        assert_ne!(one, two);
    }
}
