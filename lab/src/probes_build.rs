//! Where the probe programs are, and building them when they are not there yet.
//!
//! They lie beside `assay` itself. `cargo run -p assay` builds `assay` alone, so there, and where
//! one is missing inside a source checkout, cargo is asked to build them first: it knows what is
//! out of date.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::child::Upbringing;
use crate::subject::tail;
use crate::ui::Ui;

/// Each probe's question.
pub const QUESTIONS: [&str; 5] = ["wire", "syscalls", "usage", "cpu", "allocations"];

/// The folder that holds the probe programs and the counting library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePrograms {
    folder: PathBuf,
}

impl ProbePrograms {
    /// The command that builds them in a checkout.
    pub const BUILD: &'static str =
        "cargo build --release -p assay-probes -p assay-allocation-counter";

    /// The programs in `folder`.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// The program that answers `question`, such as `wire`.
    #[must_use]
    pub fn program(&self, question: &str) -> PathBuf {
        self.folder.join(format!("assay-probe-{question}"))
    }

    /// The library that counts allocations when it is preloaded.
    #[must_use]
    pub fn allocation_counter(&self) -> PathBuf {
        self.folder.join("libassay_allocation_counter.so")
    }

    /// The files that are not there.
    #[must_use]
    pub fn missing(&self) -> Vec<PathBuf> {
        let programs = QUESTIONS.iter().map(|question| self.program(question));
        programs.chain([self.allocation_counter()]).filter(|file| !file.is_file()).collect()
    }

    /// The programs beside this one.
    pub fn beside_this_program() -> Result<Self> {
        let program = std::env::current_exe().context("cannot find my own program file")?;
        Ok(Self::in_folder(program.parent().unwrap_or(Path::new("/"))))
    }

    /// The programs beside this one, built first under `cargo run` or when one is missing.
    pub async fn find_or_build(ui: &Ui, scratch: &Path) -> Result<Self> {
        let programs = Self::beside_this_program()?;
        let under_cargo = std::env::var_os("CARGO").is_some();
        let missing = programs.missing();
        if !under_cargo && missing.is_empty() {
            return Ok(programs);
        }
        let Some(checkout) = checkout_of(&programs.folder) else {
            if under_cargo && missing.is_empty() {
                return Ok(programs);
            }
            let missing = missing.first().map(|file| file.display().to_string());
            bail!(
                "the probe {} is not there; put the probe programs beside assay ({})",
                missing.unwrap_or_default(),
                Self::BUILD
            );
        };
        programs.build(&checkout, ui, scratch).await?;
        Ok(programs)
    }

    async fn build(&self, checkout: &Path, ui: &Ui, scratch: &Path) -> Result<()> {
        let progress = ui.work("build probes");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let log = scratch.join("build-probes.log");
        let file = std::fs::File::create(&log)
            .with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(cargo);
        command.arg("build").args(["-p", "assay-probes", "-p", "assay-allocation-counter"]);
        if self.folder.ends_with("release") {
            command.arg("--release");
        }
        // Beside this program, wherever the environment would put it otherwise.
        if let Some(target) = self.folder.parent() {
            command.arg("--target-dir").arg(target);
        }
        command.current_dir(checkout).stdin(Stdio::null());
        command.stdout(file.try_clone()?).stderr(file);
        Upbringing::anywhere().apply(&mut command);
        let started = tokio::process::Command::from(command).kill_on_drop(true).spawn();
        let status = started.context("cannot start cargo to build the probes")?.wait().await?;
        if !status.success() {
            let lines = tail(&log, 12).join("\n  ");
            bail!("building the probes failed ({status}):\n  {lines}");
        }
        progress.done("built");
        Ok(())
    }
}

/// The source checkout that this program was built in, or that lies around the working directory.
#[must_use]
pub fn checkout() -> Option<PathBuf> {
    let program = std::env::current_exe().ok().and_then(|program| checkout_of(&program));
    program.or_else(|| checkout_of(&std::env::current_dir().ok()?))
}

/// The checkout that a `target/<profile>` folder belongs to.
fn checkout_of(folder: &Path) -> Option<PathBuf> {
    let is_checkout = |path: &&Path| path.join("probes/allocation-counter/Cargo.toml").is_file();
    let found = folder.ancestors().find(is_checkout).map(Path::to_path_buf);
    // A target folder elsewhere: cargo says where the sources are.
    found.or_else(|| {
        let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
        manifest.ancestors().find(is_checkout).map(Path::to_path_buf)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let programs = ProbePrograms::in_folder(Path::new("/nowhere"));
        assert_eq!(programs.missing().len(), QUESTIONS.len() + 1);
        assert_eq!(programs.program("wire"), Path::new("/nowhere/assay-probe-wire"));
    }

    #[test]
    fn a_target_folder_leads_to_its_checkout() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.parent().unwrap();
        assert_eq!(checkout_of(&root.join("target/debug")).unwrap(), root);
    }
}
