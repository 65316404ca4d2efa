#!/usr/bin/env bash
# The quick check: format, vet, layout, and the packages that changed against the last commit with those that import them.
set -eu
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
unformatted=$(gofmt -l $(git ls-files '*.go'; git ls-files -o --exclude-standard '*.go'))
[ -z "$unformatted" ] || { echo "not formatted (make fmt): $unformatted"; exit 1; }
go vet ./...
go test -count=1 ./internal/layout
changed=$( { git diff --name-only HEAD; git diff --name-only HEAD~1 2>/dev/null || true; git ls-files -o --exclude-standard; } | grep '\.go$' | xargs -r -n1 dirname | sort -u | while read -r d; do [ -d "$d" ] && echo "./$d"; done)
[ -n "$changed" ] || { echo "nothing changed"; exit 0; }
echo "$changed" | xargs go test -timeout 5m
