//! Outside tools: where they are, what each is for, and the command that installs it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An outside tool that some part of a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its command.
    pub name: &'static str,
    /// What is lost without it.
    pub lost: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
    /// Where it lies when it is not in `PATH`: the folder is read, and the last version is taken.
    nest: Option<(&'static str, &'static str)>,
}

/// Where Debian keeps each version's server programs.
const POSTGRES_NEST: Option<(&str, &str)> = Some(("/usr/lib/postgresql", "bin"));

/// Makes a cluster.
pub const INITDB: Tool = Tool {
    name: "initdb",
    lost: "no private Postgres can be made (or give a real one by --postgres-url)",
    package: "postgresql",
    nest: POSTGRES_NEST,
};

/// Serves it.
pub const POSTGRES: Tool = Tool { name: "postgres", ..INITDB };

/// Serves Redis.
pub const REDIS_SERVER: Tool = Tool {
    name: "redis-server",
    lost: "no private Redis can be started (or give a real one by --redis-url)",
    package: "redis-server",
    nest: None,
};

/// Records system calls one by one.
pub const STRACE: Tool = Tool {
    name: "strace",
    lost: "system calls of the serial pass have no second instrument; BPF counts remain",
    package: "strace",
    nest: None,
};

/// Samples stacks.
pub const PERF: Tool = Tool {
    name: "perf",
    lost: "CPU time is known by process, not by phase",
    package: "linux-perf",
    nest: None,
};

/// Runs a program on a machine of its own.
pub const VALGRIND: Tool = Tool {
    name: "valgrind",
    lost: "instructions and DHAT's heap profile; the table of a run does not need it",
    package: "valgrind",
    nest: None,
};

/// Builds subjects in Rust, and the probes in a source checkout.
pub const CARGO: Tool = Tool {
    name: "cargo",
    lost: "subjects written in Rust cannot be built",
    package: "cargo",
    nest: None,
};

impl Tool {
    /// Where it is.
    #[must_use]
    pub fn find(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&path).map(|folder| folder.join(self.name));
        in_path.chain(self.in_nest()).find(|file| is_program(file))
    }

    /// Where it is; without it, one line that says which tool, what is lost and what installs it.
    pub fn require(&self) -> anyhow::Result<PathBuf> {
        self.find().ok_or_else(|| anyhow::anyhow!("{}", self.missing()))
    }

    /// The line for a tool that is not there.
    #[must_use]
    pub fn missing(&self) -> String {
        format!("{} is not installed: {}; install it: {}", self.name, self.lost, self.install())
    }

    /// The command that installs it on Debian.
    #[must_use]
    pub fn install(&self) -> String {
        format!("apt-get install {}", self.package)
    }

    /// What it says its version is, in one line.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        let output = Command::new(self.find()?).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    fn in_nest(&self) -> Vec<PathBuf> {
        let Some((nest, inside)) = self.nest else { return Vec::new() };
        let Ok(versions) = std::fs::read_dir(nest) else { return Vec::new() };
        let mut versions: Vec<(u32, PathBuf)> = versions
            .flatten()
            .filter_map(|entry| {
                let version = entry.file_name().to_str()?.parse().ok()?;
                Some((version, entry.path().join(inside).join(self.name)))
            })
            .collect();
        versions.sort();
        versions.into_iter().rev().map(|(_, file)| file).collect()
    }
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_says_what_is_lost_and_what_installs_it() {
        let tool = Tool { name: "no-such-tool", lost: "nothing", package: "none", nest: None };
        assert_eq!(tool.find(), None);
        assert_eq!(
            tool.require().unwrap_err().to_string(),
            "no-such-tool is not installed: nothing; install it: apt-get install none"
        );
    }
}
