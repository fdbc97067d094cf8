//! Stacks as a tree of calls: what a flame graph draws. Bounded: beyond a number of calls, new
//! ones count in their caller.

use std::collections::HashMap;

/// Calls that a tree holds at most while it grows.
const CALLS: usize = 200_000;

/// A tree of calls with samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flame {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    calls: Vec<Call>,
    by_place: HashMap<(u32, u32), u32>,
    all: u64,
}

/// One call, from its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function, a place in [`Tree::names`].
    pub name: u32,
    /// The caller, a place in [`Tree::calls`] before this one; `None` at the root of a thread.
    pub caller: Option<u32>,
    /// Samples in it and in all that it calls.
    pub samples: u64,
}

/// A tree without its small calls: each caller stands before what it calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Names of functions.
    pub names: Vec<String>,
    /// The calls.
    pub calls: Vec<Call>,
    /// Samples in all.
    pub samples: u64,
}

impl Flame {
    /// Adds one sample of a stack, root first.
    pub fn add<'a>(&mut self, stack: impl IntoIterator<Item = &'a str>) {
        self.all += 1;
        let mut caller = None;
        for name in stack {
            let Some(call) = self.call(caller, name) else { return };
            self.calls[call as usize].samples += 1;
            caller = Some(call);
        }
    }

    fn call(&mut self, caller: Option<u32>, name: &str) -> Option<u32> {
        let name = match self.by_name.get(name) {
            Some(&known) => known,
            None if self.names.len() >= CALLS => return None,
            None => {
                let new = u32::try_from(self.names.len()).ok()?;
                self.names.push(name.to_owned());
                self.by_name.insert(name.to_owned(), new);
                new
            }
        };
        let place = (caller.map_or(u32::MAX, |call| call), name);
        if let Some(&known) = self.by_place.get(&place) {
            return Some(known);
        }
        if self.calls.len() >= CALLS {
            return None;
        }
        let new = u32::try_from(self.calls.len()).ok()?;
        self.calls.push(Call { name, caller, samples: 0 });
        self.by_place.insert(place, new);
        Some(new)
    }

    /// The calls with at least this share of all samples (0..=1); the others count in their
    /// callers alone.
    #[must_use]
    pub fn tree(&self, least: f64) -> Tree {
        let least = (self.all as f64 * least).max(1.0);
        let mut tree = Tree { samples: self.all, ..Tree::default() };
        let mut names: HashMap<u32, u32> = HashMap::new();
        let mut places: Vec<Option<u32>> = vec![None; self.calls.len()];
        for (index, call) in self.calls.iter().enumerate() {
            // A caller has at least the samples of what it calls, so it was kept before.
            if (call.samples as f64) < least {
                continue;
            }
            let name = *names.entry(call.name).or_insert_with(|| {
                tree.names.push(self.names[call.name as usize].clone());
                tree.names.len() as u32 - 1
            });
            let caller = call.caller.and_then(|caller| places[caller as usize]);
            places[index] = Some(tree.calls.len() as u32);
            tree.calls.push(Call { name, caller, samples: call.samples });
        }
        tree
    }
}

impl Tree {
    /// Samples of each function by itself and with all that it calls, the largest first.
    /// Recursion counts once.
    #[must_use]
    pub fn functions(&self) -> Vec<(&str, u64, u64)> {
        let mut own: Vec<u64> = self.calls.iter().map(|call| call.samples).collect();
        for call in &self.calls {
            if let Some(caller) = call.caller {
                own[caller as usize] = own[caller as usize].saturating_sub(call.samples);
            }
        }
        let mut functions: HashMap<u32, (u64, u64)> = HashMap::new();
        for (index, call) in self.calls.iter().enumerate() {
            let function = functions.entry(call.name).or_default();
            function.0 += own[index];
            if !self.is_within_itself(index) {
                function.1 += call.samples;
            }
        }
        let mut functions: Vec<(&str, u64, u64)> = functions
            .into_iter()
            .map(|(name, (own, all))| (self.names[name as usize].as_str(), own, all))
            .collect();
        functions.sort_by(|a, b| b.1.cmp(&a.1).then(b.2.cmp(&a.2)).then(a.0.cmp(b.0)));
        functions
    }

    fn is_within_itself(&self, index: usize) -> bool {
        let name = self.calls[index].name;
        let mut caller = self.calls[index].caller;
        while let Some(place) = caller {
            let call = self.calls[place as usize];
            if call.name == name {
                return true;
            }
            caller = call.caller;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flame(stacks: &[(&str, u64)]) -> Flame {
        let mut flame = Flame::default();
        for (stack, samples) in stacks {
            for _ in 0..*samples {
                flame.add(stack.split(';'));
            }
        }
        flame
    }

    #[test]
    fn callers_hold_what_they_call() {
        let tree = flame(&[("main;a;b", 6), ("main;a", 2), ("main;c", 2)]).tree(0.0);
        let shown: Vec<(&str, u64)> =
            tree.calls.iter().map(|c| (&*tree.names[c.name as usize], c.samples)).collect();
        assert_eq!(shown, [("main", 10), ("a", 8), ("b", 6), ("c", 2)]);
        assert_eq!(tree.calls[2].caller, Some(1));
        assert_eq!(tree.samples, 10);
    }

    #[test]
    fn small_calls_count_in_their_caller() {
        let tree = flame(&[("main;a", 97), ("main;rare;deep", 3)]).tree(0.05);
        assert_eq!(tree.calls.len(), 2);
        assert_eq!(tree.functions(), [("a", 97, 97), ("main", 3, 100)]);
    }

    #[test]
    fn recursion_counts_once_in_the_total() {
        let tree = flame(&[("main;f;f;f", 4), ("main;f;g;f", 1)]).tree(0.0);
        let functions = tree.functions();
        assert!(functions.contains(&("f", 5, 5)), "{functions:?}");
        assert!(functions.contains(&("main", 0, 5)), "{functions:?}");
    }
}
