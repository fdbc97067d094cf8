//! Functions that the compiler has inlined, read from a program's own line tables. In an optimised
//! program most of a library's time is spent inside of its callers' functions; without this a
//! profile gives it to them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use addr2line::gimli::{self, DW_LANG_Rust};
use addr2line::{FunctionName, Loader};
use anyhow::{Context, Result, ensure};
use assay_captures::perf_script::Frame;
use assay_captures::units::Moment;
use object::{Object, ObjectSegment, ReadCache};

/// The module of a frame that has none of its own, as `perf script` prints it.
pub const INLINED: &str = "inlined";

/// Looks up inlined functions, each address once.
#[derive(Default)]
pub struct Inlines {
    /// Files that were written later than this are not what was recorded.
    recorded: Option<SystemTime>,
    modules: HashMap<String, Module>,
}

/// What is known of one file.
#[derive(Default)]
struct Module {
    program: Option<Program>,
    found: HashMap<u64, Vec<String>>,
}

struct Program {
    tables: Loader,
    segments: Vec<Segment>,
}

/// A part of the file and where it stands in memory. Linkers need not keep the two equal.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    length: u64,
    address: u64,
}

impl Inlines {
    /// For stacks that were recorded from this moment on.
    #[must_use]
    pub fn since(recorded: Moment) -> Self {
        let recorded = SystemTime::UNIX_EPOCH + Duration::from_nanos(recorded.0);
        Self { recorded: Some(recorded), modules: HashMap::new() }
    }

    /// The functions inlined where the frame stands, innermost first; none where its file has no
    /// line tables or is not what was recorded. `returned_to`: the frame's address is where a call
    /// comes back to, which is one instruction further.
    pub fn at(&mut self, frame: &Frame<'_>, returned_to: bool) -> &[String] {
        if frame.is_kernel() || !frame.module.starts_with('/') {
            return &[];
        }
        if !self.modules.contains_key(frame.module) {
            let module = self.module(frame.module);
            self.modules.insert(frame.module.to_owned(), module);
        }
        let Some(module) = self.modules.get_mut(frame.module) else { return &[] };
        let Some(program) = &module.program else { return &[] };
        let offset = frame.address.saturating_sub(u64::from(returned_to));
        module.found.entry(offset).or_insert_with(|| program.inlined(offset).unwrap_or_default())
    }

    fn module(&self, path: &str) -> Module {
        let is_same = fs::metadata(path)
            .and_then(|file| file.modified())
            .is_ok_and(|written| self.recorded.is_none_or(|recorded| written <= recorded));
        let program = if is_same { Program::open(path).ok() } else { None };
        Module { program, found: HashMap::new() }
    }
}

impl Program {
    fn open(path: &str) -> Result<Self> {
        let cache = ReadCache::new(File::open(path).context("cannot open")?);
        let file = object::File::parse(&cache).context("no program")?;
        let segments = file.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            Segment { offset, length, address: segment.address() }
        });
        let segments: Vec<Segment> = segments.collect();
        ensure!(!segments.is_empty(), "nothing to load");
        let tables = Loader::new(path).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(Self { tables, segments })
    }

    /// The names of all but the function that holds the address, which has a symbol.
    fn inlined(&self, offset: u64) -> Option<Vec<String>> {
        let address = address(&self.segments, offset)?;
        let mut frames = self.tables.find_frames(address).ok()?;
        let mut names = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let file = frame.location.and_then(|location| location.file);
            names.push(frame.function.and_then(|name| readable(&name, file)).unwrap_or_default());
        }
        names.pop();
        names.retain(|name| !name.is_empty());
        Some(names)
    }
}

fn address(segments: &[Segment], offset: u64) -> Option<u64> {
    segments.iter().find_map(|segment| {
        let into = offset.checked_sub(segment.offset)?;
        (into < segment.length).then(|| segment.address.checked_add(into))?
    })
}

fn readable<R: gimli::Reader>(name: &FunctionName<R>, file: Option<&str>) -> Option<String> {
    let raw = name.raw_name().ok()?;
    if raw.starts_with("_Z") || raw.starts_with("_R") {
        return Some(assay_captures::demangle::readable(&raw).into_owned());
    }
    // Line tables alone name a function without its path, which its file tells.
    let is_rust = name.language == Some(DW_LANG_Rust);
    let path = file.filter(|_| is_rust).and_then(rust_path);
    Some(match path {
        Some(path) => format!("{path}::{}", without_parameters(&raw)),
        None => raw.into_owned(),
    })
}

