//! Folded stacks: one a line, root first, and its nanoseconds per request.

use std::fmt::Write;

use super::stacks::stacks;
use crate::report::Profile;

/// The stacks of profiles, each below `subject.variant route` and its process.
#[must_use]
pub fn folded(profiles: &[&Profile]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for profile in profiles {
        let root = format!("{};{}", super::title(&profile.arm, &profile.route), profile.process);
        for stack in stacks(profile) {
            let mut line = clean(&root, "; ");
            for name in stack.names {
                line.push(';');
                line.push_str(&clean(&profile.tree.names[name as usize], ""));
            }
            let _never = write!(line, " {}", stack.nanos);
            lines.push(line);
        }
    }
    lines.sort_unstable();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// What separates frames and lines cannot be in a name; `kept` may.
fn clean(name: &str, kept: &str) -> String {
    let letter = |letter: char| match letter {
        _ if kept.contains(letter) => letter,
        ';' => ':',
        _ if letter.is_control() => ' ',
        _ => letter,
    };
    name.chars().map(letter).collect()
}
