//! The server that the zoo talks to: private, with a role for each way of proving who one is.

use std::path::Path;
use std::time::{Duration, Instant};

use assay::experiment::PostgresSettings;
use assay::pinning::{CoreSet, usable_cores};
use assay::services::Postgres;
use assay::ui::Ui;
use assay_captures::ids::Port;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio_postgres::NoTls;

const PASSWORD: &str = "of-the-zoo";
/// Before the rules that ask everybody for a password.
const RULES: &str = "host all assay,trusted 127.0.0.1/32 trust\nhost all md5 127.0.0.1/32 md5\n";
const ROLES: &str = "
    CREATE ROLE trusted LOGIN;
    CREATE ROLE scram LOGIN PASSWORD 'of-the-zoo';
    SET password_encryption = 'md5';
    CREATE ROLE md5 LOGIN PASSWORD 'of-the-zoo';
    CREATE TABLE zoo (id int PRIMARY KEY, name text NOT NULL);
    INSERT INTO zoo SELECT id, 'animal ' || id FROM generate_series(1, 9) id;
    GRANT ALL ON zoo TO trusted, scram, md5;
    ANALYZE zoo;";

/// A private Postgres, stopped when this is dropped.
pub(crate) struct Server {
    postgres: Postgres,
    _folder: TempDir,
}

impl Server {
    /// Starts it and makes the roles.
    pub(crate) fn start() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("an event loop");
        let folder = TempDir::with_prefix("zoo-").expect("a folder");
        // The server runs as another user, who must be able to pass through.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).expect("ours");
        let cores = CoreSet::new(usable_cores().expect("cores")).expect("at least one");
        let progress = Ui::new().work("zoo");
        let postgres = runtime.block_on(async {
            let settings = PostgresSettings::default();
            let postgres = Postgres::start(&settings, folder.path(), &cores, &progress).await;
            let postgres = postgres.expect("a private Postgres starts");
            admit(&folder.path().join("postgres/data/pg_hba.conf"), &postgres);
            make_roles(postgres.service.port).await;
            postgres
        });
        Self { postgres, _folder: folder }
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> Port {
        self.postgres.service.port
    }

    /// What clients must know.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("ZOO_HOST", "127.0.0.1".to_owned()),
            ("ZOO_PORT", self.port().0.to_string()),
            ("ZOO_DATABASE", "postgres".to_owned()),
            ("ZOO_TRUSTED", "trusted".to_owned()),
            ("ZOO_SCRAM", "scram".to_owned()),
            ("ZOO_MD5", "md5".to_owned()),
            ("ZOO_PASSWORD", PASSWORD.to_owned()),
        ]
    }
}

fn admit(rules: &Path, postgres: &Postgres) {
    let old = std::fs::read_to_string(rules).expect("there are rules");
    // Written in place: the file stays the server's.
    std::fs::write(rules, format!("{RULES}{old}")).expect("the rules can be written");
    let pid = postgres.service.pid.expect("it is ours").0;
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGHUP).expect("it lives");
}

async fn make_roles(port: Port) {
    let url = format!("postgres://assay@127.0.0.1:{}/postgres", port.0);
    let deadline = Instant::now() + Duration::from_secs(20);
    // The new rules hold from some moment after the signal.
    let (client, connection) = loop {
        match tokio_postgres::connect(&url, NoTls).await {
            Ok(connected) => break connected,
            Err(error) => assert!(Instant::now() < deadline, "no way in: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    tokio::spawn(connection);
    client.batch_execute(ROLES).await.expect("the roles can be made");
}
