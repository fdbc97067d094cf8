//! What a killed probe left as it was recorded. The payload of packets is masked when a capture is
//! closed; where nobody has closed it, it holds what users sent, and does not stay. Nor do the
//! pipes and the raw samples of a perf that went with its probe: nobody can read them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use assay_captures::capture;
use assay_captures::manifest::{Manifest, Status};
use assay_captures::pcap::{FILE, PLAIN_FILE};
use assay_captures::run_dir;

use crate::run_directory::write_private;

/// Files with packets in a capture's folder; of a capture that was being packed, both.
const PACKETS: [&str; 2] = [PLAIN_FILE, FILE];
/// What perf leaves beside a capture that was never closed.
const LEFT_BY_PERF: [&str; 4] = ["perf.data", "perf.commands", "perf.answers", "perf.errors"];
/// Name of the link in a temporary directory that leads to its run.
const RUN: &str = "run";
/// What is said of packets that were removed.
pub const REMOVED: &str = "its packets were removed, since their payload had not been masked yet";

/// Lets [`remove_of`] find the run later, also when this process is gone.
pub fn remember(scratch: &Path, run: &Path) {
    let link = scratch.join(RUN);
    // A run before it in the same directory has ended, and its captures are closed.
    let _before = fs::remove_file(&link);
    // Without it, only a run that ends by itself removes such packets.
    let _best_effort = fs::canonicalize(run).and_then(|run| symlink(run, link));
}

/// Does the same as [`remove`] for the run that a temporary directory belonged to.
pub fn remove_of(scratch: &Path) {
    remove(&scratch.join(RUN));
}

/// Removes the packets of every capture of a run that was never closed, and says so in its
/// manifest. No probe of the run may be recording any more. Returns the captures, relative to the
/// run.
pub fn remove(run: &Path) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    let mut folders = vec![run.join("captures")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let inner = entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(inner.map(|entry| entry.path()));
        let manifest = capture::manifest(&folder);
        if manifest.as_ref().is_ok_and(|manifest| manifest.status == Status::Recording) {
            for file in LEFT_BY_PERF {
                let _not_there = fs::remove_file(folder.join(file));
            }
        }
        let packets = PACKETS.map(|file| folder.join(file));
        if !packets.iter().any(|file| file.is_file()) {
            continue;
        }
        // A manifest that cannot be read belongs to a probe that was killed while it wrote it.
        if manifest.as_ref().is_ok_and(|manifest| manifest.status != Status::Recording) {
            continue;
        }
        let gone = packets.iter().filter(|file| fs::remove_file(file).is_ok()).count();
        if gone > 0
            && let Ok(within) = folder.strip_prefix(run)
        {
            removed.push(within.to_path_buf());
        }
        if let Ok(manifest) = manifest {
            tell(&folder, manifest);
        }
    }
    removed.sort();
    removed
}

fn tell(folder: &Path, mut manifest: Manifest) {
    manifest.status = Status::Failed;
    manifest.reason = Some(format!("the probe was killed; {REMOVED}"));
    manifest.files.retain(|file| !PACKETS.contains(&file.as_str()));
    let Ok(mut text) = serde_json::to_vec_pretty(&manifest) else { return };
    text.push(b'\n');
    // A manifest that says `recording` is as good a warning.
    let _best_effort = write_private(&folder.join(run_dir::MANIFEST), &text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::teardown;

    fn capture_of(run: &Path, name: &str, manifest: &str) -> PathBuf {
        let folder = run.join("captures/wire/page.one").join(name).join("wire");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(PLAIN_FILE), "sesame").unwrap();
        fs::write(folder.join(run_dir::MANIFEST), manifest).unwrap();
        folder
    }

    fn manifest(status: &str) -> String {
        serde_json::json!({
            "version": 1, "probe": "wire", "backend": null, "probe_version": "0",
            "status": status, "reason": null, "tool": null, "command": [],
            "clock": { "realtime": 0, "monotonic": 0 }, "window": null, "targets": [],
            "files": [PLAIN_FILE], "integrity": {}, "notes": [],
        })
        .to_string()
    }

    #[test]
    fn packets_that_were_never_masked_do_not_stay_and_their_manifest_says_so() {
        let run = tempfile::tempdir().unwrap();
        let killed = capture_of(run.path(), "killed", &manifest("recording"));
        let torn = capture_of(run.path(), "torn", "{\"version\"");
        let whole = capture_of(run.path(), "whole", &manifest("complete"));
        let within = |name: &str| Path::new("captures/wire/page.one").join(name).join("wire");
        fs::write(killed.join(LEFT_BY_PERF[0]), "samples").unwrap();
        fs::write(killed.join(FILE), "half of it, packed").unwrap();
        assert_eq!(remove(run.path()), [within("killed"), within("torn")]);
        assert!(!killed.join(LEFT_BY_PERF[0]).exists() && !killed.join(FILE).exists());
        assert!(!killed.join(PLAIN_FILE).exists() && !torn.join(PLAIN_FILE).exists());
        assert!(whole.join(PLAIN_FILE).exists());
        let told = capture::manifest(&killed).unwrap();
        assert_eq!((told.status, told.files.len()), (Status::Failed, 0));
        assert!(told.reason.unwrap().contains(REMOVED));
        assert_eq!(remove(run.path()), [] as [PathBuf; 0]);
    }

    #[test]
    fn whoever_removes_a_temporary_directory_removes_them_too_and_nothing_else_of_the_run() {
        let run = tempfile::tempdir().unwrap();
        let killed = capture_of(run.path(), "killed", &manifest("recording"));
        let scratch = tempfile::tempdir().unwrap();
        remember(scratch.path(), run.path());
        teardown::remove(scratch.path());
        assert!(!scratch.path().exists());
        assert!(!killed.join(PLAIN_FILE).exists());
        assert!(killed.join(run_dir::MANIFEST).exists());
    }
}
