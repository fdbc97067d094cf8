//! The formats on disk and how to read them: what the probes record, what foreign tools record,
//! and the run directory that holds it all.
//!
//! Nothing here but [`capture`] and [`run_dir`] touches a file; parsers take bytes and deliver
//! records and problems to a [`parsed::Sink`].

pub mod allocation_counts;
pub mod bpf_counts;
pub mod callgrind;
pub mod capture;
pub mod demangle;
pub mod dhat;
pub mod document;
pub mod folded;
pub mod gctrace;
#[cfg(test)]
mod hostile;
pub mod http;
pub mod ids;
mod json_keys;
pub mod json_lines;
pub mod lap;
pub mod load_tools;
pub mod manifest;
pub mod mask;
pub mod parsed;
pub mod pcap;
pub mod perf_script;
pub mod postgres;
pub mod pprof;
pub mod recognise;
pub mod redis;
pub mod request_log;
pub mod run_dir;
pub mod run_record;
pub mod strace;
pub mod syscall_names;
pub mod tcp;
pub mod text_lines;
pub mod units;
pub mod usage;
pub mod utc;
pub mod version;
