//! What the rules of all packs together say of a stack.

use std::collections::BTreeSet;

use assay_captures::perf_script::Frame;

use super::home::home;
use super::own::{holder, is_own};
use super::pack::{Pack, Phase};
use super::{KERNEL, KERNEL_OTHER, OTHER, OWN};

/// The packs that ship, the more particular first.
const PACKS: [&str; 6] = [
    include_str!("../../phases/kernel.toml"),
    include_str!("../../phases/system-calls.toml"),
    include_str!("../../phases/allocators.toml"),
    include_str!("../../phases/postgres.toml"),
    include_str!("../../phases/rust-web.toml"),
    include_str!("../../phases/go-web.toml"),
];

/// Why a pack cannot be used: one line, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(pub String);

/// Rules of several packs; of those that fit a function, the first holds.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    packs: Vec<Pack>,
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
        let packs = packs.iter().chain(&PACKS).map(|text| Pack::read(text));
        Ok(Self { packs: packs.collect::<Result<_, _>>()? })
    }

    /// The phase that the sample's time goes to: that of the first frame from the leaf up that a
    /// rule knows, or that is the program's [own](OWN). Kernel time without one belongs to the
    /// system call that the program has just made, else to [`KERNEL_OTHER`]; all else is
    /// [`OTHER`].
    #[must_use]
    pub fn exclusive(&self, frames: &[Frame<'_>]) -> &str {
        let (kernel, program) =
            frames.split_at(frames.iter().take_while(|frame| frame.is_kernel()).count());
        if kernel.is_empty() {
            return self.first(program).unwrap_or(OTHER);
        }
        let caller = || self.first(&program[..program.len().min(1)]);
        self.first(kernel)
            .or_else(|| caller().filter(|phase| phase.starts_with(KERNEL)))
            .unwrap_or(KERNEL_OTHER)
    }

    fn first(&self, frames: &[Frame<'_>]) -> Option<&str> {
        let mut own = None;
        for at in 0..frames.len() {
            let here = &frames[at..];
            match self.phase(here).filter(|phase| !phase.only_inclusive) {
                // A rule for own functions tells more of what they call than that it is own.
                Some(phase) if own.is_none() || is_own(here) => return Some(&phase.name),
                Some(_) => break,
                None if is_own(here) => own = Some(OWN),
                None => {}
            }
        }
        own
    }

    /// Every phase that stands in the stack.
    #[must_use]
    pub fn inclusive(&self, frames: &[Frame<'_>]) -> BTreeSet<&str> {
        let known = |at: usize| {
            let here = &frames[at..];
            let phase = self.phase(here).map(|phase| phase.name.as_str());
            phase.or_else(|| is_own(here).then_some(OWN))
        };
        (0..frames.len()).filter_map(known).collect()
    }

    /// The phase that rules give to the first frame, which the others have called.
    fn phase(&self, frames: &[Frame<'_>]) -> Option<&Phase> {
        let name = frames.first()?.symbol.split('@').next().unwrap_or_default();
        let home = home(name);
        let packs = self.packs.iter().filter(|pack| pack.is_about(holder(frames)));
        packs.filter_map(|pack| pack.phase(name, home)).next()
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
        let mut entered = frames(&["k:do_syscall_64", "epoll_wait", "mio::poll"]);
        let rules = Rules::shipped().unwrap();
        assert_eq!(rules.exclusive(&entered), KERNEL_OTHER, "not the C library's");
        entered[1].module = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        assert_eq!(rules.exclusive(&entered), "kernel: epoll");
    }

    #[test]
    fn library_code_belongs_to_its_caller_and_an_allocator_to_itself() {
        let tera = "tera::renderer::processor::Processor::render_node";
        assert_eq!(exclusive(&["core::fmt::write", "alloc::fmt::format", tera]), "Tera + serde");
        assert_eq!(exclusive(&["_int_malloc", "malloc", "sqlx_postgres::row"]), "allocator");
        assert_eq!(exclusive(&["core::ptr::drop_in_place<sqlx_core::X>", tera]), "Tera + serde");
        assert_eq!(exclusive(&["other_crate::compute::sum", "main"]), OTHER);
    }

    #[test]
    fn gos_standard_library_belongs_to_its_caller_and_its_runtime_to_itself() {
        let page = "main.render";
        let walk = "text/template.(*state).walk";
        assert_eq!(exclusive(&["reflect.Value.Field", walk, page]), "html/template");
        assert_eq!(exclusive(&["runtime.memmove", "runtime.mallocgc", walk]), "allocator");
        assert_eq!(
            exclusive(&["runtime.scanobject", "runtime.gcDrain", "runtime.gcBgMarkWorker"]),
            "Go collector"
        );
        let query = "github.com/jackc/pgx/v5/pgxpool.(*Pool).Query";
        assert_eq!(exclusive(&["strconv.ParseInt", query, page]), "pgx");
        assert_eq!(exclusive(&["bufio.(*Writer).Write", "net/http.(*response).write"]), "net/http");
    }

    #[test]
    fn what_no_rule_knows_belongs_to_the_program_where_its_own_code_called_it() {
        let axum = "axum::handler::Handler::call";
        assert_eq!(exclusive(&["app::compute::sum", axum]), OWN);
        assert_eq!(exclusive(&["core::iter::sum", "regex::find", "app::page", axum]), OWN);
        assert_eq!(exclusive(&["tera::render", "app::page", axum]), "Tera + serde");
        let own = "[[phase]]\nname = \"prices\"\nfunctions = [\"app::prices*\"]\n";
        let rules = Rules::with(&[own]).unwrap();
        assert_eq!(rules.exclusive(&frames(&["app::prices::sum", "app::page"])), "prices");
        let helper = ["core::iter::sum", "app::add", "app::prices::sum", "app::page", axum];
        assert_eq!(rules.exclusive(&frames(&helper)), "prices", "what a named part calls");
        assert_eq!(rules.exclusive(&frames(&["app::add", axum, "app::prices::sum"])), OWN);
    }

    #[test]
    fn an_inlined_function_is_of_the_program_that_holds_it() {
        let pack = "programs = [\"app\"]\n\
                    [[phase]]\nname = \"prices\"\nfunctions = [\"shop::prices*\"]\n";
        let rules = Rules::with(&[pack]).unwrap();
        let mut stack = frames(&["shop::prices::sum", "main"]);
        stack[0].module = "inlined";
        assert_eq!(rules.exclusive(&stack), "prices");
        stack[1].module = "/srv/other";
        assert_eq!(rules.exclusive(&stack), OTHER);
        let helper = pack.replace("shop", "app");
        let rules = Rules::with(&[&helper]).unwrap();
        let mut stack = frames(&["app::next", "app::prices::sum", "app::run"]);
        stack[0].module = "inlined";
        assert_eq!(rules.exclusive(&stack), "prices");
    }

    #[test]
    fn the_inclusive_view_overlaps() {
        let rules = Rules::shipped().unwrap();
        let stack = frames(&["malloc", "sqlx_core::row", "axum::handler", "tokio::runtime::run"]);
        let phases: Vec<&str> = rules.inclusive(&stack).into_iter().collect();
        assert_eq!(phases, ["Tokio", "allocator", "hyper + axum", "sqlx"]);
    }

    #[test]
    fn a_pack_of_one_program_knows_no_other_and_its_executor_sets_up_apart() {
        let rules = Rules::shipped().unwrap();
        let stack = |module: &'static str, names: &[&'static str]| {
            let mut frames = frames(names);
            frames.iter_mut().for_each(|frame| frame.module = module);
            rules.exclusive(&frames).to_owned()
        };
        let server = "/usr/lib/postgresql/15/bin/postgres";
        let start = ["palloc", "ExecInitSort", "standard_ExecutorStart", "PortalStart"];
        assert_eq!(stack(server, &start), "executor set-up");
        assert_eq!(stack(server, &["_bt_compare", "ExecScan", "PortalRun"]), "execute");
        assert_eq!(stack(server, &["SearchCatCache", "standard_planner"]), "parse + plan");
        assert_eq!(stack("/srv/app", &["palloc", "ExecInitSort", "PortalRun"]), OTHER);
    }

    #[test]
    fn work_for_the_receiver_shows_in_the_inclusive_view_alone() {
        let rules = Rules::shipped().unwrap();
        let stack = frames(&["k:tcp_v4_rcv", "k:net_rx_action", "k:__x64_sys_sendto", "main"]);
        assert_eq!(rules.exclusive(&stack), "kernel: send");
        let phases: Vec<&str> = rules.inclusive(&stack).into_iter().collect();
        assert_eq!(phases, ["kernel: send", "kernel: soft interrupts"]);
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
