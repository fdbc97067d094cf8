//! A tree of calls → stacks with what each weighs by itself.

use assay_analyses::flame::Tree;

use crate::report::Profile;

/// One stack.
pub(super) struct Stack {
    /// Places in [`Tree::names`], root first.
    pub(super) names: Vec<u32>,
    /// Nanoseconds of CPU per request, without what it calls.
    pub(super) nanos: u64,
}

/// The stacks of a profile that weigh anything. Calls that the tree does not hold, since they are
/// too small, weigh in their callers.
pub(super) fn stacks(profile: &Profile) -> Vec<Stack> {
    let tree = &profile.tree;
    let each = profile.per_request * 1e9 / tree.samples.max(1) as f64;
    let own = own_samples(tree);
    let heavy = own.iter().enumerate().filter(|&(_, &samples)| samples > 0);
    heavy
        .map(|(call, &samples)| Stack {
            names: path(tree, call),
            nanos: (samples as f64 * each).round() as u64,
        })
        .collect()
}

/// The samples of each call without those of what it calls.
fn own_samples(tree: &Tree) -> Vec<u64> {
    let mut own: Vec<u64> = tree.calls.iter().map(|call| call.samples).collect();
    for call in &tree.calls {
        if let Some(caller) = call.caller.and_then(|caller| own.get_mut(caller as usize)) {
            *caller = caller.saturating_sub(call.samples);
        }
    }
    own
}

fn path(tree: &Tree, call: usize) -> Vec<u32> {
    let mut names = Vec::new();
    let mut at = Some(call);
    while let Some(call) = at.and_then(|at| tree.calls.get(at)) {
        names.push(call.name);
        at = call.caller.map(|caller| caller as usize);
    }
    names.reverse();
    names
}
