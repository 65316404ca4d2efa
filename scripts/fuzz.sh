#!/usr/bin/env bash
# fuzz.sh DURATION: every fuzz target of the project for that long each.
set -eu
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //'); do
    echo "== $dir $target"
    if go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-30s}" -fuzzminimizetime 1x "$dir" >"$log" 2>&1; then
      tail -n 2 "$log"
      continue
    fi
    cat "$log"
    # On a busy machine the go command reports the end of its own time limit as a failure, without an input that fails.
    if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
      echo "no failing input: the time limit ended it"
      continue
    fi
    exit 1
  done
done
