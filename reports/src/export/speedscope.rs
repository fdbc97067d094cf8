//! speedscope's own format: <https://www.speedscope.app/file-format-schema.json>.

use serde_json::json;

use super::stacks::stacks;
use crate::report::Profile;

/// Profiles with the frames that they share; weights are nanoseconds per request.
#[must_use]
pub fn speedscope(name: &str, profiles: &[&Profile]) -> String {
    let mut frames = Vec::new();
    let mut shown = Vec::new();
    for profile in profiles {
        let first = frames.len();
        frames.extend(profile.tree.names.iter().map(|name| json!({ "name": name })));
        let stacks = stacks(profile);
        let samples: Vec<Vec<usize>> = stacks
            .iter()
            .map(|stack| stack.names.iter().map(|&name| first + name as usize).collect())
            .collect();
        let weights: Vec<u64> = stacks.iter().map(|stack| stack.nanos).collect();
        let title = super::title(&profile.arm, &profile.route);
        shown.push(json!({
            "type": "sampled",
            "name": format!("{title}: {}, per request", profile.process),
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": weights.iter().sum::<u64>(),
            "samples": samples,
            "weights": weights,
        }));
    }
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": concat!("assay ", env!("CARGO_PKG_VERSION")),
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": shown,
    });
    format!("{file}\n")
}
