//! Packs of rules, and what they say of a stack.

use std::collections::{BTreeSet, HashMap};

use assay_captures::perf_script::Frame;
use serde::Deserialize;

use super::home::home;
use super::{KERNEL_OTHER, OTHER};

/// The packs that ship, the more particular first.
const PACKS: [&str; 3] = [
    include_str!("../../phases/kernel.toml"),
    include_str!("../../phases/allocators.toml"),
    include_str!("../../phases/rust-web.toml"),
];

/// A pack as it is typed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackFile {
    phase: Vec<PhaseFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseFile {
    name: String,
    functions: Vec<String>,
}

/// Why a pack cannot be used: one line, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(pub String);

/// Rules by function: whole names, and beginnings that end in `*`.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    phases: Vec<String>,
    names: HashMap<String, usize>,
    /// Sorted by pack; the first that fits holds.
    beginnings: Vec<(String, usize)>,
}

impl Rules {
    /// The packs that ship.
    ///
    /// # Errors
    /// When one of them is not valid: a mistake in this crate, which a test rules out.
    pub fn shipped() -> Result<Self, RuleError> {
        Self::with(&[])
    }

    /// Packs of one's own, which come before those that ship.
    ///
    /// # Errors
    /// When a pack is not valid TOML, has an unknown key, or a phase without functions.
    pub fn with(packs: &[&str]) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        for pack in packs.iter().chain(&PACKS) {
            rules.add(pack)?;
        }
        Ok(rules)
    }

    fn add(&mut self, pack: &str) -> Result<(), RuleError> {
        let pack: PackFile = toml::from_str(pack).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = pack.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count() + 1;
            RuleError(format!("line {line}: {}", error.message()))
        })?;
        for phase in pack.phase {
            if phase.functions.is_empty() {
                return Err(RuleError(format!("phase {:?} has no functions", phase.name)));
            }
            let known = self.phases.iter().position(|name| *name == phase.name);
            let index = known.unwrap_or_else(|| {
                self.phases.push(phase.name.clone());
                self.phases.len() - 1
            });
            for function in phase.functions {
                match function.strip_suffix('*') {
                    Some(beginning) => self.beginnings.push((beginning.to_owned(), index)),
                    None => {
                        self.names.entry(function).or_insert(index);
                    }
                }
            }
        }
        Ok(())
    }

    /// The phase that the sample's time goes to: that of the first frame from the leaf up that a
    /// rule knows. Kernel time without one is [`KERNEL_OTHER`], all else [`OTHER`].
    #[must_use]
    pub fn exclusive(&self, frames: &[Frame<'_>]) -> &str {
        let kernel = frames.iter().take_while(|frame| frame.is_kernel()).count();
        let in_kernel = frames[..kernel].iter().find_map(|frame| self.phase(frame));
        match in_kernel {
            Some(phase) => phase,
            None if kernel > 0 => KERNEL_OTHER,
            None => frames.iter().find_map(|frame| self.phase(frame)).unwrap_or(OTHER),
        }
    }

    /// Every phase that stands in the stack.
    #[must_use]
    pub fn inclusive(&self, frames: &[Frame<'_>]) -> BTreeSet<&str> {
        frames.iter().filter_map(|frame| self.phase(frame)).collect()
    }

    fn phase(&self, frame: &Frame<'_>) -> Option<&str> {
        let name = frame.symbol.split('@').next().unwrap_or_default();
        let home = home(name);
        let index =
            self.names.get(name).or_else(|| self.names.get(home)).copied().or_else(|| {
                let fits = |(beginning, _): &&(String, usize)| home.starts_with(beginning.as_str());
                self.beginnings.iter().find(fits).map(|&(_, index)| index)
            })?;
        self.phases.get(index).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames from the leaf up; those that begin with `k:` are the kernel's.
    fn frames<'a>(names: &[&'a str]) -> Vec<Frame<'a>> {
        let frame = |name: &&'a str| match name.strip_prefix("k:") {
            Some(symbol) => Frame {
                address: 0xffff_ffff_8000_0000,
                symbol,
                offset: None,
                module: "[kernel.kallsyms]",
            },
            None => Frame { address: 1, symbol: name, offset: None, module: "/srv/app" },
        };
        names.iter().map(frame).collect()
    }

    fn exclusive(names: &[&str]) -> String {
        Rules::shipped().unwrap().exclusive(&frames(names)).to_owned()
    }

    #[test]
    fn kernel_time_goes_to_its_system_call_never_to_a_leaf() {
        let send = ["k:_raw_spin_unlock_irqrestore", "k:tcp_write_xmit", "k:__x64_sys_sendto"];
        assert_eq!(
            exclusive(&[&send[..], &["send", "sqlx_core::net::write"]].concat()),
            "kernel: send"
        );
        assert_eq!(exclusive(&["k:finish_task_switch", "k:schedule", "main"]), KERNEL_OTHER);
    }

    #[test]
    fn library_code_belongs_to_its_caller_and_an_allocator_to_itself() {
        let tera = "tera::renderer::processor::Processor::render_node";
        assert_eq!(exclusive(&["core::fmt::write", "alloc::fmt::format", tera]), "Tera + serde");
        assert_eq!(exclusive(&["_int_malloc", "malloc", "sqlx_postgres::row"]), "allocator");
        assert_eq!(exclusive(&["core::ptr::drop_in_place<sqlx_core::X>", tera]), "Tera + serde");
        assert_eq!(exclusive(&["axum_sqlx::compute::sum", "main"]), OTHER);
    }

    #[test]
    fn the_inclusive_view_overlaps() {
        let rules = Rules::shipped().unwrap();
        let stack = frames(&["malloc", "sqlx_core::row", "axum::handler", "tokio::runtime::run"]);
        let phases: Vec<&str> = rules.inclusive(&stack).into_iter().collect();
        assert_eq!(phases, ["Tokio", "allocator", "hyper + axum", "sqlx"]);
    }

    #[test]
    fn own_packs_come_first_and_mistakes_are_named_by_line() {
        let own = "[[phase]]\nname = \"prices\"\nfunctions = [\"shop::price*\", \"malloc\"]\n";
        let rules = Rules::with(&[own]).unwrap();
        assert_eq!(rules.exclusive(&frames(&["malloc"])), "prices");
        assert_eq!(rules.exclusive(&frames(&["shop::prices::sum"])), "prices");
        let error = Rules::with(&["[[phase]]\nname = \"x\"\nfunction = []\n"]).unwrap_err();
        assert!(error.to_string().starts_with("line 3: unknown field `function`"), "{error}");
        let error = Rules::with(&["[[phase]]\nname = \"x\"\nfunctions = []\n"]).unwrap_err();
        assert_eq!(error.to_string(), "phase \"x\" has no functions");
    }
}
