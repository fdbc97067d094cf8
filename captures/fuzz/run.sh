#!/bin/sh
# Fuzzes one format for some minutes, from where the last time ended:
#   sh captures/fuzz/run.sh FORMAT MINUTES
# libFuzzer's instrumentation is asked of any stable compiler, so neither nightly nor cargo-fuzz
# is needed. Seeds are the fixtures, and captures of others where ASSAY_CASES names them.
set -eu
format=$1
minutes=$2
cd "$(dirname "$0")"
target=$(rustc -vV | sed -n 's/^host: //p')
flags='--cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module'
for flag in level=4 inline-8bit-counters pc-table trace-compares; do
    flags="$flags -Cllvm-args=-sanitizer-coverage-$flag"
done
[ -f "fuzz_targets/$format.rs" ] || {
    echo "fuzz: no format $format; there are:" fuzz_targets/*.rs >&2
    exit 2
}
RUSTFLAGS=$flags cargo build --quiet --release --locked --target "$target" --bin "$format"
mkdir -p "corpus/$format" "artifacts/$format" "found/$format"
case $format in
wire | mask) folders='wire pcap pgsql redis http linktype combo bugs' ;;
perf_script) folders='perf_script perf bugs' ;;
load_tools) folders='load_tools loadgen bugs' ;;
recognise | json_lines) folders='strace callgrind dhat loadgen folded' ;;
*) folders="$format bugs" ;;
esac
for folder in $folders; do
    for from in "../fixtures/$folder" "${ASSAY_CASES:-/nowhere}/$folder"; do
        [ -d "$from" ] || continue
        # Small ones only: libFuzzer tries each input thousands of times a second.
        find "$from" -type f -size -64k ! -name '*.json' ! -name '*.md' |
            while read -r file; do
                cp "$file" "corpus/$format/$(echo "$file" | tr -c 'A-Za-z0-9\n' _)"
            done
    done
done
began=$(date +%s)
status=0
"${CARGO_TARGET_DIR:-target}/$target/release/$format" "corpus/$format" "found/$format" \
    -artifact_prefix="artifacts/$format/" -max_len=16384 -timeout=10 -rss_limit_mb=1024 \
    -max_total_time=$((minutes * 60)) -print_final_stats=1 || status=$?
# What was tried in all, for whoever goes on; the README has the total.
echo "$format $(($(date +%s) - began))" >>spent.log
exit "$status"
