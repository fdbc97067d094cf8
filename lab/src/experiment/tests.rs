//! What is accepted, and what is refused in which words.

use std::collections::BTreeMap;
use std::path::Path;

use super::plan::{Cell, Choice, Plan};
use super::read::parse;
use super::*;
use crate::load::Stop;

const SMALL: &str = r#"
name = "small"

[services.postgres]
settings = { max_connections = 50, jit = "off" }

[[subject]]
name = "app"
command = ["./app", "--bind", "{address}"]
env = { DATABASE_URL = "{postgres.url}" }
[[subject.variant]]
name = "one"
[[subject.variant]]
name = "two"
env = { PING = "off" }

[[route]]
name = "index"
path = "/"

[[route]]
name = "detail"
path = "/post/{slug}"
parameters = { slug = { values = ["a b", "c"] } }
"#;

fn read(text: &str) -> Result<Experiment, ExperimentError> {
    parse(Path::new("x.toml"), Path::new(env!("CARGO_MANIFEST_DIR")), text)
}

/// Reads `SMALL` with `from` replaced by `to`, and expects these words.
fn refused(from: &str, to: &str, words: &str) {
    assert!(SMALL.contains(from), "{from:?} is not in the small experiment");
    let error = read(&SMALL.replacen(from, to, 1)).unwrap_err().to_string();
    assert_eq!(error, words);
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn a_small_experiment_is_read_with_its_standards() {
    let experiment = read(SMALL).unwrap();
    assert_eq!(experiment.title, "small");
    assert_eq!(experiment.unit, "request");
    assert_eq!(experiment.postgres.unwrap().settings["max_connections"], "50");
    assert_eq!(experiment.redis, None);
    assert_eq!(experiment.arms.len(), 2);
    assert_eq!(experiment.arms[1].variant.env["PING"], "off");
    assert_eq!(experiment.load.connections, 16);
    assert_eq!(experiment.passes.run, PassKind::STANDARD);
    assert_eq!(experiment.subjects[0].ready.timeout, Duration::from_secs(30));
}

#[test]
fn unknown_keys_are_refused_with_line_and_suggestion() {
    refused(
        "env = { PING",
        "enw = { PING",
        "x.toml:15: unknown key `enw`; did you mean `env`? (keys here: name, title, env, args)",
    );
    refused(
        "path = \"/\"",
        "path = \"/\"\nzzz = 1",
        "x.toml:20: unknown key `zzz` (keys here: name, method, path, parameters, headers, body, \
         answers, query_budget)",
    );
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    refused(
        "name = \"two\"",
        "name = zwei",
        "x.toml:14: string values must be quoted, expected literal string",
    );
    refused(
        "name = \"two\"",
        "name = 2",
        "x.toml:14: invalid type: integer `2`, expected a string",
    );
}

#[test]
fn what_is_empty_or_doubled_is_refused() {
    let headless = &SMALL[..SMALL.find("[[route]]").unwrap()];
    assert_eq!(
        read(headless).unwrap_err().to_string(),
        "x.toml:1: there is no [[route]]: nothing would be asked for"
    );
    assert_eq!(
        read("name = \"x\"").unwrap_err().to_string(),
        "x.toml:1: there is no [[subject]]: nothing could be measured"
    );
    refused("\"two\"", "\"one\"", "x.toml:14: there are two variants named \"one\"");
    refused("\"detail\"", "\"index\"", "x.toml:22: there are two routes named \"index\"");
    refused("[\"a b\", \"c\"]", "[]", "x.toml:24: has no value");
}

#[test]
fn files_that_are_not_there_are_named() {
    let here = env!("CARGO_MANIFEST_DIR");
    refused(
        "settings =",
        "init = [\"none.sql\"]\nsettings =",
        &format!("x.toml:5: there is no file {here}/none.sql"),
    );
    refused(
        "name = \"app\"",
        "name = \"app\"\ndir = \"nowhere\"",
        &format!("x.toml:9: there is no folder {here}/nowhere"),
    );
}

#[test]
fn templates_and_placeholders_must_have_something_behind_them() {
    refused(
        "{postgres.url}",
        "{redis.url}",
        "x.toml:10: {redis.url} needs [services.redis], which is not there",
    );
    refused(
        "{address}",
        "{adress}",
        "x.toml:9: there is no template {adress}; did you mean {address}?",
    );
    refused(
        "/post/{slug}",
        "/post/{slog}",
        "x.toml:23: {slog} has no entry in `parameters`; did you mean {slug}?",
    );
    refused(
        "/post/{slug}",
        "/post/",
        "x.toml:24: {slug} stands neither in the path nor in the body",
    );
    refused("/post/{slug}", "/post/{slug", "x.toml:23: the braces in the path do not match");
}

#[test]
fn lengths_that_measure_nothing_are_refused() {
    let passes = |text: &str| format!("{SMALL}\n{text}");
    let error = |text: &str| read(&passes(text)).unwrap_err().message;
    assert_eq!(error("[passes.wire]\nrounds = 0"), "0 rounds measure nothing");
    assert_eq!(error("[passes.fair]\nlap_s = -1"), "-1 is not a time above 0 and up to a day");
    assert!(error("[passes.fair]\nrounds = 3").contains("balanced in pairs"));
    assert!(error("[passes]\nrun = [\"wier\"]").contains("did you mean \"wire\"?"));
    assert!(error("[pinning]\napp = \"first\"").contains("neither \"auto\" nor a list"));
    assert!(error("[load]\nconnections = 0").contains("1 to 10000"));
}

#[test]
fn requests_take_their_values_in_turn_and_are_percent_encoded() {
    let experiment = read(SMALL).unwrap();
    let values = BTreeMap::from([("slug".to_owned(), vec!["a b".to_owned(), "ü/".to_owned()])]);
    let planned = experiment.routes[1].planned(&values);
    let paths: Vec<&str> = planned.targets.iter().map(|target| target.path.as_str()).collect();
    assert_eq!(paths, ["/post/a%20b", "/post/%C3%BC%2F"]);
    assert_eq!(experiment.routes[0].planned(&BTreeMap::new()).targets.len(), 1);
}

#[test]
fn a_plan_goes_route_by_route_and_a_quick_one_leaves_variants_out() {
    let text = format!("{SMALL}\n[quick]\nevery_variant_on = [\"detail\"]");
    let experiment = read(&text).unwrap();
    let cells = |choice: &Choice| Plan::make(&experiment, choice).unwrap().passes[0].cells.clone();
    let cell = |arm, route| Cell { arm, route };
    assert_eq!(cells(&Choice::default()), [cell(0, 0), cell(1, 0), cell(0, 1), cell(1, 1)]);
    let quick = Choice { quick: true, ..Choice::default() };
    assert_eq!(cells(&quick), [cell(0, 0), cell(0, 1), cell(1, 1)]);
    let only = Choice { only: vec!["app.two".to_owned()], ..Choice::default() };
    assert_eq!(cells(&only), [cell(1, 0), cell(1, 1)]);
}

#[test]
fn a_quick_plan_takes_its_own_subjects_unless_others_are_named() {
    let other = "[[subject]]\nname = \"other\"\ncommand = [\"./other\"]\n\n[[route]]";
    let text = SMALL.replacen("[[route]]", other, 1);
    let text = format!("{text}\n[quick]\nsubjects = [\"app\"]");
    let experiment = read(&text).unwrap();
    let arms = |choice: &Choice| Plan::make(&experiment, choice).unwrap().arms();
    assert_eq!(arms(&Choice::default()), [0, 1, 2]);
    assert_eq!(arms(&Choice { quick: true, ..Choice::default() }), [0, 1]);
    let only = vec!["other".to_owned()];
    assert_eq!(arms(&Choice { quick: true, only, ..Choice::default() }), [2]);
    let error = read(&text.replace("[\"app\"]", "[\"ap\"]")).unwrap_err().to_string();
    assert!(error.ends_with("there is no subject \"ap\"; did you mean \"app\"?"), "{error}");
}

#[test]
fn a_rigorous_plan_restarts_and_a_number_of_requests_ends_a_lap() {
    let text = format!("{SMALL}\n[passes.fair]\niterations = 5000\n[quick.passes.fair]\nlap_s = 1");
    let experiment = read(&text).unwrap();
    let fair = |choice: &Choice| Plan::make(&experiment, choice).unwrap().passes[0].clone();
    let full = fair(&Choice::default());
    assert_eq!((full.stop(), full.rounds, full.restart), (Stop::Requests(5000), 6, false));
    let quick = fair(&Choice { quick: true, ..Choice::default() });
    assert_eq!(quick.stop(), Stop::After(Duration::from_secs(1)));
    let rigorous = fair(&Choice { rigorous: true, ..Choice::default() });
    assert_eq!((rigorous.rounds, rigorous.restart), (10, true));
    let lap = Some(Duration::from_secs(2));
    let chosen = fair(&Choice { rigorous: true, rounds: Some(4), lap, ..Choice::default() });
    assert_eq!((chosen.rounds, chosen.stop()), (4, Stop::After(Duration::from_secs(2))));
    let both = text.replace("iterations = 5000", "iterations = 5000\nlap_s = 2");
    let words = "a lap ends after `lap_s` or after `iterations`, not after both";
    assert!(read(&both).unwrap_err().to_string().ends_with(words));
}

const ABLATION: &str = r#"
[[ablation]]
name = "ping"
cause = "it pings"
subject = "app"
base = "one"
flipped = "two"
expect = [{ route = "detail", metric = "throughput", change = "rises", by = 0.1 }]
"#;

#[test]
fn an_ablation_is_kept_where_both_of_its_variants_are_measured_on_its_route() {
    let experiment = read(&format!("{SMALL}{ABLATION}")).unwrap();
    let claims = |choice: &Choice| {
        let plan = Plan::make(&experiment, choice).unwrap();
        ablations::of_plan(&experiment, &plan).len()
    };
    assert_eq!(claims(&Choice::default()), 1);
    assert_eq!(claims(&Choice { only: vec!["app.two".into()], ..Choice::default() }), 0);
    assert_eq!(claims(&Choice { routes: vec!["index".into()], ..Choice::default() }), 0);
}

#[test]
fn an_ablation_of_what_is_not_there_is_refused() {
    for (from, to, words) in [
        ("\"two\"", "\"too\"", "there is no variant \"too\"; did you mean \"two\"?"),
        ("\"two\"", "\"one\"", "the base is the flipped variant itself: nothing differs"),
        (
            "throughput",
            "troughput",
            "there is no metric \"troughput\"; did you mean \"throughput\"?",
        ),
        ("0.1", "-0.1", "not a share above 0: 0.25 is a quarter"),
        ("\"detail\"", "\"detial\"", "there is no route \"detial\"; did you mean \"detail\"?"),
    ] {
        let text = format!("{SMALL}{}", ABLATION.replacen(from, to, 1));
        let error = read(&text).unwrap_err().to_string();
        assert!(error.ends_with(words), "{error}");
    }
}

#[test]
fn a_choice_of_what_is_not_there_names_what_is() {
    let experiment = read(SMALL).unwrap();
    let choice = Choice { routes: vec!["detial".to_owned()], ..Choice::default() };
    assert_eq!(
        Plan::make(&experiment, &choice).unwrap_err().to_string(),
        "there is no route \"detial\"; did you mean \"detail\"? (there are: index, detail)"
    );
}

/// Write it anew with `ASSAY_WRITE_SCHEMA=1 cargo test -p assay schema`.
#[test]
fn the_shipped_schema_is_made_from_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/experiment.schema.json");
    let made = file::json_schema_text();
    if std::env::var_os("ASSAY_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), made);
}

#[test]
fn the_experiments_that_ship_are_read() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in [
        "experiments/blog/experiment.toml",
        "experiments/json-api/experiment.toml",
        "tests/experiments/clients/experiment.toml",
    ] {
        let experiment = load(&lab.join(file)).unwrap();
        assert!(Plan::make(&experiment, &Choice::default()).is_ok());
    }
}
