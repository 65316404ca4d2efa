#!/usr/bin/env bash
# The whole test run. Installs what the tests need where it can; what cannot be had is named, and its tests skip loudly.
# REASONIX_NO_SKIP=1 turns every skip into a failure.
set -u
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
for program in bwrap rg chromium node npm python3; do
  bash scripts/need.sh "$program" || echo "WITHOUT $program: its tests skip" >&2
done
bash scripts/fetch-webhook-examples.sh || echo "WITHOUT the webhook examples: their tests skip" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -count=1 -timeout 25m -v ./... 2>&1 | tee "$log" | grep -vE '^(=== (RUN|PAUSE|CONT|NAME)|\s*--- PASS|PASS$)'
status=${PIPESTATUS[0]}
skips=$(grep -cE '^\s*--- SKIP' "$log")
passes=$(grep -cE '^\s*--- PASS' "$log")
fails=$(grep -cE '^\s*--- FAIL' "$log")
if [ "$skips" -gt 0 ]; then
  echo
  echo "SKIPPED $skips tests, each with its reason:"
  grep -E -A2 '^\s*--- SKIP' "$log" | grep -v '^--$'
fi
echo
echo "tests: $passes passed, $fails failed, $skips skipped"
if [ "$status" -ne 0 ] || [ "$fails" -gt 0 ]; then
  grep -E '^(---|\s+---) FAIL' "$log" | head -50
  exit 1
fi
if [ "$skips" -gt 0 ] && [ "${REASONIX_NO_SKIP:-}" = 1 ]; then
  echo "A skip counts as a failure here."
  exit 1
fi
