//! The rules of an experiment, checked one by one while it is built.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ablations::{self, Known};
use super::file::{
    ExperimentFile, LoadFile, PassFile, PassesFile, PinningFile, QuickFile, RouteFile, Scalar,
    ServicesFile, SubjectFile, VariantFile,
};
use super::read::Fault;
use super::routes::route;
use super::template::{Offer, check_template};
use super::{
    Arm, Cores, Experiment, LoadSettings, PassKind, PassSettings, Passes, PinningSettings,
    PostgresSettings, Quick, Ready, RedisSettings, Route, Subject, Variant, nearest,
};

/// The longest time that may be typed: a day.
const LONGEST_S: f64 = 86_400.0;

pub(super) fn experiment(
    typed: ExperimentFile,
    file: &Path,
    folder: &Path,
    text: &str,
) -> Result<Experiment, Fault> {
    check_name("name", &typed.name)?;
    let (postgres, redis) = services(&typed.services, folder)?;
    let offer = Offer { postgres: postgres.is_some(), redis: redis.is_some() };
    let (subjects, arms) = subjects(&typed.subject, folder, offer)?;
    let routes = routes(&typed.route, folder, postgres.is_some())?;
    let passes = passes("passes", &typed.passes, &PassKind::STANDARD)?;
    let quick = quick(&typed.quick, &subjects, &routes, &passes.run)?;
    let known = Known { subjects: &subjects, arms: &arms, routes: &routes };
    let claims = ablations::claims(&typed.ablation, known)?;
    let phases = files("phases", &typed.phases, folder)?;
    Ok(Experiment {
        file: file.to_path_buf(),
        text: text.to_owned(),
        title: typed.title.unwrap_or_else(|| typed.name.clone()),
        name: typed.name,
        unit: typed.unit.unwrap_or_else(|| "request".to_owned()),
        postgres,
        redis,
        subjects,
        arms,
        copy: None,
        routes,
        claims,
        load: load(&typed.load)?,
        pinning: pinning(&typed.pinning)?,
        passes,
        quick,
        phases,
    })
}

/// Names become folders and column labels.
pub(super) fn check_name(place: &str, name: &str) -> Result<(), Fault> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
        let rule = "1 to 64 letters, digits, `-` and `_`, because it names a folder";
        return Err(Fault::at(place, format!("the name {name:?} is not made of {rule}")));
    }
    Ok(())
}

fn check_unique<'a>(
    what: &str,
    names: impl Iterator<Item = (String, &'a str)>,
) -> Result<(), Fault> {
    let mut seen = Vec::new();
    for (place, name) in names {
        if seen.contains(&name) {
            return Err(Fault::at(&place, format!("there are two {what}s named {name:?}")));
        }
        seen.push(name);
    }
    Ok(())
}

fn services(
    typed: &ServicesFile,
    folder: &Path,
) -> Result<(Option<PostgresSettings>, Option<RedisSettings>), Fault> {
    let postgres = typed.postgres.as_ref().map(|postgres| {
        Ok(PostgresSettings {
            init: files("services.postgres.init", &postgres.init, folder)?,
            settings: settings("services.postgres.settings", &postgres.settings)?,
            init_given: postgres.init_given,
        })
    });
    let redis = typed.redis.as_ref().map(|redis| {
        Ok(RedisSettings { settings: settings("services.redis.settings", &redis.settings)? })
    });
    Ok((postgres.transpose()?, redis.transpose()?))
}

/// Settings become lines of a configuration file.
fn settings(
    place: &str,
    typed: &BTreeMap<String, Scalar>,
) -> Result<BTreeMap<String, String>, Fault> {
    for (name, value) in typed {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || !name.bytes().all(fits) || value.0.contains(['\n', '\r', '\0']) {
            let message = format!("{name:?} is not a setting of one line");
            return Err(Fault::at(&format!("{place}.{name}"), message));
        }
    }
    Ok(plain(typed))
}

fn plain(typed: &BTreeMap<String, Scalar>) -> BTreeMap<String, String> {
    typed.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
}

