#!/bin/sh
# Builds the clients of the zoo into target/zoo: what they need comes from Debian, PyPI, npm, the
# Go modules and crates.io, in the versions of the lock files beside them. Safe to run again.
#
# Usage: lab/tests/zoo/build.sh [CLIENT…], all by default
set -eu

sources="$(cd "$(dirname "$0")" && pwd)"
built="$(cd "$sources/../../.." && pwd)/target/zoo"
clients="$*"
mkdir -p "$built"

say() { printf 'zoo: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# Whether one of these clients is wanted.
wanted() {
    [ -n "$clients" ] || return 0
    for name in "$@"; do
        case " $clients " in *" $name "*) return 0 ;; esac
    done
    return 1
}

packages=''
if wanted libpq diesel; then [ -e /usr/include/postgresql/libpq-fe.h ] || packages="$packages libpq-dev"; fi
if wanted psycopg psycopg2 asyncpg pg8000; then
    python3 -c 'import ensurepip' 2>/dev/null || packages="$packages python3-venv"
fi
if wanted node-postgres postgres.js; then
    have node || packages="$packages nodejs"
    have npm || packages="$packages npm"
fi
if wanted pgx; then have go || packages="$packages golang"; fi
if wanted pgjdbc; then
    have javac || packages="$packages default-jdk-headless"
    [ -e /usr/share/java/postgresql.jar ] || packages="$packages libpostgresql-jdbc-java"
fi
if [ -n "$packages" ]; then
    say "installing Debian packages:$packages"
    apt-get update -q >/dev/null
    # shellcheck disable=SC2086 # one word each
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages >&2
fi

if wanted libpq; then
    say "libpq"
    mkdir -p "$built/c"
    cc -Wall -Wextra -O1 -I/usr/include/postgresql "$sources/c/zoo.c" -o "$built/c/client" -lpq
fi
if wanted psycopg psycopg2 asyncpg pg8000; then
    say "Python's clients"
    [ -x "$built/python/bin/pip" ] || python3 -m venv "$built/python"
    "$built/python/bin/pip" install --quiet --disable-pip-version-check \
        --requirement "$sources/python/requirements.txt"
fi
if wanted node-postgres postgres.js; then
    say "Node.js' clients"
    mkdir -p "$built/node"
    cp "$sources"/node/*.js "$sources"/node/*.json "$built/node/"
    (cd "$built/node" && npm ci --silent --no-audit --no-fund)
fi
if wanted pgx; then
    say "pgx"
    (cd "$sources/go" && go build -trimpath -o "$built/go/client" .)
fi
if wanted pgjdbc; then
    say "pgjdbc"
    mkdir -p "$built/java"
    javac -d "$built/java" -cp /usr/share/java/postgresql.jar "$sources/java/Zoo.java"
fi
if wanted tokio-postgres deadpool-postgres diesel diesel-async sqlx; then
    say "Rust's clients"
    (cd "$sources/rust" && cargo build --quiet --locked --target-dir "$built/rust")
fi
