# What `just` alone prints
default:
    @just --list --unsorted

# The main job: measure the blog that ships and print what one request costs
demo *args:
    cargo run --release --locked -p assay -- demo {{ args }}

# All tests: everything in `check`, then the subjects' own
test: check test-subjects

# What every change must pass, in the order it fails fastest
check: fmt-check lint unit docs

# Refuse code that rustfmt would change
fmt-check:
    cargo fmt --all --check

# Refuse warnings
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Tests of the workspace, the end-to-end ones among them
unit *args:
    cargo test --workspace --locked {{ args }}

# Whoever dies or fails at whatever stage: the fast tests of it are in `unit`, these are all
faults:
    cargo build --locked -p assay -p assay-probes -p assay-allocation-counter
    cargo test --locked -p assay-probes --test faults
    ASSAY_FAULTS=1 cargo test --locked -p assay --test it -- --test-threads=1 \
        faults:: kills:: incomplete:: secrets:: floods::

# A service under load and every probe recording for so long: memory flat, no drift of counts
soak minutes="30":
    cargo build --release --locked -p assay-probes
    ASSAY_SOAK_MINUTES={{ minutes }} cargo test --release --locked -p assay --test soak -- \
        --nocapture --test-threads=1

# `assay observe` on small services in five languages: writes lab/SERVICES.md, or shows those named
services *names:
    cargo build --release --locked -p assay -p assay-probes -p assay-allocation-counter
    python3 lab/tests/services/services.py {{ names }}

# Refuse broken documentation
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

# Hold every instrument against a service of known costs; about ten minutes on a quiet machine
calibrate *args:
    cargo run --release --locked -p assay -- calibrate {{ args }}

# Licences, bans and sources of everything linked, by cargo-deny (installed when it is missing,
# which takes minutes; the tidy test in `unit` holds licences and sources for every change)
deny:
    command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny
    cargo deny --locked check licenses bans sources

# Time each decoder beside copying the same bytes; `just bench strace` times one
bench *args:
    cargo bench --locked --quiet -p assay-captures -- {{ args }}
    @python3 captures/benches/side_by_side.py target/criterion

# Race `assay inspect` against what one would use instead, on files of a gigabyte made on the spot
race *args:
    cargo build --release --locked -p assay
    python3 captures/race/race.py {{ args }}

# The loop of the blog's /compute without the web, in Rust and in Go: times, instructions, hot loops
prime-loop *args:
    python3 lab/experiments/prime-loop/prime_loop.py {{ args }}

# Tests of the subjects that ship, each in its own workspace
test-subjects:
    cd lab/experiments/blog/subjects/axum-sqlx && cargo test --release --locked
    cd lab/experiments/blog/subjects/actix-sqlx && cargo test --locked
    cd lab/experiments/blog/subjects/go-pgx && go vet ./... && go test ./...
    cd lab/experiments/json-api/subjects/axum-json && cargo test --locked
    cd lab/experiments/calibration/subjects/reference && cargo test --release --locked

# Fuzz one capture format for some minutes, from where the last time ended
fuzz format minutes="1":
    sh captures/fuzz/run.sh {{ format }} {{ minutes }}

# Fuzz all formats for an hour in all, those with most risk first and longest
fuzz-all:
    #!/bin/sh
    set -eu
    for turn in wire:12 strace:10 callgrind:10 postgres:4 http:4 redis:3 mask:3 pprof:3 perf_script:3 \
        dhat:2 load_tools:2 folded:1 gctrace:1 json_lines:1 recognise:1; do
        sh captures/fuzz/run.sh "${turn%:*}" "${turn#*:}"
    done

# Real Postgres clients under watch: what each operation does on the wire must be as expected
zoo *clients:
    sh lab/tests/zoo/build.sh {{ clients }}
    ASSAY_ZOO="{{ justfile_directory() }}/target/zoo" ASSAY_ZOO_ONLY="{{ clients }}" \
        ASSAY_ZOO_PAGE="{{ justfile_directory() }}/target/zoo/page.md" \
        cargo test --locked -p assay --test zoo all_clients
