#!/usr/bin/env bash
# The linter, pinned; built once into .tools/. staticcheck.conf says which checks are off and why.
set -eu
cd "$(dirname "$0")/.."
version=v0.8.2
bin=$PWD/.tools/staticcheck-$version
if [ ! -x "$bin" ]; then
  GOBIN=$PWD/.tools/bin CGO_ENABLED=0 go install "honnef.co/go/tools/cmd/staticcheck@$version"
  mv .tools/bin/staticcheck "$bin"
fi
"$bin" ./...
