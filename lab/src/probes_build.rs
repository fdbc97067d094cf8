//! Where the probe programs are, and building them when they are not there yet.

use std::path::{Path, PathBuf};

/// The folder that holds the probe programs and the counting library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePrograms {
    folder: PathBuf,
}

impl ProbePrograms {
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

    /// The programs in `folder`.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }
}
