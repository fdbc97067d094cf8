//! Profiles in pprof's protobuf, gzipped or not, as Go, pprof-rs, Python and Node write them:
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>.
//!
//! ```text
//! 0a 04 08 01 10 02        sample_type { type: 1 (samples)  unit: 2 (count) }
//! 12 09 0a 02 01 02 12 …   sample { location_id: [1, 2]  value: [3, 30000000] }
//! 22 06 08 01 22 02 08 01  location { id: 1  line { function_id: 1 } }
//! 2a 04 08 01 10 05        function { id: 1  name: 5 }
//! 32 04 77 6f 72 6b        string_table: "work"
//! ```
//!
//! Older forms (gperftools' binary words, the text of `/debug/pprof/…?debug=1`) are refused in
//! words by [`old_form`].

mod model;
mod parse;
mod tables;
#[cfg(test)]
mod tests;
mod wire;

pub use model::{FunctionValue, Profile, SampleType};
pub use parse::{Decoder, looks_like, old_form};
