//! The house rules that a machine can keep: who may know whom, how long things may be, and who
//! may open files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may depend on whom. Everything absent is forbidden.
const ALLOWED: [(&str, &[&str]); 6] = [
    ("captures", &[]),
    ("analyses", &["assay-captures"]),
    ("reports", &["assay-analyses", "assay-captures"]),
    ("probes", &["assay-captures"]),
    ("probes/allocation-counter", &[]),
    ("lab", &["assay-captures", "assay-analyses", "assay-reports"]),
];

/// Names that say nothing about what a file holds.
const NAMELESS: [&str; 8] =
    ["utils", "util", "helpers", "common", "shared", "types", "manager", "imp"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("lab lies in the workspace").into()
}

/// Files that git tracks or would track.
fn tracked() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists files");
    assert!(output.status.success(), "git ls-files failed");
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    let files: Vec<PathBuf> = names.lines().map(PathBuf::from).collect();
    files.into_iter().filter(|file| root().join(file).is_file()).collect()
}

fn sources() -> Vec<(PathBuf, String)> {
    let rust = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "rs");
    let files: Vec<PathBuf> = tracked().into_iter().filter(rust).collect();
    assert!(
        files.len() > 50,
        "only {} Rust files found: the rules would hold nothing",
        files.len()
    );
    let text = |file: PathBuf| {
        let text = fs::read_to_string(root().join(&file)).expect("sources are UTF-8");
        (file, text)
    };
    files.into_iter().map(text).collect()
}

fn refuse(what: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{what}:\n  {}", offenders.join("\n  "));
}

#[test]
fn crates_know_only_whom_they_may() {
    let mut offenders = Vec::new();
    for (folder, allowed) in ALLOWED {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml"))
            .expect("every crate has a manifest");
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        for line in dependencies.lines().filter(|line| line.starts_with("assay")) {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if !allowed.contains(&name) {
                offenders.push(format!("{folder} depends on {name}"));
            }
        }
    }
    refuse("arrows that point the wrong way", &offenders);
}

#[test]
fn files_are_short_and_lines_fit() {
    let mut offenders = Vec::new();
    for (file, text) in sources() {
        let lines = text.lines().count();
        if lines > 600 {
            offenders.push(format!("{} has {lines} lines, more than 600", file.display()));
        }
        for (index, line) in text.lines().enumerate() {
            let width = line.chars().count();
            // A line that is a literal cannot be folded without changing what it says; snapshots
            // end theirs with a sign.
            let literal = ["\"", "http", "⏎"].iter().any(|sign| line.contains(sign));
            if width > 100 && !literal {
                offenders.push(format!("{}:{} is {width} wide", file.display(), index + 1));
            }
        }
    }
    refuse("too long", &offenders);
}

#[test]
fn main_is_a_table_of_contents() {
    let text = fs::read_to_string(root().join("lab/src/main.rs")).expect("lab has a main");
    let lines = text.lines().count();
    assert!(lines <= 60, "lab/src/main.rs has {lines} lines, more than 60");
}

#[test]
fn files_are_named_for_what_is_in_them() {
    let nameless = |file: &PathBuf| {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        NAMELESS.contains(&stem)
    };
    let offenders: Vec<String> = (sources().into_iter().map(|(file, _)| file).filter(nameless))
        .map(|file| file.display().to_string())
        .collect();
    refuse("names that say nothing", &offenders);
}

#[test]
fn every_module_says_what_it_is_responsible_for() {
    let offenders: Vec<String> = (sources().into_iter())
        .filter(|(_, text)| !text.trim_start().starts_with("//!"))
        .map(|(file, _)| file.display().to_string())
        .collect();
    refuse("no module comment", &offenders);
}

