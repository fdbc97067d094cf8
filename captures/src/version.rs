//! The version of what we write. Reading checks it before anything else.

use serde::{Deserialize, Serialize};

/// Version of a format of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FormatVersion(pub u32);

impl FormatVersion {
    /// What this Assay writes.
    pub const CURRENT: Self = Self(1);
    /// The oldest that this Assay reads.
    pub const OLDEST: Self = Self(1);

    /// Refuses what this Assay cannot read, in words that say what to do.
    pub fn check(self) -> Result<(), UnknownVersion> {
        if self > Self::CURRENT {
            Err(UnknownVersion::TooNew(self.0))
        } else if self < Self::OLDEST {
            Err(UnknownVersion::TooOld(self.0))
        } else {
            Ok(())
        }
    }
}

/// A format version that this Assay does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownVersion {
    /// Written by a later Assay.
    #[error("format version {0} is newer than this assay reads ({current}); use a newer assay", current = FormatVersion::CURRENT.0)]
    TooNew(u32),
    /// Written by an earlier Assay whose format is no longer read.
    #[error("format version {0} is older than this assay reads ({oldest}); use the assay that wrote it", oldest = FormatVersion::OLDEST.0)]
    TooOld(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_new_and_too_old_say_different_things() {
        assert_eq!(FormatVersion::CURRENT.check(), Ok(()));
        let new = FormatVersion(99).check().unwrap_err().to_string();
        assert_eq!(new, "format version 99 is newer than this assay reads (1); use a newer assay");
        let old = FormatVersion(0).check().unwrap_err().to_string();
        assert_eq!(
            old,
            "format version 0 is older than this assay reads (1); use the assay that wrote it"
        );
    }
}
