package evidence

import (
	"testing"

	"reasonix/internal/session"
)

// Each of these lines ends with exit code 0 in a real bash although go test ./... did not run, or ran and failed.
func TestNothingPretendsThatACheckPassed(t *testing.T) {
	for _, line := range []string{
		"command -v go test ./...", "command -V go test ./...", "command -pv go test ./...", "env --version go test ./...", "env --help go test ./...", "env -Strue go test ./...",
		"env --split-string=true go test ./...", "timeout --version go test ./...", "nice --version go test ./...", "nohup --help go test ./...", "stdbuf --version go test ./...", "npx --version go test ./...",
		"env PATH=fake:/usr/bin go test ./...", "PATH=fake:$PATH go test ./...", "PATH=fake; go test ./...", "export PATH=fake:$PATH && go test ./...", "declare -x PATH=fake; go test ./...",
		"read PATH <<< fake; go test ./...", "printf -v PATH fake; go test ./...", "for PATH in fake; do :; done; go test ./...", "mapfile -t PATH <<< fake; go test ./...", "readonly PATH=fake; go test ./...", "unset PATH; go test ./...",
		"BASH_CMDS[go]=fake/go; go test ./...", "GOFLAGS=-run=NONE go test ./...", "\\. ./env.sh; go test ./...", "command . ./env.sh; go test ./...", "command source env.sh; go test ./...", "command eval 'go() { :; }'; go test ./...",
		"e\\val 'go() { :; }'; go test ./...", "command hash -p fake/go go; go test ./...", "command exit 0; go test ./...", "command exec true; go test ./...", "command trap 'exit 0' EXIT; go test ./...", "command set -n\ngo test ./...",
	} {
		f := Collect([]session.Entry{bash(line, 0)})
		if ok, _, _ := f.verifies("go test ./..."); ok {
			t.Errorf("%q verifies go test ./...", line)
		}
		for _, k := range f.Checks {
			if k.Outcome == Passed {
				t.Errorf("%q shows %s as passed", line, k.Command)
			}
		}
	}
}

func TestAnOptionThatLooksAtNothingMakesNoCheck(t *testing.T) {
	for _, line := range []string{"pytest --version", "pytest --collect-only", "make -n test", "make -q test", "go test -n ./...", "go test -list . ./...", "npm run test --if-present", "cargo test --no-run", "jest --listTests", "./go test ./...", "fake/make test"} {
		if f := Collect([]session.Entry{bash(line, 0)}); len(f.Checks) > 0 {
			t.Errorf("%q is called a check: %+v", line, f.Checks)
		}
	}
	for _, line := range []string{"./gradlew test", "node_modules/.bin/jest", ".venv/bin/python -m pytest", "/usr/local/go/bin/go test ./...", "env -i CI=1 go test ./...", "timeout -k 5 60s go test ./...", "timeout --signal=KILL 60 make test",
		"nice -n 5 make test", "poetry run pytest", "uv run pytest -q", "bundle exec rspec", "npx --yes jest", "x=1; go test ./..."} {
		if f := Collect([]session.Entry{bash(line, 0)}); len(f.Checks) != 1 || f.Checks[0].Outcome != Passed {
			t.Errorf("%q is no passed check: %+v", line, f.Checks)
		}
	}
	if f := Collect([]session.Entry{bash("go test ./...", 0), bash("rg --pre ./edit.sh x", 0)}); !f.Checks[0].Stale {
		t.Error("a search that runs a program for every file may change files")
	}
}
