#!/usr/bin/env bash
# bench.sh: runs the benchmarks and prints one report in markdown. Compare numbers within one report: machines differ, and so do hours.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
raw=$(mktemp)
load=$(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown)
trap 'rm -f "$raw"' EXIT

# bench PACKAGE PATTERN TIME: runs benchmarks and keeps their lines; what they say goes to standard error.
bench() {
  echo "bench $1 $2" >&2
  go test -run '^$' -bench "$2" -benchtime "$3" -timeout 15m "$1" | tee -a "$raw" | grep '^Benchmark' >&2 ||
    { echo "bench.sh: $2 in $1 failed or was skipped" >&2; tail -20 "$raw" >&2; exit 1; }
}

# value NAME UNIT: the number that a benchmark reported.
value() {
  awk -v name="$1" -v unit="$2" '{ n = $1; sub(/-[0-9]+$/, "", n) } n == "Benchmark" name { for (i = 3; i < NF; i += 2) if ($(i+1) == unit) v = $i } END { print v }' "$raw"
}

# ms NAME and us NAME: ns/op in milliseconds and microseconds. ratio A B: A/B.
ms() { awk -v v="$(value "$1" ns/op)" 'BEGIN { printf "%.2f", v / 1e6 }'; }
us() { awk -v v="$(value "$1" ns/op)" 'BEGIN { printf "%.1f", v / 1e3 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.1f", a / b; else printf "?" }'; }
three() { printf '%s | %s | %s' "$(value "$1" "ms-$2-p50")" "$(value "$1" "ms-$2-p95")" "$(value "$1" "ms-$2-max")"; }

bench ./internal/cli '^BenchmarkAcknowledge$' 1x
bench ./internal/cli '^BenchmarkEventToModel$' 15x
bench ./internal/cli '^BenchmarkStart$' 20x
bench ./internal/cli '^BenchmarkTurnGap$' 3x
bench ./internal/run '^BenchmarkTurn$' 1x
bench ./internal/flow '^BenchmarkTenThousandParked$' 1x
bench ./internal/store/sqlite '^Benchmark(Open|Wake)$' 300x
REASONIX_BENCH=full bench ./internal/workspace '^BenchmarkClone$' 3x
bench ./internal/permission '^Benchmark(TypicalLine|HostileLines)$' 200x
bench ./internal/sandbox '^Benchmark(BoxedOverPlain|BoxedTrue|BoxedTrueUnderAnAccount|ReducedTrue|PlainBwrapTrue|PlainTrue)$' 100x

worst=$(awk '/^BenchmarkHostileLines\// { if ($3 > max) { max = $3; n = $1 } } END { sub(/.*\//, "", n); sub(/-[0-9]+$/, "", n); printf "%.2f ms (%s)", max / 1e6, n }' "$raw")
cpu=$(sed -n 's/^cpu: //p' "$raw" | head -1)
commit=$(git describe --always --dirty 2>/dev/null || echo unknown)

cat <<REPORT
Made $(date -u '+%Y-%m-%d %H:%M UTC') at commit $commit with $(go env GOVERSION), $(nproc) cores, $cpu, load $load at the start.

| milliseconds | p50 | p95 | worst |
| --- | ---: | ---: | ---: |
| Acknowledgement in a burst of 500 Slack commands, 32 at a time, each a new task in the state | $(three Acknowledge door) |
| the same burst at a handler that only verifies the signature | $(three Acknowledge bare) |
| From a comment to the model's first request (state, clone, box, prompt between) | $(three EventToModel event) |
| From the start of \`reasonix run\` to its first request | $(three Start first) |
| \`reasonix --version\`, start to end | $(three Start version) |
| /bin/true, start to end | $(three Start true) |
| From the model's answer to the next request: one shell call, box on | $(three TurnGap/shell shell) |
| the same: one file read | $(three TurnGap/read read) |
| the same: ten file reads in one turn | $(three TurnGap/ten-reads ten-reads) |

| within this run | |
| --- | ---: |
| acknowledgement / bare handler (p50) | $(ratio "$(value Acknowledge ms-door-p50)" "$(value Acknowledge ms-bare-p50)") |
| worst acknowledgement / Slack's limit of 3 s | $(ratio "$(value Acknowledge ms-door-max)" 3000) |
| ten reads / one read (p50) | $(ratio "$(value TurnGap/ten-reads ms-ten-reads-p50)" "$(value TurnGap/read ms-read-p50)") |
| turn gap with a shell call / a boxed \`true\` alone | $(ratio "$(value TurnGap/shell ms-shell-p50)" "$(ms BoxedTrue)") |
| boxed \`true\` / plain bwrap with the same flags, by turns (medians; the goal is 1.3) | $(value BoxedOverPlain ratio) |
| boxed \`true\` / plain \`true\` | $(ratio "$(ms BoxedTrue)" "$(ms PlainTrue)") |
| clone of a repository with 50,000 files and 20,000 commits / \`git worktree add\` of it | $(ratio "$(ms Clone/clone)" "$(ms 'Clone/worktree_add')") |
| \`true\` in the reduced box / plain \`true\` | $(ratio "$(ms ReducedTrue)" "$(ms PlainTrue)") |
| gap at turn 1000 / gap at turn 10 (model in memory) | $(ratio "$(value Turn/1000 µs/gap)" "$(value Turn/10 µs/gap)") |

| sizes and single steps | |
| --- | ---: |
| first request with all built-in tools | $(value Start KB-first-request) KB |
| binary | $(value Start MB-binary) MB |
| memory per parked task, 10,000 parked on a running host | $(value TenThousandParked heap-bytes/task) bytes |
| disk per parked task | $(value TenThousandParked disk-bytes/task) bytes |
| goroutines of that host | $(value TenThousandParked goroutines-of-the-host) |
| requests made durable, one after the other | $(awk -v v="$(value Open tasks/s)" 'BEGIN { printf "%.0f", v }') per second |
| a request in the state to the start of its attempt | $(value Wake ms/wake) ms |
| state of 50,000 files, first in a process / later | $(ms 'Clone/first_state') / $(ms 'Clone/next_state') ms |
| a typical shell line judged by the rules | $(us TypicalLine) µs |
| the worst of the hostile 8 KiB lines | $worst |
| \`true\` in the box | $(ms BoxedTrue) ms |
| the same under an account of its own, as a bot task of a root host | $(ms BoxedTrueUnderAnAccount) ms |
| \`true\` in the reduced box | $(ms ReducedTrue) ms |
| \`true\` in plain bwrap | $(ms PlainBwrapTrue) ms |
| \`true\` | $(ms PlainTrue) ms |
REPORT
