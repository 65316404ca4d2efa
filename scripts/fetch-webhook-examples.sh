#!/bin/sh
# Fetches GitHub's own example payloads (npm package @octokit/webhooks-examples, MIT) for the tests of the GitHub door.
# The folder is .tools/webhook-examples, or $REASONIX_WEBHOOK_EXAMPLES; nothing is done when it is there already.
set -eu
version=7.6.1
cd "$(dirname "$0")/.."
dir=${REASONIX_WEBHOOK_EXAMPLES:-.tools/webhook-examples}
index=node_modules/@octokit/webhooks-examples/api.github.com/index.json
if [ -f "$dir/$index" ]; then
	exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
	echo "npm is missing: install nodejs and npm (apt-get install nodejs npm) to fetch the webhook examples" >&2
	exit 1
fi
mkdir -p "$dir"
npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-save --loglevel=error "@octokit/webhooks-examples@$version"
test -f "$dir/$index"
