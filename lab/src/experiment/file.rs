//! An experiment file as it is typed. Unknown keys are refused; nothing here is checked beyond
//! its type. The JSON Schema for editors is made from these types.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// An Assay experiment: what is run, under which load, and what is recorded
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// Short name of letters, digits, `-` and `_`; names the run directory
    pub name: String,
    /// Heading of reports; the name where it is left out
    pub title: Option<String>,
    /// What everything is divided by; `request` where it is left out
    pub unit: Option<String>,
    /// The services that subjects use
    #[serde(default)]
    pub services: ServicesFile,
    /// The programs under test
    #[serde(default)]
    pub subject: Vec<SubjectFile>,
    /// The requests
    #[serde(default)]
    pub route: Vec<RouteFile>,
    /// Causes, each with the variant that flips it alone
    #[serde(default)]
    pub ablation: Vec<AblationFile>,
    /// How requests are sent
    #[serde(default)]
    pub load: LoadFile,
    /// Who runs on which cores
    #[serde(default)]
    pub pinning: PinningFile,
    /// Which passes are run, and how long
    #[serde(default)]
    pub passes: PassesFile,
    /// The short plan, for `--quick` and the demo
    #[serde(default)]
    pub quick: QuickFile,
    /// Files with rules for CPU phases; they come before the built-in ones
    #[serde(default)]
    pub phases: Vec<String>,
}

/// The services that subjects use
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServicesFile {
    /// A Postgres
    pub postgres: Option<PostgresFile>,
    /// A Redis
    pub redis: Option<RedisFile>,
}

/// A Postgres
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostgresFile {
    /// SQL files that make tables and rows, run in order
    #[serde(default)]
    pub init: Vec<String>,
    /// Server settings of the private instance, such as `shared_buffers = "256MB"`
    #[serde(default)]
    pub settings: BTreeMap<String, Scalar>,
    /// Run `init` also on a database given by `--postgres-url`; false where it is left out
    #[serde(default)]
    pub init_given: bool,
}

/// A Redis
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedisFile {
    /// Server settings of the private instance, such as `maxmemory = "64mb"`
    #[serde(default)]
    pub settings: BTreeMap<String, Scalar>,
}

/// A program under test
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubjectFile {
    /// Its name, of letters, digits, `-` and `_`
    pub name: String,
    /// Where it is built and started, relative to this file; this file's folder where left out
    pub dir: Option<String>,
    /// The command that builds it
    #[serde(default)]
    pub build: Vec<String>,
    /// The command that starts it; a program with a slash is looked up in `dir`
    pub command: Vec<String>,
    /// Its environment. `{postgres.url}`, `{redis.url}`, `{address}` and `{port}` are replaced
    #[serde(default)]
    pub env: BTreeMap<String, Scalar>,
    /// How it is known to be ready
    pub ready: Option<ReadyFile>,
    /// The same program under other environments or arguments; the first is the reference
    #[serde(default)]
    pub variant: Vec<VariantFile>,
}

/// How a subject is known to be ready: a GET answers 2xx
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadyFile {
    /// The path that is asked for
    pub path: String,
    /// How long it may take, in seconds; 30 where it is left out
    pub timeout_s: Option<f64>,
}

/// The same program under another environment or arguments
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariantFile {
    /// Its name, of letters, digits, `-` and `_`
    pub name: String,
    /// What tables print above its column; the name where it is left out
    pub title: Option<String>,
    /// Environment beside the subject's
    #[serde(default)]
    pub env: BTreeMap<String, Scalar>,
    /// Arguments after the subject's command
    #[serde(default)]
    pub args: Vec<String>,
}

/// A request
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteFile {
    /// Its name, of letters, digits, `-` and `_`
    pub name: String,
    /// HTTP method; `GET` where it is left out
    pub method: Option<String>,
    /// Path with placeholders, such as `/post/{slug}`
    pub path: String,
    /// Where the values of each placeholder come from
    #[serde(default)]
    pub parameters: BTreeMap<String, ParameterFile>,
    /// Header fields
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body; placeholders of `parameters` are replaced in it
    pub body: Option<String>,
    /// Whether every subject must answer with the same bytes (`same`, where it is left out) or
    /// only with a 2xx status (`vary`)
    pub answers: Option<AnswersFile>,
    /// SQL statements that the page may use
    pub query_budget: Option<u32>,
}

