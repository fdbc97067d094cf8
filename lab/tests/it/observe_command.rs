//! `assay observe -- COMMAND` on real Postgres and Redis: the same counts over TCP and over a Unix
//! socket, children included, and nobody else's connections.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use assay::experiment::{PostgresSettings, RedisSettings};
use assay::pinning::{CoreSet, usable_cores};
use assay::services::{Postgres, Redis};
use assay::ui::Ui;
use serde_json::Value;
use tempfile::TempDir;

use crate::guarded_run::services_are_installed;

const ASSAY: &str = env!("CARGO_BIN_EXE_assay");
/// What the client does: a loop of queries, a pipeline, an error, asyncpg in a child that lives
/// for a moment, and Redis.
const CLIENT: &str = r#"
import asyncio, os, socket, sys
import psycopg, asyncpg
print("untouched", flush=True)
host, port, redis, password, redis_password = sys.argv[1:6]
settings = dict(host=host, port=int(port), user="app", password=password)
with psycopg.connect(dbname="app", sslmode="disable", autocommit=True, **settings) as c:
    for n in range(20):
        c.execute("SELECT %s::int", (n,), prepare=False).fetchone()
    with c.pipeline():
        for n in range(3):
            c.execute("SELECT %s::text", (str(n),), prepare=False)
    try:
        c.execute("SELECT 1 / 0")
    except psycopg.Error:
        pass
child = os.fork()
if child == 0:
    async def ask():
        k = await asyncpg.connect(database="app", ssl=False, **settings)
        for n in range(4):
            await k.fetchval("SELECT $1::int + 1", n)
        await k.close()
    asyncio.run(ask())
    os._exit(0)
os.waitpid(child, 0)
unix = redis.startswith("/")
r = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
r.connect(redis if unix else ("127.0.0.1", int(redis)))
word = redis_password.encode()
r.sendall(b"*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n" % (len(word), word)); r.recv(99)
for n in range(3):
    r.sendmsg([b"*2\r\n$3\r\nGET\r\n", b"$1\r\nk\r\n"]); r.recv(99)
sys.exit(7)
"#;

/// Postgres and Redis of this test, and the words that the client is given.
struct Services {
    _postgres: Postgres,
    _redis: Redis,
    folder: TempDir,
    tcp: Vec<String>,
    unix: Vec<String>,
}

/// Redis of the test's own, since private ones listen on TCP alone.
fn services(runtime: &tokio::runtime::Runtime) -> Services {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::with_prefix("observed-").expect("a folder");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).expect("ours");
    let cores = CoreSet::new(usable_cores().expect("cores")).expect("at least one");
    let progress = Ui::new().work("test");
    let socket = folder.path().join("redis").join("socket").display().to_string();
    let settings = RedisSettings { settings: [("unixsocket".to_owned(), socket.clone())].into() };
    let (postgres, redis) = runtime.block_on(async {
        let defaults = PostgresSettings::default();
        let postgres = Postgres::start(&defaults, folder.path(), &cores, &progress).await;
        let redis = Redis::start(&settings, folder.path(), &cores).await;
        (postgres.expect("Postgres"), redis.expect("Redis"))
    });
    let word = |url: &str| url.split([':', '@']).nth(2).unwrap_or_default().to_owned();
    let (password, redis_password) = (word(&postgres.url), word(&redis.url));
    let port = postgres.service.port.0.to_string();
    let redis_port = redis.service.port.0.to_string();
    let sockets = sockets_of(folder.path(), &port);
    let words = |host: &str, redis: &str| {
        [host, &port, redis, &password, &redis_password].map(str::to_owned).to_vec()
    };
    let (tcp, unix) = (words("127.0.0.1", &redis_port), words(&sockets, &socket));
    Services { _postgres: postgres, _redis: redis, folder, tcp, unix }
}

/// The folder of Postgres's own socket.
fn sockets_of(folder: &Path, port: &str) -> String {
    let name = format!(".s.PGSQL.{port}");
    let mut pending = vec![folder.to_path_buf()];
    while let Some(place) = pending.pop() {
        for entry in std::fs::read_dir(&place).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy() == name {
                return place.display().to_string();
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            }
        }
    }
    panic!("no {name}");
}