pub(super) fn existing_file(place: &str, name: &str, folder: &Path) -> Result<PathBuf, Fault> {
    let path = folder.join(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(Fault::at(place, format!("there is no file {}", path.display())))
    }
}

fn files(place: &str, names: &[String], folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let file =
        |(index, name): (usize, &String)| existing_file(&format!("{place}.{index}"), name, folder);
    names.iter().enumerate().map(file).collect()
}

fn subjects(
    typed: &[SubjectFile],
    folder: &Path,
    offer: Offer,
) -> Result<(Vec<Subject>, Vec<Arm>), Fault> {
    if typed.is_empty() {
        return Err(Fault::at("subject", "there is no [[subject]]: nothing could be measured"));
    }
    let names = typed.iter().enumerate();
    check_unique("subject", names.map(|(i, s)| (format!("subject.{i}.name"), s.name.as_str())))?;
    let mut subjects = Vec::new();
    let mut arms = Vec::new();
    for (index, subject) in typed.iter().enumerate() {
        subjects.push(one_subject(&format!("subject.{index}"), subject, folder, offer)?);
        let variants = variants(&format!("subject.{index}"), &subject.variant, offer)?;
        arms.extend(variants.into_iter().map(|variant| Arm { subject: index, variant }));
    }
    Ok((subjects, arms))
}

fn one_subject(
    place: &str,
    typed: &SubjectFile,
    folder: &Path,
    offer: Offer,
) -> Result<Subject, Fault> {
    check_name(&format!("{place}.name"), &typed.name)?;
    let dir = typed.dir.as_ref().map_or_else(|| folder.to_path_buf(), |dir| folder.join(dir));
    if !dir.is_dir() {
        let message = format!("there is no folder {}", dir.display());
        return Err(Fault::at(&format!("{place}.dir"), message));
    }
    if typed.command.first().is_none_or(String::is_empty) {
        return Err(Fault::at(&format!("{place}.command"), "the command is empty"));
    }
    for (index, word) in typed.command.iter().enumerate() {
        check_template(&format!("{place}.command.{index}"), word, offer)?;
    }
    check_env(place, &typed.env, offer)?;
    let ready = typed.ready.as_ref();
    let path = ready.map_or("/", |ready| ready.path.as_str());
    if !path.starts_with('/') {
        return Err(Fault::at(&format!("{place}.ready.path"), "the path does not begin with /"));
    }
    let timeout = ready.and_then(|ready| ready.timeout_s);
    Ok(Subject {
        name: typed.name.clone(),
        dir,
        build: typed.build.clone(),
        command: typed.command.clone(),
        env: plain(&typed.env),
        ready: Ready {
            path: path.to_owned(),
            timeout: seconds(&format!("{place}.ready.timeout_s"), timeout)?
                .unwrap_or(Duration::from_secs(30)),
        },
    })
}

fn check_env(place: &str, env: &BTreeMap<String, Scalar>, offer: Offer) -> Result<(), Fault> {
    for (name, value) in env {
        let place = format!("{place}.env.{name}");
        if name.is_empty() || name.contains(['=', '\0']) || value.0.contains('\0') {
            return Err(Fault::at(&place, format!("{name:?} is not an environment variable")));
        }
        check_template(&place, &value.0, offer)?;
    }
    Ok(())
}

fn variants(place: &str, typed: &[VariantFile], offer: Offer) -> Result<Vec<Variant>, Fault> {
    let named = typed.iter().enumerate();
    check_unique(
        "variant",
        named.map(|(i, v)| (format!("{place}.variant.{i}.name"), v.name.as_str())),
    )?;
    let mut variants = Vec::new();
    for (index, variant) in typed.iter().enumerate() {
        let place = format!("{place}.variant.{index}");
        check_name(&format!("{place}.name"), &variant.name)?;
        check_env(&place, &variant.env, offer)?;
        for (index, word) in variant.args.iter().enumerate() {
            check_template(&format!("{place}.args.{index}"), word, offer)?;
        }
        variants.push(Variant {
            name: variant.name.clone(),
            title: variant.title.clone().unwrap_or_else(|| variant.name.clone()),
            env: plain(&variant.env),
            args: variant.args.clone(),
        });
    }
    if variants.is_empty() {
        let name = "default".to_owned();
        variants.push(Variant {
            title: name.clone(),
            name,
            env: BTreeMap::new(),
            args: Vec::new(),
        });
    }
    Ok(variants)
}

