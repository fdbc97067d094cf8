"""Runs `assay observe` on a small blog in five languages and writes what it said.

    just services              all of them; lab/SERVICES.md is written anew
    just services node java    only these, and nothing is written

A private Postgres and Redis serve them; nothing of it listens beyond loopback or stays.
"""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILT = ROOT / "target/services"
ASSAY = ROOT / "target/release/assay"
RUST = ROOT / "lab/experiments/blog"

# What each driver does on the wire, in words; the tables beside it are the evidence.
SERVICES = {
    "go": (
        "Go: net/http, pgx v5, go-redis",
        "pgx prepares each statement once on a connection and keeps it, so a query is one round "
        "trip: Bind, Describe, Execute and Sync in one packet. `BeginFunc` adds two, `begin` and "
        "`commit`, by the simple protocol.",
    ),
    "node": (
        "Node.js: express, node-postgres, node-redis",
        "node-postgres prepares an unnamed statement for each query with parameters: Parse, Bind, "
        "Describe, Execute and Sync go together and are one round trip. What has no parameters, "
        "BEGIN and COMMIT among it, is a simple Query.",
    ),
    "python": (
        "Python: gunicorn with two workers, psycopg 3 and its pool",
        "psycopg opens a transaction around whatever one connection does, and BEGIN and COMMIT are "
        "round trips of their own: two of five. After five uses it prepares a statement.",
    ),
    "java": (
        "Java: the JDK's HTTP server, pgjdbc",
        "pgjdbc sends BEGIN and the first statement of a transaction in one packet: five statements "
        "take four round trips, and a transaction costs one more than its statements. After five "
        "uses it prepares a statement by name, without a round trip for that.",
    ),
    "rust": (
        "Rust: axum, sqlx (the subject that ships with the experiment `blog`, as sqlx comes)",
        "sqlx prepares a statement once and keeps it, so a query is one round trip; its pool asks "
        "each connection whether it lives before it is handed out, and when it comes back, which "
        "nobody waits for: two round trips more for each query.",
    ),
}


def run(*words, **more):
    subprocess.run([str(word) for word in words], check=True, **more)


def need(program, package):
    """Installs a Debian package that the machine lacks."""
    if shutil.which(program) is None:
        run("apt-get", "update", "-q", stdout=subprocess.DEVNULL)
        run("apt-get", "install", "-y", "-q", "--no-install-recommends", package)


def build(name):
    """Builds a service; returns the command that starts it."""
    place = BUILT / name
    place.mkdir(parents=True, exist_ok=True)
    if name == "go":
        if not (go := shutil.which("go") or shutil.which("/usr/local/go/bin/go")):
            need("go", "golang")
            go = "go"
        run(go, "build", "-trimpath", "-o", place / "blog", ".", cwd=HERE / "go")
        return [place / "blog"]
    if name == "node":
        need("npm", "npm")
        for file in ("package.json", "package-lock.json", "server.js"):
            shutil.copy(HERE / "node" / file, place)
        run("npm", "ci", "--silent", "--no-audit", "--no-fund", cwd=place)
        # The program itself: a launcher before it would be another process.
        node = subprocess.check_output(["node", "-p", "process.execPath"], text=True).strip()
        return [node, place / "server.js"]
    if name == "python":
        if not (place / "bin/pip").exists():
            run(sys.executable, "-m", "venv", place)
        packages = ["--requirement", HERE / "python/requirements.txt"]
        run(place / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages)
        words = ["-w", "2", "--bind", "{bind}", "--chdir", HERE / "python", "app"]
        return [place / "bin/gunicorn", *words]
    if name == "java":
        need("javac", "default-jdk-headless")
        driver = pathlib.Path("/usr/share/java/postgresql.jar")
        if not driver.exists():
            run("apt-get", "install", "-y", "-q", "--no-install-recommends",
                "libpostgresql-jdbc-java")
        run("javac", "-d", place, "-cp", driver, HERE / "java/Blog.java")
        java = pathlib.Path(os.path.realpath(shutil.which("javac"))).parent / "java"
        return [java, "-cp", f"{place}:{driver}:/usr/share/java/*", "Blog"]
    subject = RUST / "subjects/axum-sqlx"
    run("cargo", "build", "--release", "--locked", "--quiet", cwd=subject)
    return [subject / "target/release/axum-sqlx"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextlib.contextmanager
def postgres(folder):
    """A private Postgres; yields its port and psql on a database."""
    bins = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    port = free_port()
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    data = folder / "data"
    if user:
        shutil.chown(folder, "postgres")
        folder.chmod(0o755)
    run(*user, bins / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync",
        stdout=subprocess.DEVNULL)
    options = (
        f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} "
        "-c fsync=off -c synchronous_commit=off"
    )
    control = [*user, bins / "pg_ctl", "-D", data, "-w"]
    run(*control, "-l", folder / "log", "-o", options, "start", stdout=subprocess.DEVNULL)

    def psql(database, *words):
        at = ["-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", database]
        words = [bins / "psql", "-q", "-v", "ON_ERROR_STOP=1", *at, *words]
        return subprocess.check_output([str(word) for word in words], text=True)

    try:
        yield port, psql
    finally:
        run(*control, "-m", "immediate", "stop", stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def started(command, environment, url):
    """A service that answers; it is ended with all of its processes."""
    child = subprocess.Popen(
        [str(word) for word in command], env={**os.environ, **environment},
        stdout=subprocess.DEVNULL, start_new_session=True,
    )
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(url, timeout=5).read()
                break
            except OSError:
                if child.poll() is not None:
                    raise SystemExit(f"{command[0]} ended before it answered") from None
                time.sleep(0.1)
        else:
            raise SystemExit(f"{url} never answered")
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 15)
        child.wait(timeout=20)


