//! The grammar that all probes share.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use assay_captures::ids::{Pid, Port, Role};
use assay_captures::manifest::Target;
use serde::Serialize;

/// The options that every probe has. Flatten it into the probe's own.
#[derive(Clone, Debug, clap::Args)]
pub struct SessionArgs {
    /// The folder that the capture goes to; made if it is not there, and empty if it is
    #[arg(long, value_name = "DIR", required_unless_present = "describe")]
    pub out: Option<PathBuf>,

    /// Who is watched: `ROLE:pid=N[,pid=N][,port=N][,path=P]`, ROLE one of subject, postgres,
    /// pooler, redis, load
    ///
    /// A pid stands for the process and all its descendants, now and later. A path is that of the
    /// Unix socket that it listens on; the port then stands for it in the capture.
    #[arg(long = "target", value_name = "TARGET", value_parser = target)]
    pub targets: Vec<Target>,

    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,

    /// Be ready, but do not record until told `on`
    #[arg(long)]
    pub off: bool,

    /// Print what this probe answers, needs and costs, as one JSON object
    #[arg(long)]
    pub describe: bool,
}

impl SessionArgs {
    /// The root pids of all targets; an error where there is none, or one that does not exist.
    pub fn require_pids(&self) -> Result<Vec<Pid>> {
        let pids: Vec<Pid> = self.targets.iter().flat_map(|target| target.pids.clone()).collect();
        ensure!(!pids.is_empty(), "no process to watch: give --target ROLE:pid=N");
        for target in &self.targets {
            for pid in &target.pids {
                ensure!(
                    std::path::Path::new(&format!("/proc/{}", pid.0)).exists(),
                    "there is no process {} (target {}); is it still running?",
                    pid.0,
                    target.role.word()
                );
            }
        }
        Ok(pids)
    }

    /// The ports of all targets; an error where there is none.
    pub fn require_ports(&self) -> Result<Vec<Port>> {
        let ports: Vec<Port> = self.targets.iter().filter_map(|target| target.port).collect();
        ensure!(!ports.is_empty(), "no port to watch: give --target ROLE:port=N");
        Ok(ports)
    }
}

/// What `--describe` prints.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Description {
    /// The question that the probe answers, such as `syscalls`; also its name in the manifest.
    pub question: &'static str,
    /// What it records, in one line.
    pub summary: &'static str,
    /// The outside programs that it can use; none are needed where it is empty.
    pub tools: &'static [&'static str],
    /// The capabilities that it needs, as `setcap` spells them.
    pub rights: &'static [&'static str],
    /// Those that only a part of it needs.
    pub more_rights: &'static [&'static str],
    /// That part, as the subject of a sentence; empty where there is none.
    pub more: &'static str,
    /// What is not measured without these rights, as the subject of a sentence; empty where none
    /// is needed.
    pub without: &'static str,
    /// What it costs the service, in words.
    pub cost: &'static str,
}

/// Reads `ROLE:pid=N[,pid=N][,port=N][,path=P]`.
fn target(text: &str) -> Result<Target> {
    let Some((word, fields)) = text.split_once(':') else {
        bail!("expected ROLE:pid=N[,port=N], such as subject:pid=123,port=8080");
    };
    let Some(role) = Role::from_word(word) else {
        bail!("unknown role `{word}`: use subject, postgres, pooler, redis or load");
    };
    let mut target = Target { role, pids: Vec::new(), port: None, path: None };
    for field in fields.split(',') {
        match field.split_once('=') {
            Some(("pid", number)) => target.pids.push(Pid(positive(number, i32::MAX as u32)?)),
            Some(("port", number)) if target.port.is_none() => {
                target.port = Some(Port(positive(number, 65_535)? as u16));
            }
            Some(("port", _)) => bail!("one port a target: give the other its own --target"),
            Some(("path", path)) if target.path.is_none() && !path.is_empty() => {
                target.path = Some(path.to_owned());
            }
            _ => bail!("unknown field `{field}`: use pid=N, port=N or path=P"),
        }
    }
    Ok(target)
}

fn positive(text: &str, largest: u32) -> Result<u32> {
    match text.parse() {
        Ok(number) if (1..=largest).contains(&number) => Ok(number),
        _ => bail!("`{text}` is not a number from 1 to {largest}"),
    }
}

fn seconds(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 && number < 1e9 => Ok(number),
        _ => bail!("`{text}` is not a positive number of seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Args {
        #[command(flatten)]
        session: SessionArgs,
    }

    fn parse(line: &str) -> Result<SessionArgs, String> {
        <Args as clap::Parser>::try_parse_from(line.split_whitespace())
            .map(|args| args.session)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_target_has_a_role_pids_and_a_port() {
        let args = parse("probe --out x --target subject:pid=12,pid=13,port=8080 --duration 2.5");
        let args = args.unwrap();
        let target = &args.targets[0];
        assert_eq!(target.role, Role::Subject);
        assert_eq!(target.pids, [Pid(12), Pid(13)]);
        assert_eq!(target.port, Some(Port(8080)));
        assert_eq!(args.duration, Some(2.5));
        assert!(!args.off);
    }

    #[test]
    fn wrong_targets_say_what_is_right() {
        for (target, said) in [
            ("subject", "expected ROLE:pid=N"),
            ("sugar:pid=1", "unknown role `sugar`: use subject, postgres, pooler, redis or load"),
            ("subject:pid=0", "`0` is not a number from 1 to 2147483647"),
            ("subject:port=65536", "`65536` is not a number from 1 to 65535"),
            ("subject:port=1,port=2", "one port a target"),
            ("subject:name=x", "unknown field `name=x`: use pid=N, port=N or path=P"),
        ] {
            let error = parse(&format!("probe --out x --target {target}")).unwrap_err();
            assert!(error.contains(said), "{target}: {error}");
        }
    }

    #[test]
    fn a_folder_is_needed_unless_the_probe_only_describes_itself() {
        assert!(parse("probe").unwrap_err().contains("--out"));
        assert!(parse("probe --describe").unwrap().describe);
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let args = parse("probe --out x --target redis:pid=2147483647").unwrap();
        let error = args.require_pids().unwrap_err().to_string();
        assert!(error.starts_with("there is no process 2147483647 (target redis)"), "{error}");
        assert!(args.require_ports().is_err());
    }
}