fn routes(typed: &[RouteFile], folder: &Path, postgres: bool) -> Result<Vec<Route>, Fault> {
    if typed.is_empty() {
        return Err(Fault::at("route", "there is no [[route]]: nothing would be asked for"));
    }
    let names = typed.iter().enumerate();
    check_unique("route", names.map(|(i, r)| (format!("route.{i}.name"), r.name.as_str())))?;
    let routes = typed.iter().enumerate();
    routes.map(|(index, typed)| route(&format!("route.{index}"), typed, folder, postgres)).collect()
}

/// A time in seconds: positive, and at most a day.
fn seconds(place: &str, typed: Option<f64>) -> Result<Option<Duration>, Fault> {
    let Some(seconds) = typed else { return Ok(None) };
    if seconds.is_finite() && seconds > 0.0 && seconds <= LONGEST_S {
        Ok(Some(Duration::from_secs_f64(seconds)))
    } else {
        Err(Fault::at(place, format!("{seconds} is not a time above 0 and up to a day")))
    }
}

fn load(typed: &LoadFile) -> Result<LoadSettings, Fault> {
    let connections = typed.connections.unwrap_or(16);
    if connections == 0 || connections > 10_000 {
        let message = format!("{connections} connections: 1 to 10000 can be kept open");
        return Err(Fault::at("load.connections", message));
    }
    let gap = typed.gap_ms.map(|gap| gap / 1e3);
    Ok(LoadSettings {
        connections,
        warm_up: seconds("load.warm_up_s", typed.warm_up_s)?.unwrap_or(Duration::from_secs(2)),
        timeout: seconds("load.timeout_s", typed.timeout_s)?.unwrap_or(Duration::from_secs(10)),
        gap: seconds("load.gap_ms", gap)?.unwrap_or(Duration::from_millis(3)),
    })
}

fn pinning(typed: &PinningFile) -> Result<PinningSettings, Fault> {
    let cores = |what: &str, list: &Option<String>| {
        let place = format!("pinning.{what}");
        list.as_deref().map_or(Ok(Cores::Auto), |list| core_list(&place, list))
    };
    Ok(PinningSettings {
        app: cores("app", &typed.app)?,
        services: cores("services", &typed.services)?,
        load: cores("load", &typed.load)?,
    })
}

/// `auto`, or cores as the kernel writes them: `0`, `0-3`, `0,2-3`.
fn core_list(place: &str, list: &str) -> Result<Cores, Fault> {
    if list == "auto" {
        return Ok(Cores::Auto);
    }
    let wrong = || {
        Fault::at(place, format!("{list:?} is neither \"auto\" nor a list of cores like \"0-2,5\""))
    };
    let mut cores = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| wrong())?;
        let last: usize = last.trim().parse().map_err(|_| wrong())?;
        if first > last || last > 4095 {
            return Err(wrong());
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(Cores::List(cores))
}

