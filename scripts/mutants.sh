#!/usr/bin/env bash
# mutants.sh [INVARIANT]: plants the faults of scripts/mutants.toml, one at a time, and expects each to be found.
set -eu
cd "$(dirname "$0")/.."
go run ./internal/testkit/mutants scripts/mutants.toml "$@"