#[test]
fn only_the_opener_reads_disk_in_captures_and_nothing_does_in_analyses_and_reports() {
    let mut offenders = Vec::new();
    for (file, text) in sources() {
        let path = file.to_string_lossy();
        let pure = ["captures/src/", "analyses/src/", "reports/src/"]
            .iter()
            .any(|folder| path.starts_with(folder));
        let opener = path == "captures/src/capture.rs";
        let test = path.ends_with("tests.rs") || path.contains("/tests/");
        if !pure || opener || test {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
        for word in ["std::fs", "File::open", "SystemTime::now", "Instant::now", "std::env::"] {
            if code.contains(word) {
                offenders.push(format!("{path} uses {word}"));
            }
        }
    }
    refuse("what should be pure is not", &offenders);
}

#[test]
fn analyses_do_not_print_and_reports_do_not_open_the_run() {
    let mut offenders = Vec::new();
    for (file, text) in sources() {
        let path = file.to_string_lossy();
        if path.starts_with("reports/src/") && text.contains("assay_captures::capture") {
            offenders.push(format!("{path} opens captures"));
        }
        if path.starts_with("analyses/src/") && text.contains("serde_json") {
            offenders.push(format!("{path} serialises"));
        }
    }
    refuse("wrong place", &offenders);
}

#[test]
fn nothing_unfinished_is_left_behind() {
    let mut offenders = Vec::new();
    for (file, text) in sources() {
        if file.ends_with("tests/tidy.rs") {
            continue;
        }
        for word in ["todo!(", "unimplemented!(", "dbg!(", "FIXME", "#[ignore"] {
            if text.contains(word) {
                offenders.push(format!("{} holds {word}", file.display()));
            }
        }
    }
    refuse("unfinished", &offenders);
}

#[test]
fn fixtures_and_their_readme_agree() {
    let mut offenders = Vec::new();
    let fixtures = root().join("captures/fixtures");
    for format in fs::read_dir(&fixtures).expect("there are fixtures").flatten() {
        if !format.path().is_dir() {
            continue;
        }
        let folder = format.path();
        let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        for file in fs::read_dir(&folder).expect("a fixture folder").flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if name != "README.md" && !readme.contains(&name) {
                offenders.push(format!("{} is not in its README", file.path().display()));
            }
        }
        let named = readme.split('`').skip(1).step_by(2).filter(|word| {
            word.contains('.') && !word.contains([' ', '/', '*']) && !word.starts_with('-')
        });
        for name in named {
            let looks_like_file = name.split('.').next_back().is_some_and(|ending| {
                ["strace", "pcap", "pcapng", "out", "json", "jsonl", "txt", "pprof", "folded"]
                    .contains(&ending)
            });
            if looks_like_file && !folder.join(name).exists() {
                offenders.push(format!("{}/{name} is in the README only", folder.display()));
            }
        }
    }
    refuse("fixtures without their command, or the reverse", &offenders);
}

#[test]
fn no_file_in_git_is_large_or_knows_this_machine() {
    let mut offenders = Vec::new();
    // Put together here, so that this file does not hold what it looks for.
    let machine =
        [["/work", "/main"].concat(), ["/work", "/shared"].concat(), ["/ro", "ot/"].concat()];
    for file in tracked() {
        let bytes = fs::read(root().join(&file)).expect("tracked files can be read");
        if bytes.len() > 1 << 20 {
            offenders.push(format!("{} has {} bytes", file.display(), bytes.len()));
        }
        let text = String::from_utf8_lossy(&bytes);
        for path in &machine {
            if text.contains(path.as_str()) {
                offenders.push(format!("{} names {path}", file.display()));
            }
        }
    }
    refuse("does not belong in git", &offenders);
}

/// Licences that may be linked, by their SPDX names: none that asks anything of what is linked
/// with it.
const LICENCES: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "0BSD",
];

/// Whether an SPDX expression can be met by the licences above: `AND` binds tighter than `OR`,
/// and a slash is an old way to write `OR`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.trim();
    let outer = outer_split(expression, " OR ").or_else(|| outer_split(expression, "/"));
    if let Some((one, other)) = outer {
        return is_allowed(one) || is_allowed(other);
    }
    if let Some((one, other)) = outer_split(expression, " AND ") {
        return is_allowed(one) && is_allowed(other);
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_allowed(inner),
        None => LICENCES.contains(&expression),
    }
}

/// Splits at the first `word` outside parentheses.
fn outer_split<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let depth = |end: usize| {
        let count = |c: char| text[..end].matches(c).count();
        count('(') - count(')')
    };
    let at = text.match_indices(word).map(|(at, _)| at).find(|&at| depth(at) == 0)?;
    Some((&text[..at], &text[at + word.len()..]))
}

#[test]
fn licence_expressions_are_understood() {
    for good in ["MIT", "MIT/Apache-2.0", "GPL-2.0 OR MIT", "(MIT OR GPL-3.0) AND ISC"] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in ["GPL-3.0-only", "MIT AND GPL-2.0", "AGPL-3.0 OR (MIT AND MPL-2.0)", ""] {
        assert!(!is_allowed(bad), "{bad}");
    }
}

/// `just deny` asks more; it takes minutes to install, so every change is held to this.
#[test]
fn what_is_linked_is_from_crates_io_and_under_a_licence_that_asks_for_nothing() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo tells what the workspace is made of");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    assert!(packages.len() > 50, "only {} packages were looked at", packages.len());
    let mut offenders = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_allowed(licence) {
            offenders.push(format!("{name} is under {licence:?}"));
        }
        // Our own have no source.
        if let Some(source) = package["source"].as_str()
            && source != "registry+https://github.com/rust-lang/crates.io-index"
        {
            offenders.push(format!("{name} comes from {source}"));
        }
    }
    refuse("not to be linked", &offenders);
}