fn observe(services: &Services, options: &[&str], client: &[String]) -> Output {
    let script = services.folder.path().join("client.py");
    std::fs::write(&script, CLIENT).expect("a script");
    Command::new(ASSAY)
        .arg("observe")
        .args(options)
        .args(["--", "/usr/bin/python3"])
        .arg(&script)
        .args(client)
        .stdin(Stdio::null())
        .output()
        .expect("assay runs")
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stderr);
    let start = text.find('{').unwrap_or_else(|| panic!("no JSON: {text}"));
    serde_json::from_str(&text[start..]).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Each metric with its labels and amount.
fn figures(found: &Value) -> Vec<String> {
    let costs = found["costs"].as_array().expect("costs");
    let figure = |cost: &Value| {
        format!("{} {} {} {}", cost["metric"], cost["labels"], cost["status"], cost["amount"])
    };
    costs.iter().map(figure).collect()
}

fn amount(found: &Value, metric: &str) -> f64 {
    let costs = found["costs"].as_array().expect("costs");
    let own = |cost: &&Value| {
        cost["metric"] == metric && cost["labels"].as_object().is_none_or(|all| all.is_empty())
    };
    costs.iter().find(own).and_then(|cost| cost["amount"].as_f64()).expect("an amount")
}

#[test]
fn a_command_is_counted_alike_over_tcp_and_unix_sockets_with_its_children() {
    if !services_are_installed() || !nix::unistd::geteuid().is_root() {
        let _gone = writeln!(std::io::stderr(), "left out: it needs the services and root");
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an event loop");
    let services = services(&runtime);
    let tcp = observe(&services, &["--json"], &services.tcp);
    let unix = observe(&services, &["--json"], &services.unix);
    for output in [&tcp, &unix] {
        assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, b"untouched\n");
    }
    let (tcp, unix) = (json(&tcp), json(&unix));
    assert_eq!(figures(&unix), figures(&tcp));
    // 20 queries, 3 in a pipeline, 4 of asyncpg; the one that failed counts as an error.
    assert_eq!(amount(&unix, "postgres.executions"), 27.0);
    assert_eq!(amount(&unix, "postgres.errors"), 1.0);
    assert_eq!(amount(&unix, "postgres.connects"), 2.0);
    assert_eq!(amount(&unix, "redis.commands"), 3.0);
    let findings = unix["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{findings:?}");
    let first = findings[0].as_str().expect("a sentence");
    assert!(first.starts_with("20 trips in a row on one connection for one statement"), "{first}");

    a_budget_and_the_table(&services);
}

fn a_budget_and_the_table(services: &Services) {
    let file = services.folder.path().join("budget.toml");
    let script = "import sys; sys.exit(0)".to_owned();
    let words = |file: &Path| ["--budget".to_owned(), file.display().to_string()];
    let run = |client: &[String]| {
        Command::new(ASSAY)
            .arg("observe")
            .args(words(&file))
            .args(["--", "/usr/bin/python3", "-c"])
            .args(client)
            .output()
            .expect("assay runs")
    };
    std::fs::write(&file, "limits = [\"postgres.flights <= 0\"]\n").expect("a file");
    let kept = run(&[script]);
    assert_eq!(kept.status.code(), Some(0), "{}", String::from_utf8_lossy(&kept.stderr));

    let ask = "import sys, psycopg; psycopg.connect(dbname='app', sslmode='disable', \
               host=sys.argv[1], port=sys.argv[2], user='app', password=sys.argv[4])\
               .execute('SELECT 1')"
        .to_owned();
    let mut client = vec![ask];
    client.extend(services.unix.iter().cloned());
    let broken = run(&client);
    let said = String::from_utf8_lossy(&broken.stderr);
    assert_eq!(broken.status.code(), Some(3), "{said}");
    assert!(said.contains("broken") && said.contains("postgres.flights <= 0"), "{said}");
    assert!(said.contains("connections made"), "{said}");
    assert!(said.contains("python3.command · whole"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");

    let missing =
        Command::new(ASSAY).args(["observe", "--", "/no/such/program"]).output().expect("it runs");
    assert_eq!(missing.status.code(), Some(127));
}