def observe(name, port, psql_port, redis_port, psql):
    """Starts one service, observes it, and returns what was said."""
    command = build(name)
    psql("postgres", "-c", f"CREATE DATABASE {name}")
    if name == "rust":
        for file in sorted(RUST.glob("*.sql")):
            psql(name, "-f", file)
        slug = psql(name, "-At", "-c", "SELECT slug FROM posts WHERE id = 10")
        page = f"/post/{slug.strip()}"
    else:
        psql(name, "-f", HERE / "seed.sql")
        page = "/posts/1"
    bind = f"127.0.0.1:{port}"
    environment = {
        "BIND": bind,
        "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{psql_port}/{name}",
        "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
        "PGHOST": "127.0.0.1", "PGPORT": str(psql_port), "PGDATABASE": name,
        "PGUSER": "postgres", "PGPASSWORD": "", "ACQUIRE": "query", "PING": "on",
    }
    command = [str(word).replace("{bind}", bind) for word in command]
    url = f"http://{bind}{page}"
    with tempfile.TemporaryDirectory() as place, started(command, environment, url):
        words = [ASSAY, "observe", "--url", f"page={url}", "--duration", "8"]
        done = subprocess.run([str(word) for word in words], cwd=place, text=True,
                              stdout=subprocess.PIPE, check=True)
    return done.stdout


def table(said):
    """The table and the findings: what stands above and below is alike for all."""
    lines = said.splitlines()
    first = next(n for n, line in enumerate(lines) if "GET /" in line)
    last = next((n for n, line in enumerate(lines) if line.startswith("Can the figures")), None)
    return "\n".join(lines[first:last]).rstrip()


def main():
    names = sys.argv[1:] or list(SERVICES)
    if unknown := [name for name in names if name not in SERVICES]:
        raise SystemExit(f"no service {unknown[0]}; there are: {', '.join(SERVICES)}")
    parts = []
    with tempfile.TemporaryDirectory(prefix="services.") as home:
        redis_port = free_port()
        redis = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(redis_port), "--save", "",
             "--appendonly", "no", "--dir", home],
            stdout=subprocess.DEVNULL,
        )
        try:
            folder = pathlib.Path(home) / "postgres"
            folder.mkdir()
            pathlib.Path(home).chmod(0o755)
            with postgres(folder) as (psql_port, psql):
                for name in names:
                    print(f"services: {name}", file=sys.stderr)
                    said = table(observe(name, free_port(), psql_port, redis_port, psql))
                    print(said)
                    title, words = SERVICES[name]
                    words = textwrap.fill(words, 100)
                    parts.append(f"## {title}\n\n{words}\n\n```text\n{said}\n```\n")
        finally:
            redis.terminate()
            redis.wait()
    if not sys.argv[1:]:
        head = (HERE / "head.md").read_text()
        (ROOT / "lab/SERVICES.md").write_text(head + "\n" + "\n".join(parts))


if __name__ == "__main__":
    main()
