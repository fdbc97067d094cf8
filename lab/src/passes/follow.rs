//! A service followed second by second, until somebody has seen enough.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use assay_analyses::costs::wire::WirePorts;
use assay_captures::ids::Role;
use assay_captures::lap::Load;
use assay_captures::pcap;

use super::Ended;
use super::attached::{Attached, Attachment};
use super::bench::Bench;
use super::failure::Failure;
use crate::experiment::plan::Cell;
use crate::load::Stop;
use crate::observe::{Clocks, Live, Second};
use crate::run::Laboratory;

/// From one look to the next.
const SECOND: Duration = Duration::from_secs(1);
/// Between two questions whether to go on.
const STEP: Duration = Duration::from_millis(50);

/// Whoever looks on.
pub trait Onlooker {
    /// Takes what is known once everything has begun.
    fn begins(&mut self, laboratory: &Laboratory);
    /// Takes one more second.
    fn sees(&mut self, second: Second);
    /// Whether there is enough; asked many times a second.
    fn goes_on(&mut self) -> ControlFlow<()>;
}

/// Follows the attached service; interrupting is the usual end and no error.
pub fn follow(laboratory: &mut Laboratory, onlooker: &mut impl Onlooker) -> Result<(), Ended> {
    match seconds(laboratory, onlooker) {
        Ok(()) | Err(Failure::Cancelled) => Ok(()),
        Err(Failure::Probe(error)) => Err(Ended::Failed(error.into())),
        Err(Failure::Run(error) | Failure::Lost(error)) => Err(Ended::Failed(error)),
    }
}

fn seconds(laboratory: &mut Laboratory, onlooker: &mut impl Onlooker) -> Result<(), Failure> {
    let mut bench = Bench::set_up(laboratory)?;
    let mut wire = Wire::start(&mut bench)?;
    let mut clocks = clocks(&mut bench)?;
    let routes: Vec<usize> = bench.requests.keys().copied().collect();
    onlooker.begins(bench.laboratory);
    for turn in 0.. {
        let begun = Instant::now();
        let driven = match routes.get(turn % routes.len().max(1)) {
            Some(&route) => {
                let connections = bench.laboratory.experiment.load.connections;
                let (cell, load) = (Cell { arm: 0, route }, Load::Closed { connections });
                Some(bench.work(cell, load, Stop::After(SECOND))?.good)
            }
            None => {
                wait(&bench, onlooker, begun + SECOND)?;
                None
            }
        };
        let taken = wire.take();
        let length = begun.elapsed();
        let cpu = clocks.iter_mut().map(|(word, clocks)| (*word, clocks.used())).collect();
        alive(&mut bench)?;
        onlooker.sees(Second { length, wire: taken, driven, cpu });
        if onlooker.goes_on().is_break() {
            break;
        }
    }
    wire.stop()
}

/// Waits, and stops waiting once there is enough.
fn wait(bench: &Bench<'_>, onlooker: &mut impl Onlooker, until: Instant) -> Result<(), Failure> {
    while Instant::now() < until {
        bench.check_cancel()?;
        if onlooker.goes_on().is_break() {
            return Err(Failure::Cancelled);
        }
        std::thread::sleep(STEP.min(until.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

fn alive(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let arm = bench.arms.get_mut(&0);
    arm.map_or(Ok(()), |arm| arm.check()).map_err(|died| Failure::Run(anyhow::anyhow!("{died}")))
}

/// The clocks of the service and of each server that runs here.
fn clocks(bench: &mut Bench<'_>) -> Result<Vec<(&'static str, Clocks)>, Failure> {
    let targets = bench.targets(0)?;
    let mut clocks = Vec::new();
    for role in [Role::Subject, Role::Pooler, Role::Postgres, Role::Redis] {
        let of = targets.iter().filter(|target| target.role == role);
        let mut pids: Vec<_> = of.flat_map(|target| target.pids.clone()).collect();
        pids.sort_unstable();
        pids.dedup();
        if !pids.is_empty() {
            clocks.push((role.word(), Clocks::of(pids)));
        }
    }
    Ok(clocks)
}

/// The wire probe with its reader, or why there is none.
enum Wire {
    Heard { probe: Attached, live: Live, each: u64, counters: u64 },
    Deaf(String),
}

impl Wire {
    fn start(bench: &mut Bench<'_>) -> Result<Self, Failure> {
        let targets = bench.targets(0)?;
        let of = |role: Role| -> Vec<u16> {
            let ports = targets.iter().filter(|target| target.role == role);
            ports.map(|target| target.port.0).collect()
        };
        // A request's own trips are those to the pooler, where there is one.
        let poolers = of(Role::Pooler);
        let ports = WirePorts {
            http: of(Role::Subject),
            postgres: if poolers.is_empty() { of(Role::Postgres) } else { poolers },
            redis: of(Role::Redis),
        };
        let attached = bench.laboratory.attached.as_ref();
        let interfaces = attached.map_or(1, |attached| attached.vantage.interfaces.len()) as u64;
        let each = interfaces + u64::from(targets.iter().any(|target| target.path.is_some()));
        let folder = "captures/follow/wire".to_owned();
        let pipe = bench.laboratory.run.path().join(&folder).join(pcap::PLAIN_FILE);
        let live = Live::listen(pipe, ports).map_err(|error| Failure::Run(error.into()))?;
        let options = vec!["--stream".to_owned()];
        let attachment = Attachment { probe: "wire", folder, targets, options, recording: true };
        Ok(match Attached::start(bench.laboratory, attachment) {
            Ok(probe) => Self::Heard { probe, live, each, counters: 0 },
            Err(error) => Self::Deaf(error.to_string()),
        })
    }

    /// What came since the last time.
    fn take(&mut self) -> Result<assay_analyses::costs::wire::Taken, String> {
        let deaf = match self {
            Self::Deaf(reason) => return Err(reason.clone()),
            Self::Heard { probe, live, each, counters } => match probe.session.mark() {
                Ok(()) => {
                    *counters += *each;
                    return Ok(live.take(*counters));
                }
                Err(error) => error.to_string(),
            },
        };
        *self = Self::Deaf(deaf.clone());
        Err(deaf)
    }

    fn stop(self) -> Result<(), Failure> {
        match self {
            Self::Heard { probe, .. } => probe.session.stop().map_err(Failure::Probe),
            Self::Deaf(_) => Ok(()),
        }
    }
}
