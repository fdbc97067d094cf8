//! Whether a function is the program's own rather than a library's.

use assay_captures::perf_script::Frame;

use super::home::home;

/// What stands for the file of an inlined function: it is in the file of whoever inlined it.
const INLINED: &str = "inlined";
/// Programs that run the code of others: what is their own is not the service's.
const RUNTIMES: [&str; 8] = ["node", "nodejs", "deno", "bun", "java", "ruby", "php", "beam_smp"];
/// The package of a Go program's own functions, whose symbols begin with it.
const GO: &str = "main.";

/// Whether the first frame's function belongs to the program that it is in: in Rust when its path
/// begins with the program's name, in Go when it is of the package `main`. `frames` go on up to
/// the root.
pub(super) fn is_own(frames: &[Frame<'_>]) -> bool {
    let Some(frame) = frames.first() else { return false };
    if frame.is_kernel() {
        return false;
    }
    if frame.symbol.starts_with(GO) {
        return true;
    }
    let program = crate_name(holder(frames));
    let root = home(frame.symbol).split("::").next().unwrap_or_default();
    // A C program may well have a function of its own name, which says nothing.
    !RUNTIMES.contains(&program.as_str())
        && !program.is_empty()
        && root == program
        && frame.symbol.contains("::")
}

/// The file that holds the code of the first frame; empty where nothing says.
pub(super) fn holder<'a>(frames: &[Frame<'a>]) -> &'a str {
    frames.iter().map(|frame| frame.module).find(|&module| module != INLINED).unwrap_or_default()
}

/// The crate that a program was built from: `/target/release/deps/axum_sqlx-0f3c…` is
/// `axum_sqlx`, as is `axum-sqlx`.
fn crate_name(module: &str) -> String {
    let file = module.rsplit('/').next().unwrap_or_default();
    let is_hash = |end: &str| end.len() == 16 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = match file.rsplit_once('-') {
        Some((name, end)) if is_hash(end) => name,
        _ => file,
    };
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(frames: &[(&str, &str)]) -> bool {
        let frame = |&(symbol, module)| Frame { address: 1, symbol, offset: None, module };
        is_own(&frames.iter().map(frame).collect::<Vec<_>>())
    }

    #[test]
    fn a_crate_is_known_by_the_name_of_its_program() {
        let program = "/srv/target/release/axum-sqlx";
        assert!(own(&[("axum_sqlx::compute::sum", program)]));
        assert!(own(&[("<axum_sqlx::data::Post as core::fmt::Display>::fmt", program)]));
        assert!(own(&[("axum_sqlx::page", "/srv/deps/axum_sqlx-0123456789abcdef")]));
        assert!(!own(&[("sqlx_core::row", program)]));
        assert!(!own(&[("axum_sqlx::page", "/usr/lib/other.so")]));
        assert!(!own(&[("tool", "/usr/bin/tool")]));
        assert!(!own(&[("f", "")]) && !own(&[]));
        assert!(!own(&[("node::StreamBase::Write", "/usr/bin/node")]), "not the service's");
    }

    #[test]
    fn an_inlined_function_is_in_the_file_of_its_caller() {
        let program = "/srv/axum-sqlx";
        assert!(own(&[("axum_sqlx::page", INLINED), ("axum::call", program)]));
        assert!(!own(&[("axum_sqlx::page", INLINED), ("f", "/usr/lib/libc.so.6")]));
        assert!(!own(&[("axum_sqlx::page", INLINED)]));
    }

    #[test]
    fn a_go_program_is_its_package_main() {
        let program = "/srv/shop";
        assert!(own(&[("main.(*server).index", program)]));
        assert!(own(&[("main.main.func1", program)]));
        assert!(!own(&[("net/http.(*conn).serve", program)]));
        assert!(!own(&[("main", program)]));
    }
}
