#!/usr/bin/env bash
# fuzz.sh DURATION: every fuzz target of the project for that long each.
set -eu
cd "$(dirname "$0")/.."
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //'); do
    echo "== $dir $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-30s}" -fuzzminimizetime 1x "$dir"
  done
done
