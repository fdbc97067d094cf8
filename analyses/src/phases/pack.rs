//! One pack of rules: a TOML file.
//!
//! ```text
//! # Programs and libraries that the pack is about, by file name or by a beginning that ends in
//! # `*`; any where this is left out.
//! programs = ["postgres", "libpq.so*"]
//!
//! [[phase]]
//! name = "execute"
//! # Whole names, or beginnings that end in `*`. A path stands for whatever begins with it.
//! functions = ["PortalRun", "Exec*"]
//! # Kept out of the view in which phases sum to the whole.
//! only_inclusive = false
//! ```

use std::collections::HashMap;

use serde::Deserialize;

use super::rules::RuleError;

/// A pack as it is typed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackFile {
    #[serde(default)]
    programs: Vec<String>,
    phase: Vec<PhaseFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseFile {
    name: String,
    functions: Vec<String>,
    #[serde(default)]
    only_inclusive: bool,
}

/// Rules by function: whole names, and beginnings.
#[derive(Clone, Debug)]
pub(super) struct Pack {
    programs: Vec<String>,
    phases: Vec<Phase>,
    names: HashMap<String, usize>,
    /// In the order of the file; the first that fits holds.
    beginnings: Vec<(String, usize)>,
}

/// A phase of a pack.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) only_inclusive: bool,
}

impl Pack {
    pub(super) fn read(text: &str) -> Result<Self, RuleError> {
        let file: PackFile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count() + 1;
            RuleError(format!("line {line}: {}", error.message()))
        })?;
        let mut pack = Self {
            programs: file.programs,
            phases: Vec::new(),
            names: HashMap::new(),
            beginnings: Vec::new(),
        };
        for (index, phase) in file.phase.into_iter().enumerate() {
            if phase.functions.is_empty() {
                return Err(RuleError(format!("phase {:?} has no functions", phase.name)));
            }
            for function in phase.functions {
                match function.strip_suffix('*') {
                    Some(beginning) => pack.beginnings.push((beginning.to_owned(), index)),
                    None => {
                        pack.names.entry(function).or_insert(index);
                    }
                }
            }
            let PhaseFile { name, only_inclusive, .. } = phase;
            pack.phases.push(Phase { name, only_inclusive });
        }
        Ok(pack)
    }

    /// Whether the pack has rules for code of this file.
    pub(super) fn is_about(&self, module: &str) -> bool {
        let program = module.rsplit('/').next().unwrap_or_default();
        let is_it = |known: &String| match known.strip_suffix('*') {
            Some(beginning) => program.starts_with(beginning),
            None => known == program,
        };
        self.programs.is_empty() || self.programs.iter().any(is_it)
    }

    /// The phase of a function: by its name, else by the path that it begins with.
    pub(super) fn phase(&self, name: &str, home: &str) -> Option<&Phase> {
        let whole = self.names.get(name).or_else(|| self.names.get(home)).copied();
        let index = whole.or_else(|| {
            let fits = |(beginning, _): &&(String, usize)| home.starts_with(beginning.as_str());
            self.beginnings.iter().find(fits).map(|&(_, index)| index)
        });
        self.phases.get(index?)
    }
}
