//! Services whose responses cannot be read on the wire: HTTP/2, gRPC and TLS between them and
//! whoever asks. Their trips are divided by the driver's own count.

use std::fs;
use std::io::{BufRead, BufReader, Write, stderr};
use std::path::Path;
use std::process::{Command, Stdio};

use assay::experiment::RedisSettings;
use assay::pinning::{CoreSet, usable_cores};
use assay::services::Redis;
use tempfile::TempDir;

use crate::observe::Results;
use crate::observe_far::{Running, cannot_be_run, observe};

/// Two commands to Redis for each request, and the wire in front as it is asked for. Prints its
/// port.
const SERVICE: &str = r#"
const [kind, redisPort, password, folder] = process.argv.slice(2);
const net = require('net'), http2 = require('http2'), https = require('https');
const fs = require('fs');
const redis = net.connect(Number(redisPort), '127.0.0.1');
const waiting = [];
redis.setNoDelay(true);
// Each answer is one line: OK, or that there is no such key.
redis.on('data', (data) => { for (const byte of data) if (byte === 10) waiting.shift()(); });
const ask = (...words) => new Promise((done) => {
  waiting.push(done);
  const parts = words.map((word) => `$${word.length}\r\n${word}\r\n`).join('');
  redis.write(`*${words.length}\r\n${parts}`);
});
const listen = (server) => server.listen(0, '127.0.0.1', () => console.log(server.address().port));
(async () => {
  await ask('AUTH', password);
  const work = async () => { await ask('GET', 'a'); await ask('GET', 'b'); };
  if (kind === 'tls') {
    const key = fs.readFileSync(folder + '/key.pem'), cert = fs.readFileSync(folder + '/cert.pem');
    const serve = async (_, answer) => { await work(); answer.end('ok'); };
    listen(https.createServer({ key, cert }, serve));
  } else {
    const server = http2.createServer();
    server.on('stream', async (stream) => {
      await work();
      if (kind === 'grpc') {
        const head = { ':status': 200, 'content-type': 'application/grpc' };
        stream.respond(head, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
        stream.end(Buffer.from([0, 0, 0, 0, 0]));
      } else {
        stream.respond({ ':status': 200 });
        stream.end('ok');
      }
    });
    listen(server);
  }
})();
"#;

/// What stands before it: plain HTTP/1 for whoever asks. Prints its port.
const GATEWAY: &str = r#"
const [kind, port] = process.argv.slice(2);
const http = require('http'), http2 = require('http2'), https = require('https');
const agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false });
const session = kind === 'tls' ? null : http2.connect(`http://127.0.0.1:${port}`);
const server = http.createServer((_, answer) => {
  const done = () => answer.end('ok');
  if (kind === 'tls') {
    const read = (inner) => { inner.resume(); inner.on('end', done); };
    https.get({ host: '127.0.0.1', port, agent }, read);
    return;
  }
  const grpc = kind === 'grpc';
  const stream = session.request({
    ':method': grpc ? 'POST' : 'GET', ':path': grpc ? '/shop.Items/Get' : '/',
    'content-type': grpc ? 'application/grpc' : 'text/plain', te: 'trailers',
  });
  stream.resume();
  stream.on('close', done);
  stream.end(grpc ? Buffer.from([0, 0, 0, 0, 0]) : undefined);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"#;

/// Starts a script of Node's, which says its port.
fn node(script: &Path, words: &[&str]) -> (Running, String) {
    let mut command = Command::new("node");
    command.arg(script).args(words).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running::start(&mut command);
    let out = running.0.stdout.take().expect("piped");
    let mut port = String::new();
    BufReader::new(out).read_line(&mut port).expect("it says its port");
    (running, port.trim().to_owned())
}

fn installed() -> bool {
    let missing = ["node", "openssl"].into_iter().find(|&program| {
        let option = if program == "node" { "--version" } else { "version" };
        !Command::new(program).arg(option).output().is_ok_and(|done| done.status.success())
    });
    if let Some(program) = missing {
        let _gone = writeln!(stderr(), "left out: no {program}");
    }
    missing.is_none()
}

fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x"])
        .arg("-keyout")
        .arg(folder.join("key.pem"))
        .arg("-out")
        .arg(folder.join("cert.pem"))
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn http_2_grpc_and_tls_in_front_are_said_and_divided_by_the_driver_s_count() {
    if cannot_be_run() || !installed() {
        return;
    }
    let folder = TempDir::with_prefix("opaque-").expect("a folder");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    fs::set_permissions(folder.path(), mode).expect("ours");
    let cores = CoreSet::new(usable_cores().expect("cores")).expect("at least one");
    let mut build = tokio::runtime::Builder::new_current_thread();
    let runtime = build.enable_all().build().expect("an event loop");
    let settings = RedisSettings::default();
    let started = runtime.block_on(Redis::start(&settings, folder.path(), &cores));
    let redis = started.expect("Redis starts");
    let password = redis.url.split([':', '@']).nth(2).expect("a password").to_owned();
    let redis_port = redis.service.port.0.to_string();
    certificate(folder.path());
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a script");
        path
    };
    let (service, gateway) = (script("service.js", SERVICE), script("gateway.js", GATEWAY));
    for kind in ["http2", "grpc", "tls"] {
        let place = folder.path().to_string_lossy();
        let (running, port) = node(&service, &[kind, &redis_port, &password, &place]);
        let (_gateway, front) = node(&gateway, &[kind, &port]);
        let (pid, url) = (running.0.id().to_string(), format!("http://127.0.0.1:{front}/"));
        let run = folder.path().join("run");
        let results = observe(&run, &["--pid", &pid, "--url", &url, "--serial", "20"]);
        assert_eq!(results.amount("serial", "redis.commands", &[]), 2.0, "{kind}");
        assert_eq!(results.amount("serial", "redis.flights", &[]), 2.0, "{kind}");
        results.says("the driver's own count is used");
        results.is_not_measured("serial", "http.responses", kind);
    }
}

impl Results {
    /// Fails where there is a figure: a count of nothing would be a lie.
    fn is_not_measured(&self, pass: &str, metric: &str, kind: &str) {
        let amounts: Vec<_> = self.amounts(pass, metric).collect();
        assert!(!amounts.is_empty(), "{kind}");
        assert!(amounts.iter().all(|amount| amount.is_null()), "{kind} {metric}: {amounts:?}");
    }
}