/// `poll<alloc::vec::Vec<u8>>` → `poll`: symbols have no generic parameters, either.
fn without_parameters(name: &str) -> &str {
    match name.find('<') {
        Some(open) if open > 0 => &name[..open],
        _ => name,
    }
}

/// The module path of a Rust source file: `…/sqlx-core-0.8.6/src/pool/inner.rs` →
/// `sqlx_core::pool::inner`.
fn rust_path(file: &str) -> Option<String> {
    let (package, module) = file.rsplit_once("/src/")?;
    let module = module.strip_suffix(".rs")?;
    let package = match package.split_once("/git/checkouts/").map(|(_, rest)| rest.split('/')) {
        // The repository's own package: `NAME-HASH/REVISION`.
        Some(mut rest) if rest.clone().count() == 2 => rest.next()?.rsplit_once('-')?.0,
        _ => package.rsplit('/').next()?,
    };
    let mut path = without_version(package).replace('-', "_");
    let parts = module.split('/').filter(|part| !["mod", "lib", "main"].contains(part));
    for part in parts {
        path.push_str("::");
        path.push_str(part);
    }
    Some(path)
}

/// `sqlx-core-0.8.6` → `sqlx-core`.
fn without_version(package: &str) -> &str {
    let version = package.match_indices('-').find(|(at, _)| {
        let digits = package[at + 1..].find(|next: char| !next.is_ascii_digit());
        digits.is_some_and(|end| end > 0 && package[at + 1 + end..].starts_with('.'))
    });
    version.map_or(package, |(at, _)| &package[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_file_tells_the_path_of_its_functions() {
        for (file, expected) in [
            (
                "/x/registry/src/index-1949cf/sqlx-core-0.8.6/src/pool/inner.rs",
                Some("sqlx_core::pool::inner"),
            ),
            ("/rustc/59807616e1fa/library/core/src/result.rs", Some("core::result")),
            ("/x/git/checkouts/tera-0a1b2c/9f8e7d6/src/renderer/mod.rs", Some("tera::renderer")),
            ("/x/git/checkouts/sqlx-0a1b/9f8e/sqlx-core/src/lib.rs", Some("sqlx_core")),
            ("/srv/shop/src/main.rs", Some("shop")),
            ("/x/wasm-2-go-1.0.0-rc.1/src/a.rs", Some("wasm_2_go::a")),
            ("/x/target/release/build/y-1/out/z.rs", None),
            ("/usr/include/c++/12/bits/stl_vector.h", None),
        ] {
            assert_eq!(rust_path(file).as_deref(), expected, "{file}");
        }
        assert_eq!(without_parameters("poll<alloc::vec::Vec<u8>>"), "poll");
        assert_eq!(without_parameters("{closure#0}"), "{closure#0}");
    }

    #[test]
    fn an_offset_becomes_an_address_by_the_segment_that_holds_it() {
        let text = Segment { offset: 0x1f_afe0, length: 0x3e_3f60, address: 0x1f_bfe0 };
        let data = Segment { offset: 0x5d_ef40, length: 0x10, address: 0x5e_0f40 };
        assert_eq!(address(&[text, data], 0x20_7f44), Some(0x20_8f44));
        assert_eq!(address(&[text, data], 0x5d_ef41), Some(0x5e_0f41));
        assert_eq!(address(&[text, data], 0x5d_ef50), None);
        let broken = Segment { offset: 0, length: 8, address: u64::MAX };
        assert_eq!(address(&[broken], 1), None);
    }

    #[test]
    fn files_that_are_gone_changed_or_no_programs_have_no_inlined_functions() {
        let frame = |module| Frame { address: 0x1000, symbol: "f", offset: Some(0), module };
        let mut inlines = Inlines::since(Moment(u64::MAX / 2));
        for module in ["/no/such/file", "/etc/passwd", "[vdso]", "/srv/app (deleted)", ""] {
            assert!(inlines.at(&frame(module), false).is_empty(), "{module}");
        }
        let this = std::env::current_exe().unwrap();
        let mut before = Inlines::since(Moment(0));
        before.at(&frame(this.to_str().unwrap()), false);
        assert!(before.modules.values().all(|module| module.program.is_none()));
        inlines.at(&frame(this.to_str().unwrap()), false);
        assert!(inlines.modules.values().any(|module| module.program.is_some()));
    }
}
