//! A run: everything that passes work with, prepared step by step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use assay_captures::ids::Pid;
use assay_captures::run_record;

use crate::experiment::plan::{Plan, PlannedRoute};
use crate::experiment::{Experiment, Parameter, copy};
use crate::load::Cancel;
use crate::observe::Attachment;
use crate::pinning::Pinning;
use crate::probes_build::ProbePrograms;
use crate::run_directory::RunDirectory;
use crate::services::{Postgres, Redis, Services};
use crate::subject::{self, RunningSubject, Surroundings};
use crate::tools::{INITDB, POSTGRES, REDIS_SERVER};
use crate::ui::Ui;

/// What passes work with. Services are running and seeded, subjects are built, probes exist.
#[derive(Debug)]
pub struct Laboratory {
    /// The experiment.
    pub experiment: Experiment,
    /// What to do.
    pub plan: Plan,
    /// The routes with their requests; the same indices as the experiment's.
    pub routes: Vec<PlannedRoute>,
    /// The services.
    pub services: Services,
    /// Who runs on which cores.
    pub pinning: Pinning,
    /// Where the probe programs are.
    pub probes: ProbePrograms,
    /// The run directory.
    pub run: RunDirectory,
    /// The private temporary directory; removed when everything has ended.
    pub scratch: PathBuf,
    /// The mouth.
    pub ui: Ui,
    /// The wish to stop.
    pub cancel: Cancel,
    /// The service that was there before us, where that is the subject.
    pub attached: Option<Attachment>,
    /// Environment of every subject beside the experiment's.
    pub environment: Vec<(String, String)>,
    runtime: tokio::runtime::Runtime,
}

/// Real services, given on the command line instead of private ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenServices {
    /// `--postgres-url`.
    pub postgres: Option<String>,
    /// `--redis-url`.
    pub redis: Option<String>,
}

/// What a laboratory is made of.
#[derive(Debug)]
pub struct Materials {
    /// The experiment.
    pub experiment: Experiment,
    /// What to do.
    pub plan: Plan,
    /// Who runs on which cores.
    pub pinning: Pinning,
    /// The run directory, just made.
    pub run: RunDirectory,
    /// The private temporary directory.
    pub scratch: PathBuf,
    /// The mouth.
    pub ui: Ui,
    /// The wish to stop.
    pub cancel: Cancel,
}