/// What is asked of answers
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnswersFile {
    /// The reference's bytes
    Same,
    /// A 2xx status
    Vary,
}

/// Where the values of a placeholder come from: exactly one of these
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterFile {
    /// These values, in turn
    pub values: Option<Vec<Scalar>>,
    /// The lines of this file, in turn
    pub file: Option<String>,
    /// The first column of this query, asked once after the seeding
    pub sql: Option<String>,
}

/// A cause, and the variant that flips it alone: the run says whether it was shown
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AblationFile {
    /// Its name, of letters, digits, `-` and `_`
    pub name: String,
    /// The cause, one sentence
    pub cause: String,
    /// The subject
    pub subject: String,
    /// The variant that has the cause
    pub base: String,
    /// The variant that differs from it in the cause alone
    pub flipped: String,
    /// What must change from `base` to `flipped` if the cause is real
    pub expect: Vec<ExpectationFile>,
}

/// What one figure does when a cause is flipped
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectationFile {
    /// The route
    pub route: String,
    /// The metric, such as `throughput` or `postgres.flights`
    pub metric: String,
    /// Which part of it, such as `reason = "pool ping"`; the total where left out
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// `falls`, `rises` or `stays`
    pub change: ChangeFile,
    /// By how much at least, relative: 0.25 is a quarter. For `stays` by how much at most; 0.03
    /// where left out
    pub by: Option<f64>,
}

/// Which way a figure goes
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeFile {
    /// It becomes less
    Falls,
    /// It becomes more
    Rises,
    /// It stays as it is
    Stays,
}

/// How requests are sent
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadFile {
    /// Connections that each send their next request when they have their answer; 16 where left out
    pub connections: Option<u32>,
    /// Load before the first lap of a subject on a route, in seconds; 2 where left out
    pub warm_up_s: Option<f64>,
    /// A request without an answer for this many seconds is an error; 10 where left out
    pub timeout_s: Option<f64>,
    /// Quiet time between requests of the serial pass, in milliseconds; 3 where left out
    pub gap_ms: Option<f64>,
}

/// Who runs on which cores: `auto`, or a list such as `0-2,5`
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PinningFile {
    /// The subject
    pub app: Option<String>,
    /// Postgres and Redis
    pub services: Option<String>,
    /// The load driver and the probes
    pub load: Option<String>,
}

/// Which passes are run, and how long
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PassesFile {
    /// Which: `fair`, `serial`, `wire`, `syscalls`, `cpu`, `allocations`; all where left out
    pub run: Option<Vec<String>>,
    /// Under load without a probe
    pub fair: Option<PassFile>,
    /// One request at a time
    pub serial: Option<PassFile>,
    /// Under load, packets recorded
    pub wire: Option<PassFile>,
    /// Under load, system calls counted
    pub syscalls: Option<PassFile>,
    /// Under load, stacks sampled
    pub cpu: Option<PassFile>,
    /// Under load, allocations counted
    pub allocations: Option<PassFile>,
}

/// How long a pass is
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PassFile {
    /// Laps of each subject on each route; even for `fair`, whose order is balanced in pairs
    pub rounds: Option<u32>,
    /// Length of a lap under load, in seconds
    pub lap_s: Option<f64>,
    /// Requests of a lap under load, instead of a length
    pub iterations: Option<u64>,
    /// Requests of a serial lap
    pub requests: Option<u32>,
}

/// The short plan, for `--quick` and the demo
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuickFile {
    /// Subjects that are run where the command line names none; all where it is left out
    pub subjects: Option<Vec<String>>,
    /// Routes that are run with every variant; all others with the first variant alone. All where
    /// it is left out
    pub every_variant_on: Option<Vec<String>>,
    /// Load before the first lap of a subject on a route, in seconds
    pub warm_up_s: Option<f64>,
    /// Which passes are run, and how long
    #[serde(default)]
    pub passes: PassesFile,
}

/// A value that may be typed as text, number or truth value, and is used as text
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar(pub String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, or true or false")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar(value.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar(value.to_string()))
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// The JSON Schema of experiment files, as it is shipped.
#[must_use]
pub fn json_schema_text() -> String {
    let schema = schemars::schema_for!(ExperimentFile);
    // A map of text and numbers always has a JSON form.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
