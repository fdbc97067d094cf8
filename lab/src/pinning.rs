//! Who runs on which cores.
//!
//! Subject, services and load driver get disjoint cores where the machine has them. Two cores: the
//! subject and its services share core 0, because a core that the driver also used would make the
//! subject pay for the driver; driver and probes have core 1.

use std::collections::BTreeMap;
use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::experiment::{Cores, PinningSettings};

/// The cores of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinning {
    /// The subject.
    pub app: CoreSet,
    /// Postgres and Redis.
    pub services: CoreSet,
    /// The load driver and the probes.
    pub load: CoreSet,
}

/// Cores, ascending and never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSet(Vec<usize>);

impl CoreSet {
    /// The set of these cores; `None` when there are none.
    #[must_use]
    pub fn new(mut cores: Vec<usize>) -> Option<Self> {
        cores.sort_unstable();
        cores.dedup();
        (!cores.is_empty()).then_some(Self(cores))
    }

    /// The cores, ascending.
    #[must_use]
    pub fn cores(&self) -> &[usize] {
        &self.0
    }

    /// As `taskset` and the kernel write it: `0`, `0-3`, `0,2-3`.
    #[must_use]
    pub fn list(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = self.0.as_slice();
        while let [first, ..] = *rest {
            let run = rest.iter().zip(first..).take_while(|(core, next)| *core == next).count();
            let last = rest[run - 1];
            parts.push(if run == 1 { first.to_string() } else { format!("{first}-{last}") });
            rest = &rest[run..];
        }
        parts.join(",")
    }

    /// As the kernel wants it.
    pub fn cpu_set(&self) -> nix::Result<CpuSet> {
        let mut set = CpuSet::new();
        for &core in &self.0 {
            set.set(core)?;
        }
        Ok(set)
    }

    /// Moves the calling thread, and what it will start, to these cores.
    pub fn take_this_thread(&self) -> io::Result<()> {
        sched_setaffinity(Pid::from_raw(0), &self.cpu_set()?).map_err(io::Error::from)
    }
}

impl Pinning {
    /// The cores of the subject and of the services.
    #[must_use]
    pub fn service_side(&self) -> CoreSet {
        let mut cores = [&self.app.0[..], &self.services.0].concat();
        cores.sort_unstable();
        cores.dedup();
        CoreSet(cores)
    }

    /// Works out the cores: the experiment's lists, and by the number of usable cores where it
    /// says `auto`. Refuses a core that this process may not use.
    pub fn choose(settings: &PinningSettings, usable: &[usize]) -> Result<Self, String> {
        let auto = automatic(usable);
        let pick = |what: &str, cores: &Cores, auto: Vec<usize>| match cores {
            Cores::Auto => CoreSet::new(auto).ok_or_else(|| "no core may be used".to_owned()),
            Cores::List(list) => match list.iter().find(|core| !usable.contains(core)) {
                Some(core) => Err(format!(
                    "pinning of {what}: core {core} is not among those that may be used ({})",
                    CoreSet(usable.to_vec()).list()
                )),
                None => CoreSet::new(list.clone()).ok_or_else(|| "no core given".to_owned()),
            },
        };
        Ok(Self {
            app: pick("app", &settings.app, auto.0)?,
            services: pick("services", &settings.services, auto.1)?,
            load: pick("load", &settings.load, auto.2)?,
        })
    }

    /// What the reader of results must know about it, if the parts share cores.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let share = |a: &CoreSet, b: &CoreSet| a.0.iter().any(|core| b.0.contains(core));
        let mut shared = Vec::new();
        for (names, a, b) in [
            ("subject and services", &self.app, &self.services),
            ("subject and load driver", &self.app, &self.load),
            ("services and load driver", &self.services, &self.load),
        ] {
            if share(a, b) {
                shared.push(names);
            }
        }
        (!shared.is_empty()).then(|| format!("{} share cores", shared.join("; ")))
    }

    /// As the run record holds it.
    #[must_use]
    pub fn record(&self) -> BTreeMap<String, String> {
        [("app", &self.app), ("services", &self.services), ("load", &self.load)]
            .map(|(name, cores)| (name.to_owned(), cores.list()))
            .into()
    }
}

/// App, services, load: all on the one core; 0, 0, 1; or thirds, the driver's third last.
fn automatic(usable: &[usize]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    match usable {
        [] => (Vec::new(), Vec::new(), Vec::new()),
        [only] => (vec![*only], vec![*only], vec![*only]),
        [first, second] => (vec![*first], vec![*first], vec![*second]),
        many => {
            let third = many.len() / 3;
            let (app, rest) = many.split_at(third + many.len() % 3);
            let (services, load) = rest.split_at(third);
            (app.to_vec(), services.to_vec(), load.to_vec())
        }
    }
}

/// The cores that this process may use, ascending.
pub fn usable_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(usable: &[usize]) -> String {
        let pinning = Pinning::choose(&PinningSettings::default(), usable).unwrap();
        pinning.record().into_values().collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn two_cores_keep_the_driver_away_from_the_subject() {
        // In the order app, load, services.
        assert_eq!(chosen(&[0, 1]), "0 | 1 | 0");
    }

    #[test]
    fn one_core_is_shared_and_said_so() {
        assert_eq!(chosen(&[3]), "3 | 3 | 3");
        let pinning = Pinning::choose(&PinningSettings::default(), &[3]).unwrap();
        assert!(pinning.note().unwrap().contains("subject and load driver"));
    }

    #[test]
    fn more_cores_are_split_in_thirds_and_none_is_left_over() {
        assert_eq!(chosen(&[0, 1, 2, 3, 4, 5, 6, 7]), "0-3 | 6-7 | 4-5");
        let pinning = Pinning::choose(&PinningSettings::default(), &[0, 1, 2]).unwrap();
        assert_eq!(pinning.note(), None);
    }

    #[test]
    fn a_core_that_may_not_be_used_is_refused() {
        let settings =
            PinningSettings { app: Cores::List(vec![0, 9]), ..PinningSettings::default() };
        assert_eq!(
            Pinning::choose(&settings, &[0, 1]).unwrap_err(),
            "pinning of app: core 9 is not among those that may be used (0-1)"
        );
    }

    #[test]
    fn lists_are_written_as_the_kernel_writes_them() {
        let list = |cores: &[usize]| CoreSet::new(cores.to_vec()).unwrap().list();
        assert_eq!(list(&[5, 0, 1, 2]), "0-2,5");
        assert_eq!(list(&[7]), "7");
    }
}
