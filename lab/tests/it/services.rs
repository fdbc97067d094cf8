//! Private services as they really run: who they are, what they count, what they refuse.

use std::path::Path;

use assay::experiment::{PostgresSettings, RedisSettings};
use assay::pinning::{CoreSet, usable_cores};
use assay::services::{Postgres, Redis};
use assay::ui::Ui;
use tempfile::TempDir;

use crate::guarded_run::services_are_installed;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an event loop")
}

/// Services run as another user, who must be able to pass through.
fn scratch() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::with_prefix("services-").expect("a folder");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).expect("ours");
    folder
}

fn cores() -> CoreSet {
    CoreSet::new(usable_cores().expect("cores")).expect("at least one")
}

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

#[test]
fn a_private_postgres_is_seeded_and_counts_the_subjects_statements_alone() {
    if !services_are_installed() {
        return;
    }
    let folder = scratch();
    let seed = folder.path().join("seed.sql");
    std::fs::write(&seed, "CREATE TABLE t (n int);\nINSERT INTO t VALUES (1), (2);").unwrap();
    let settings = PostgresSettings {
        init: vec![seed],
        settings: [("max_connections".to_owned(), "40".to_owned())].into(),
        init_given: false,
    };
    let progress = Ui::new().work("test");
    runtime().block_on(async {
        let started = Postgres::start(&settings, folder.path(), &cores(), &progress).await;
        let mut postgres = started.unwrap();
        postgres.seed(&settings, &progress).await.unwrap();
        let show = |what: &str| format!("SHOW {what}");
        let ask = async |sql: String| postgres.first_column(&sql).await.unwrap();
        assert_eq!(ask(show("max_connections")).await, ["40"]);
        assert_eq!(ask(show("autovacuum")).await, ["off"]);
        assert_eq!(ask(show("dynamic_shared_memory_type")).await, ["mmap"]);
        assert_eq!(ask(show("listen_addresses")).await, ["127.0.0.1"]);

        let before = postgres.statement_calls().await.unwrap().unwrap();
        assert_eq!(ask("SELECT n FROM t ORDER BY n".to_owned()).await, ["1", "2"]);
        let again = postgres.statement_calls().await.unwrap().unwrap();
        assert_eq!(again - before, 1, "one statement was the subject's, our own do not count");
        assert_eq!(postgres.connections().await.unwrap(), 0);
        assert!(postgres.select_1_round_trip().await.unwrap().0 > 1_000);

        let password = postgres.url.split([':', '@']).nth(2).unwrap().to_owned();
        let pid = postgres.service.pid.unwrap().0;
        assert!(!command_line(pid).contains(&password));
        postgres.check().unwrap();
    });
}

#[test]
fn broken_sql_is_one_line_with_its_place() {
    if !services_are_installed() {
        return;
    }
    let folder = scratch();
    let seed = folder.path().join("seed.sql");
    std::fs::write(&seed, "CREATE TABLE t (n int);\n\nINSERT INTO u VALUES (1);").unwrap();
    let settings = PostgresSettings { init: vec![seed.clone()], ..PostgresSettings::default() };
    let progress = Ui::new().work("test");
    let error = runtime().block_on(async {
        let started = Postgres::start(&settings, folder.path(), &cores(), &progress).await;
        started.unwrap().seed(&settings, &progress).await.unwrap_err()
    });
    let expected = format!("{}:3: relation \"u\" does not exist", seed.display());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_setting_that_postgres_refuses_is_told_in_its_words() {
    if !services_are_installed() {
        return;
    }
    let folder = scratch();
    let settings = PostgresSettings {
        settings: [("shared_bufers".to_owned(), "1MB".to_owned())].into(),
        ..PostgresSettings::default()
    };
    let progress = Ui::new().work("test");
    let error = runtime().block_on(async {
        Postgres::start(&settings, folder.path(), &cores(), &progress).await.unwrap_err()
    });
    assert!(error.to_string().contains("shared_bufers"), "{error}");
}

#[test]
fn a_private_redis_wants_its_password_and_a_given_one_is_only_asked() {
    if !services_are_installed() {
        return;
    }
    let folder = scratch();
    let settings = RedisSettings { settings: [("maxmemory".to_owned(), "8mb".to_owned())].into() };
    runtime().block_on(async {
        let mut redis = Redis::start(&settings, folder.path(), &cores()).await.unwrap();
        assert!(redis.service.private);
        redis.check().unwrap();
        let given = Redis::attach(&redis.url).await.unwrap();
        assert_eq!(given.service.version, redis.service.version);
        assert_eq!(given.service.pid, redis.service.pid);
        let port = redis.service.port.0;
        let open = Redis::attach(&format!("redis://127.0.0.1:{port}/")).await.unwrap_err();
        assert!(open.to_string().contains("NOAUTH"), "{open}");
        let password = redis.url.split([':', '@']).nth(2).unwrap().to_owned();
        assert!(!command_line(redis.service.pid.unwrap().0).contains(&password));
    });
    assert!(Path::new(folder.path()).exists());
}