fn passes(place: &str, typed: &PassesFile, unsaid: &[PassKind]) -> Result<Passes, Fault> {
    let mut run = Vec::new();
    let names = typed.run.iter().flatten().enumerate();
    for (index, name) in names {
        let Some(kind) = PassKind::from_word(name) else {
            let known = PassKind::ALL.map(PassKind::word);
            let hint = nearest(name, known)
                .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
            let message = format!("there is no pass {name:?}{hint} ({})", known.join(", "));
            return Err(Fault::at(&format!("{place}.run.{index}"), message));
        };
        run.push(kind);
    }
    if run.is_empty() && typed.run.is_some() {
        return Err(Fault::at(&format!("{place}.run"), "the list of passes is empty"));
    }
    if run.is_empty() {
        run = unsaid.to_vec();
    }
    let mut settings = BTreeMap::new();
    for (kind, typed) in [
        (PassKind::Fair, &typed.fair),
        (PassKind::Serial, &typed.serial),
        (PassKind::Wire, &typed.wire),
        (PassKind::Syscalls, &typed.syscalls),
        (PassKind::Cpu, &typed.cpu),
        (PassKind::Allocations, &typed.allocations),
    ] {
        if let Some(typed) = typed {
            settings.insert(kind, pass(&format!("{place}.{}", kind.word()), kind, typed)?);
        }
    }
    Ok(Passes { run, settings })
}

fn pass(place: &str, kind: PassKind, typed: &PassFile) -> Result<PassSettings, Fault> {
    if typed.rounds == Some(0) || typed.requests == Some(0) {
        let what = if typed.rounds == Some(0) { "rounds" } else { "requests" };
        return Err(Fault::at(&format!("{place}.{what}"), format!("0 {what} measure nothing")));
    }
    if kind == PassKind::Fair && typed.rounds.is_some_and(|rounds| rounds % 2 == 1) {
        let message = "the number of rounds is odd, and order is balanced in pairs of rounds";
        return Err(Fault::at(&format!("{place}.rounds"), message));
    }
    if kind == PassKind::Serial && typed.lap_s.is_some() {
        let message = "a serial lap has a number of `requests`, not a length";
        return Err(Fault::at(&format!("{place}.lap_s"), message));
    }
    if kind != PassKind::Serial && typed.requests.is_some() {
        let message = "a lap under load has a length `lap_s`, not a number of requests";
        return Err(Fault::at(&format!("{place}.requests"), message));
    }
    if typed.iterations == Some(0) {
        return Err(Fault::at(&format!("{place}.iterations"), "0 iterations measure nothing"));
    }
    if typed.iterations.is_some() && (kind == PassKind::Serial || typed.lap_s.is_some()) {
        let message = if kind == PassKind::Serial {
            "a serial lap has a number of `requests`"
        } else {
            "a lap ends after `lap_s` or after `iterations`, not after both"
        };
        return Err(Fault::at(&format!("{place}.iterations"), message));
    }
    Ok(PassSettings {
        rounds: typed.rounds,
        iterations: typed.iterations,
        lap: seconds(&format!("{place}.lap_s"), typed.lap_s)?,
        requests: typed.requests,
    })
}

fn quick(
    typed: &QuickFile,
    subjects: &[Subject],
    routes: &[Route],
    run: &[PassKind],
) -> Result<Quick, Fault> {
    let subject_names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    let route_names: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
    let chosen = named("quick.subjects", "subject", typed.subjects.as_deref(), &subject_names)?;
    let place = "quick.every_variant_on";
    let every = named(place, "route", typed.every_variant_on.as_deref(), &route_names)?;
    Ok(Quick {
        subjects: chosen.unwrap_or_default(),
        every_variant_on: every.unwrap_or_else(|| (0..routes.len()).collect()),
        warm_up: seconds("quick.warm_up_s", typed.warm_up_s)?,
        passes: passes("quick.passes", &typed.passes, run)?,
    })
}

/// The indices of a list of names among the known ones; `None` where there is no list.
fn named(
    place: &str,
    what: &str,
    typed: Option<&[String]>,
    known: &[&str],
) -> Result<Option<Vec<usize>>, Fault> {
    let Some(typed) = typed else { return Ok(None) };
    let index = |(index, name): (usize, &String)| {
        known.iter().position(|known| known == name).ok_or_else(|| {
            let hint = nearest(name, known.iter().copied())
                .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
            let place = format!("{place}.{index}");
            Fault::at(&place, format!("there is no {what} {name:?}{hint}"))
        })
    };
    typed.iter().enumerate().map(index).collect::<Result<_, _>>().map(Some)
}
