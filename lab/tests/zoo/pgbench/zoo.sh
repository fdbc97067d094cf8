#!/bin/sh
# pgbench: says its version, then runs it once for each line that it reads, and answers `done` or
# `failed`. A run is two connections: one to look around, one for the transactions.
export PGHOST="$ZOO_HOST" PGPORT="$ZOO_PORT" PGDATABASE="$ZOO_DATABASE" PGUSER="$ZOO_TRUSTED"
export PGSSLMODE=disable
folder="$(dirname "$0")"

run() { pgbench --no-vacuum --client=1 --transactions=10 "$@" >/dev/null 2>&1; }

pgbench --version
while read -r operation; do
    case "$operation" in
    "10 queries, simple") run --protocol=simple --file="$folder/one.sql" ;;
    "10 queries, extended") run --protocol=extended --file="$folder/one.sql" ;;
    "10 queries, prepared") run --protocol=prepared --file="$folder/one.sql" ;;
    "10 pipelines of 3, extended") run --protocol=extended --file="$folder/pipeline.sql" ;;
    "10 pipelines of 3, prepared") run --protocol=prepared --file="$folder/pipeline.sql" ;;
    *) false ;;
    esac && echo done || echo "failed $operation"
done