impl Laboratory {
    /// Builds probes and subjects, starts and seeds services, works out the requests.
    ///
    /// Children are started from the calling thread, which must live as long as they: their
    /// parent-death signal follows the thread.
    pub fn prepare(
        mut materials: Materials,
        given: &GivenServices,
    ) -> Result<Self, Box<Unprepared>> {
        let cancel = materials.cancel.clone();
        let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let prepared = built.context("cannot start the event loop").and_then(|runtime| {
            let prepared = runtime.block_on(or_cancelled(&cancel, materials.prepare(given)))?;
            Ok((runtime, prepared))
        });
        let (runtime, Prepared { probes, services, routes }) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err(Box::new(Unprepared { run: materials.run, error })),
        };
        let Materials { experiment, plan, pinning, run, scratch, ui, cancel } = materials;
        Ok(Self {
            experiment,
            plan,
            routes,
            services,
            pinning,
            probes,
            run,
            scratch,
            ui,
            cancel,
            attached: None,
            environment: Vec::new(),
            runtime,
        })
    }

    /// Takes a service that already runs as the only subject. Nothing is built, started or
    /// seeded but probes.
    pub fn attach(
        mut materials: Materials,
        attachment: Attachment,
    ) -> Result<Self, Box<Unprepared>> {
        let cancel = materials.cancel.clone();
        let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let prepared = built.context("cannot start the event loop").and_then(|runtime| {
            let probes = ProbePrograms::find_or_build(&materials.ui, &materials.scratch);
            let probes = runtime.block_on(or_cancelled(&cancel, probes))?;
            let load = &materials.pinning.load;
            load.take_this_thread().context("cannot move to the load's cores")?;
            let services = Services { found: attachment.services(), ..Services::default() };
            materials.run.record.services =
                services.running().map(crate::services::RunningService::record).collect();
            materials.run.save()?;
            Ok((runtime, probes, services))
        });
        let (runtime, probes, services) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err(Box::new(Unprepared { run: materials.run, error })),
        };
        let Materials { experiment, plan, pinning, run, scratch, ui, cancel } = materials;
        let routes = experiment.routes.iter().map(|route| route.planned(&BTreeMap::new()));
        Ok(Self {
            routes: routes.collect(),
            experiment,
            plan,
            services,
            pinning,
            probes,
            run,
            scratch,
            ui,
            cancel,
            attached: Some(attachment),
            environment: Vec::new(),
            runtime,
        })
    }

    /// Starts an arm, with environment beside the experiment's, and returns when it is ready.
    pub fn start_subject(
        &self,
        arm: usize,
        environment: &[(String, String)],
    ) -> Result<RunningSubject> {
        let arm = self.experiment.arms.get(arm).ok_or_else(|| anyhow!("there is no arm {arm}"))?;
        let subject = &self.experiment.subjects[arm.subject];
        if let Some(attachment) = &self.attached {
            return Ok(attachment.subject(&subject.name, &arm.variant));
        }
        let around = Surroundings {
            services: &self.services,
            cores: &self.pinning.app,
            scratch: &self.scratch,
        };
        let environment = [&self.environment, environment].concat();
        let start = subject::start(subject, &arm.variant, around, &environment);
        self.runtime.block_on(or_cancelled(&self.cancel, start))
    }

    /// What a probe is told of where packets pass; nothing where that is this machine's loopback.
    #[must_use]
    pub fn where_to_look(&self, probe: &str) -> Vec<String> {
        let attached = self.attached.as_ref().filter(|_| probe == "wire");
        attached.map(|attached| attached.vantage.options()).unwrap_or_default()
    }

    /// The process whose network namespace requests are sent from, where it is not ours.
    #[must_use]
    pub fn sends_from(&self) -> Option<Pid> {
        let vantage = &self.attached.as_ref()?.vantage;
        vantage.network.filter(|_| vantage.inside)
    }

    /// Starts an arm with the library preloaded that counts its allocations in the file `counter`.
    pub fn start_counted_subject(&self, arm: usize, counter: &Path) -> Result<RunningSubject> {
        let library = self.probes.allocation_counter();
        if !library.is_file() {
            bail!("{} is not there; build it: {}", library.display(), ProbePrograms::BUILD);
        }
        let preload = ("LD_PRELOAD".to_owned(), library.display().to_string());
        let file = ("ASSAY_ALLOCATION_COUNTER".to_owned(), counter.display().to_string());
        self.start_subject(arm, &[preload, file])
    }

    /// Statements that the subject's role has executed, as `pg_stat_statements` counts them;
    /// `None` where it cannot tell.
    pub fn statement_calls(&mut self) -> Result<Option<u64>> {
        let Some(postgres) = &self.services.postgres else { return Ok(None) };
        let asked = self.runtime.block_on(postgres.statement_calls());
        self.services.explain(asked)
    }

    /// How many connections the subject's role has open in Postgres; `None` without a Postgres.
    pub fn postgres_connections(&self) -> Result<Option<u64>> {
        match &self.services.postgres {
            None => Ok(None),
            Some(postgres) => self.runtime.block_on(postgres.connections()).map(Some),
        }
    }

    /// Stops services; the run directory is what stays.
    #[must_use]
    pub fn close(self) -> RunDirectory {
        let Self { services, run, runtime, .. } = self;
        drop(services);
        drop(runtime);
        run
    }

    /// An error, with its last words, when a private service has ended.
    pub fn check_services(&mut self) -> Result<()> {
        self.services.check()
    }
}

/// Why there is no laboratory, and the run directory that says so.
#[derive(Debug)]
pub struct Unprepared {
    /// The run directory.
    pub run: RunDirectory,
    /// Why.
    pub error: anyhow::Error,
}

/// The error of work that somebody wanted to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Gives up `work` when somebody wants to stop; what it had started ends with it.
async fn or_cancelled<T>(cancel: &Cancel, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Interrupted.into()),
        done = work => done,
    }
}

struct Prepared {
    probes: ProbePrograms,
    services: Services,
    routes: Vec<PlannedRoute>,
}

impl Materials {
    async fn prepare(&mut self, given: &GivenServices) -> Result<Prepared> {
        self.check_tools(given)?;
        let probes = ProbePrograms::find_or_build(&self.ui, &self.scratch).await?;
        self.build_subjects().await?;
        // Builds could use every core; from here on only the load's may be disturbed.
        self.pinning.load.take_this_thread().context("cannot move to the load's cores")?;
        let services = self.start_services(given).await?;
        self.run.record.services =
            services.running().map(crate::services::RunningService::record).collect();
        for service in services.running() {
            let name = service.role.word().to_owned();
            self.run.record.versions.insert(name, service.version.clone());
        }
        let mut services = services;
        let asked = self.ask_services(&services).await;
        let routes = services.explain(asked)?;
        self.run.save()?;
        Ok(Prepared { probes, services, routes })
    }

    /// Seeds, works out the requests, and measures a round trip.
    async fn ask_services(&mut self, services: &Services) -> Result<Vec<PlannedRoute>> {
        self.seed(services).await?;
        let routes = self.work_out_routes(services).await?;
        if let Some(postgres) = &services.postgres {
            match postgres.select_1_round_trip().await {
                Ok(median) => self.run.record.select_1 = Some(median),
                Err(error) => self.run.record.notes.push(format!("{error:#}")),
            }
        }
        Ok(routes)
    }

