//! The tables that samples refer to: strings, functions, locations, mappings.

use std::collections::HashMap;

use crate::pprof::model::SampleType;
use crate::pprof::wire::{Broken, Value, fields};

/// Everything but the samples, resolved.
#[derive(Default)]
pub(super) struct Tables {
    strings: Vec<String>,
    /// Distinct function names.
    pub(super) names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Per location its functions, innermost inlined one first, as indexes of `names`.
    locations: HashMap<u64, Vec<u32>>,
    /// How many mappings there are.
    pub(super) mappings: u64,
    /// Whether any function has a name.
    pub(super) symbolized: bool,
}

/// What a first pass finds, by string index, before the strings are known.
#[derive(Default)]
struct Raw {
    functions: HashMap<u64, u64>,
    locations: Vec<(u64, u64, u64, Vec<u64>)>,
    mappings: HashMap<u64, u64>,
}

impl Tables {
    /// Reads the tables of a profile; samples are passed over.
    pub(super) fn read(profile: &[u8]) -> Result<Self, Broken> {
        let mut tables = Self::default();
        let mut raw = Raw::default();
        fields(profile, |number, value| {
            match number {
                3 => {
                    tables.mappings += 1;
                    let (id, file) = pair(value, 1, 5)?;
                    raw.mappings.insert(id, file);
                }
                4 => raw.locations.push(location(value)?),
                5 => {
                    let (id, name, system) = function(value)?;
                    raw.functions.insert(id, if name == 0 { system } else { name });
                }
                6 => {
                    let text = String::from_utf8_lossy(value.bytes()).into_owned();
                    tables.strings.push(text);
                }
                _ => {}
            }
            Ok(())
        })?;
        tables.resolve(raw);
        Ok(tables)
    }

    fn resolve(&mut self, raw: Raw) {
        for (id, mapping, address, lines) in raw.locations {
            let mut names = Vec::with_capacity(lines.len());
            for function in lines {
                let name = raw.functions.get(&function).map_or(0, |&name| name);
                let name = self.string(name).to_owned();
                if !name.is_empty() {
                    self.symbolized = true;
                    names.push(self.number(name));
                }
            }
            if names.is_empty() {
                let file = raw.mappings.get(&mapping).map_or(0, |&file| file);
                let file = self.string(file).rsplit('/').next().unwrap_or_default();
                let name = match file {
                    "" => format!("{address:#x}"),
                    file => format!("{address:#x} [{file}]"),
                };
                names.push(self.number(name));
            }
            self.locations.insert(id, names);
        }
    }

    fn number(&mut self, name: String) -> u32 {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(name.clone()).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
    }

    /// A string of the table; empty where the index is beyond its end.
    pub(super) fn string(&self, index: u64) -> &str {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.strings.get(index).map_or("", String::as_str)
    }

    /// The functions at a location, innermost first; `None` where the file lacks it.
    pub(super) fn functions(&self, location: u64) -> Option<&[u32]> {
        self.locations.get(&location).map(Vec::as_slice)
    }

    /// How many locations there are.
    pub(super) fn locations(&self) -> u64 {
        self.locations.len() as u64
    }

    /// Reads a value type.
    pub(super) fn sample_type(&self, value: Value<'_>) -> Result<SampleType, Broken> {
        let (kind, unit) = pair(value, 1, 2)?;
        Ok(SampleType { kind: self.string(kind).to_owned(), unit: self.string(unit).to_owned() })
    }
}

fn pair(message: Value<'_>, first: u64, second: u64) -> Result<(u64, u64), Broken> {
    let mut found = (0, 0);
    fields(message.bytes(), |number, value| {
        if number == first {
            found.0 = value.number();
        } else if number == second {
            found.1 = value.number();
        }
        Ok(())
    })?;
    Ok(found)
}

fn function(message: Value<'_>) -> Result<(u64, u64, u64), Broken> {
    let (id, name) = pair(message, 1, 2)?;
    let (_, system) = pair(message, 1, 3)?;
    Ok((id, name, system))
}

fn location(message: Value<'_>) -> Result<(u64, u64, u64, Vec<u64>), Broken> {
    let (id, mapping) = pair(message, 1, 2)?;
    let mut address = 0;
    let mut functions = Vec::new();
    fields(message.bytes(), |number, value| {
        match number {
            3 => address = value.number(),
            4 => functions.push(pair(value, 1, 2)?.0),
            _ => {}
        }
        Ok(())
    })?;
    Ok((id, mapping, address, functions))
}
