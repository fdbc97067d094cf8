//! pprof's protobuf, field by field as `profile.proto` numbers them:
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>. Not gzipped, which every
//! reader takes.

use std::collections::HashMap;

use super::stacks::stacks;
use crate::report::Profile;

/// One profile whose samples are nanoseconds of CPU per request. Each stack begins with
/// `subject.variant route` and the process, since a file has one profile only.
#[must_use]
pub fn pprof(profiles: &[&Profile]) -> Vec<u8> {
    let mut file = File::default();
    let kind = file.kind("cpu", "nanoseconds");
    field(1, &kind, &mut file.out);
    for profile in profiles {
        let roots = [super::title(&profile.arm, &profile.route), profile.process.clone()];
        for stack in stacks(profile) {
            let names = stack.names.iter().map(|&name| profile.tree.names[name as usize].as_str());
            let names: Vec<&str> = roots.iter().map(String::as_str).chain(names).collect();
            file.sample(&names, stack.nanos);
        }
    }
    file.finish()
}

/// The parts of a profile as they come.
#[derive(Default)]
struct File {
    out: Vec<u8>,
    strings: Vec<String>,
    known: HashMap<String, u64>,
    functions: HashMap<u64, u64>,
}

impl File {
    fn string(&mut self, text: &str) -> u64 {
        if self.strings.is_empty() {
            // The first must be empty.
            self.strings.push(String::new());
        }
        if let Some(&place) = self.known.get(text) {
            return place;
        }
        let place = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.known.insert(text.to_owned(), place);
        place
    }

    /// A `ValueType`.
    fn kind(&mut self, what: &str, unit: &str) -> Vec<u8> {
        numbers(&[(1, self.string(what)), (2, self.string(unit))])
    }

    /// A `Sample`: places from the leaf up, then its value.
    fn sample(&mut self, names: &[&str], nanos: u64) {
        let (mut places, mut sample) = (Vec::new(), Vec::new());
        for name in names.iter().rev() {
            varint(self.place(name), &mut places);
        }
        field(1, &places, &mut sample);
        let mut values = Vec::new();
        varint(nanos, &mut values);
        field(2, &values, &mut sample);
        field(2, &sample, &mut self.out);
    }

    /// The `Location` of a function, which has the same number as its `Function`.
    fn place(&mut self, name: &str) -> u64 {
        let name = self.string(name);
        let next = self.functions.len() as u64 + 1;
        let place = *self.functions.entry(name).or_insert(next);
        if place == next {
            let mut location = numbers(&[(1, place)]);
            field(4, &numbers(&[(1, place)]), &mut location);
            field(4, &location, &mut self.out);
            field(5, &numbers(&[(1, place), (2, name)]), &mut self.out);
        }
        place
    }

    fn finish(mut self) -> Vec<u8> {
        let kind = self.kind("cpu", "nanoseconds");
        for text in &self.strings {
            field(6, text.as_bytes(), &mut self.out);
        }
        field(11, &kind, &mut self.out);
        self.out.extend(numbers(&[(12, 1)]));
        self.out
    }
}

/// Fields of numbers.
fn numbers(fields: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for &(number, value) in fields {
        varint(number << 3, &mut out);
        varint(value, &mut out);
    }
    out
}

/// A field of bytes, with their length.
fn field(number: u64, content: &[u8], out: &mut Vec<u8>) {
    varint(number << 3 | 2, out);
    varint(content.len() as u64, out);
    out.extend(content);
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push((number & 127) as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}
