//! Laps that were lost with their subject, and how the run goes on: the subject is started anew,
//! and given up when it dies again and again.

use std::collections::BTreeMap;

use anyhow::anyhow;

use super::bench::Bench;
use super::failure::Failure;
use crate::subject::Life;

/// How often a subject is started anew in one run.
const STARTS: u32 = 2;

/// What was lost.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// How often each arm has died.
    deaths: BTreeMap<usize, u32>,
    /// What happened, one line each.
    lines: Vec<String>,
    /// The arm that runs with something preloaded, in the place of the one that all passes share.
    pub(super) stand_in: Option<usize>,
}

impl Losses {
    /// Notes a lap that does not count.
    pub(super) fn note(&mut self, line: String) {
        self.lines.push(line);
    }

    /// The first loss, and how many there are beside it; `None` where nothing was lost.
    #[must_use]
    pub(super) fn reason(&self) -> Option<String> {
        let first = self.lines.first()?;
        Some(match self.lines.len() - 1 {
            0 => format!("a lap was lost: {first}"),
            more => format!("laps were lost: {first}, and {more} more"),
        })
    }
}

impl Bench<'_> {
    /// Whether an arm still takes part.
    #[must_use]
    pub(super) fn takes_part(&self, arm: usize) -> bool {
        self.arms.contains_key(&arm)
    }

    /// How often an arm has died.
    #[must_use]
    pub(super) fn deaths(&self, arm: usize) -> u32 {
        self.losses.deaths.get(&arm).copied().unwrap_or_default()
    }

    /// After a lap was lost with its arm: starts the arm anew, or gives it up. Returns what
    /// happened, as a lost lap where others may follow.
    pub(super) fn recover(&mut self, arm: usize, lost: anyhow::Error) -> Failure {
        let lost = Failure::Lost(lost);
        let line = lost.line();
        let Failure::Lost(lost) = lost else { return lost };
        if self.losses.stand_in == Some(arm) {
            self.losses.note(line);
            return Failure::Lost(lost);
        }
        if self.arms.get(&arm).is_some_and(|arm| matches!(arm.life, Life::Foreign)) {
            // Somebody else's is not ours to start anew.
            return Failure::Run(lost);
        }
        let deaths = self.deaths(arm) + 1;
        self.losses.deaths.insert(arm, deaths);
        let title = self.arm_title(arm);
        let outcome = if deaths > STARTS {
            Err(format!("{title} is left out from here on: it has ended {deaths} times"))
        } else {
            self.start_anew(arm).map_err(|error| {
                format!("{title} is left out from here on: it cannot be started anew: {error:#}")
            })
        };
        match outcome {
            Ok(()) => {
                self.laboratory.ui.warn(&format!("{lost:#}"));
                self.laboratory.ui.say(&format!("{title} was started anew"));
                self.losses.note(line);
            }
            Err(given_up) => {
                self.laboratory.ui.warn(&format!("{lost:#}"));
                self.laboratory.ui.warn(&given_up);
                self.losses.note(format!("{line}; {given_up}"));
                if let Some(dead) = self.arms.remove(&arm) {
                    let _nobody = self.driver.close(dead.address);
                }
                if self.arms.is_empty() {
                    return Failure::Run(lost);
                }
            }
        }
        Failure::Lost(lost)
    }

    fn start_anew(&mut self, arm: usize) -> anyhow::Result<()> {
        let mut running = self.laboratory.start_subject(arm, &[])?;
        running.freeze();
        let dead = self.exchange_arm(arm, running).map_err(|failure| anyhow!(failure.line()))?;
        drop(dead);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_loss_is_told_and_the_others_counted() {
        let mut losses = Losses::default();
        assert_eq!(losses.reason(), None);
        losses.note("a.b ended".to_owned());
        assert_eq!(losses.reason().as_deref(), Some("a lap was lost: a.b ended"));
        losses.note("c.d ended".to_owned());
        losses.note("e.f ended".to_owned());
        let told = "laps were lost: a.b ended, and 2 more";
        assert_eq!(losses.reason().as_deref(), Some(told));
    }
}