    /// What is missing is told before minutes are spent on builds.
    fn check_tools(&self, given: &GivenServices) -> Result<()> {
        if self.experiment.redis.is_some() && given.redis.is_none() {
            REDIS_SERVER.require()?;
        }
        if self.experiment.postgres.is_some() && given.postgres.is_none() {
            INITDB.require()?;
            POSTGRES.require()?;
        }
        Ok(())
    }

    async fn build_subjects(&self) -> Result<()> {
        let mut used: Vec<usize> =
            self.plan.arms().iter().map(|&arm| self.experiment.arms[arm].subject).collect();
        used.dedup();
        for index in used {
            let subject = &self.experiment.subjects[index];
            if subject.build.is_empty() {
                continue;
            }
            let progress = self.ui.work(&format!("build {}", subject.name));
            subject::build(subject, &self.scratch, &progress).await?;
            progress.done("built");
        }
        Ok(())
    }

    async fn start_services(&self, given: &GivenServices) -> Result<Services> {
        let mut services = Services::default();
        let cores = &self.pinning.services;
        if let Some(settings) = &self.experiment.postgres {
            let progress = self.ui.work("start postgres");
            let postgres = match &given.postgres {
                Some(url) => Postgres::attach(url).await?,
                None => Postgres::start(settings, &self.scratch, cores, &progress).await?,
            };
            progress.done(&described(&postgres.service));
            services.postgres = Some(postgres);
        }
        if let Some(settings) = &self.experiment.redis {
            let progress = self.ui.work("start redis");
            let redis = match &given.redis {
                Some(url) => Redis::attach(url).await?,
                None => Redis::start(settings, &self.scratch, cores).await?,
            };
            progress.done(&described(&redis.service));
            services.redis = Some(redis);
        }
        Ok(services)
    }

    async fn seed(&self, services: &Services) -> Result<()> {
        let (Some(postgres), Some(settings)) = (&services.postgres, &self.experiment.postgres)
        else {
            return Ok(());
        };
        if settings.init.is_empty() {
            return Ok(());
        }
        let progress = self.ui.work("seed postgres");
        postgres.seed(settings, &progress).await?;
        let given = !postgres.service.private && !settings.init_given;
        progress.done(if given { "left as it is: it was given" } else { "seeded" });
        Ok(())
    }

    async fn work_out_routes(&self, services: &Services) -> Result<Vec<PlannedRoute>> {
        let mut planned = Vec::new();
        for route in &self.experiment.routes {
            let mut values = BTreeMap::new();
            for (name, parameter) in &route.parameters {
                let found = match parameter {
                    Parameter::Values(values) => values.clone(),
                    Parameter::Sql(sql) => ask(services, &route.name, name, sql).await?,
                };
                values.insert(name.clone(), found);
            }
            planned.push(route.planned(&values));
        }
        Ok(planned)
    }
}

async fn ask(services: &Services, route: &str, name: &str, sql: &str) -> Result<Vec<String>> {
    let postgres = services.postgres.as_ref().ok_or_else(|| anyhow!("there is no postgres"))?;
    let asked = postgres.first_column(sql).await;
    let values = asked.with_context(|| format!("parameter {name} of route {route}: {sql}"))?;
    if values.is_empty() {
        bail!("parameter {name} of route {route}: the query has no row: {sql}");
    }
    Ok(values)
}

fn described(service: &crate::services::RunningService) -> String {
    let kind = if service.private { "private" } else { "given" };
    format!("{kind}, version {}, port {}", service.version, service.port.0)
}

/// The arms of a plan, as the run record holds them: the first is what the others are compared
/// with. Templates stay unexpanded: no secrets.
#[must_use]
pub fn arm_records(experiment: &Experiment, plan: &Plan) -> Vec<run_record::Arm> {
    let arms = plan.arms().into_iter().filter_map(|arm| experiment.arms.get(arm));
    arms.map(|arm| {
        let subject = &experiment.subjects[arm.subject];
        let mut environment = subject.env.clone();
        environment.extend(arm.variant.env.clone());
        run_record::Arm {
            subject: subject.name.clone(),
            variant: arm.variant.name.clone(),
            title: arm.variant.title.clone(),
            environment: copy::environment(environment),
        }
    })
    .collect()
}

/// The routes, as the run record holds them.
#[must_use]
pub fn route_records(experiment: &Experiment) -> Vec<run_record::Route> {
    let routes = experiment.routes.iter();
    routes
        .map(|route| run_record::Route {
            name: route.name.clone(),
            method: route.method.clone(),
            path: route.path.clone(),
            query_budget: route.query_budget,
        })
        .collect()
}

/// Where runs are kept: `runs` in the working directory.
#[must_use]
pub fn runs_folder() -> &'static Path {
    Path::new("runs")
}
