package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestARuleIsWrittenIntoItsFileAndTheRestStays(t *testing.T) {
	cases := []struct{ name, before, after string }{
		{"a new file", "", "[permissions]\nallow = [\"Bash(go test:*)\"]\n"},
		{"a table without the list", "[permissions]\nmode = \"ask\" # fallback\n\n[sandbox]\nbash = \"off\"\n",
			"[permissions]\nallow = [\"Bash(go test:*)\"]\nmode = \"ask\" # fallback\n\n[sandbox]\nbash = \"off\"\n"},
		{"one item", "# mine\n[permissions]\nallow   = ['Read']   # quiet\ndeny = []\n", "# mine\n[permissions]\nallow = [\n  'Read',\n  \"Bash(go test:*)\",\n]  # quiet\ndeny = []\n"},
		{"comments inside", "[permissions]\nallow = [\n  # reads\n  \"Read\", # all of them\n  'Bash(ls:*)'\n]\nx = 1",
			"[permissions]\nallow = [\n  # reads\n  \"Read\", # all of them\n  'Bash(ls:*)',\n  \"Bash(go test:*)\",\n]\nx = 1"},
		{"no newline at the end", "default_model = \"x\"", "default_model = \"x\"\n\n[permissions]\nallow = [\"Bash(go test:*)\"]\n"},
		{"it is there", "[permissions]\nallow=[\"Bash(go test:*)\"]", "[permissions]\nallow=[\"Bash(go test:*)\"]"},
		{"a later table of the same start", "[permissions.more]\na=1\n[permissions]\nask = [\"Bash\"]\n", "[permissions.more]\na=1\n[permissions]\nallow = [\"Bash(go test:*)\"]\nask = [\"Bash\"]\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "sub", "reasonix.toml")
			if c.before != "" {
				put(t, path, c.before)
			}
			ed := Editor{Locks: filepath.Join(dir, "locks")}
			if err := ed.Add(t.Context(), AllowRules, path, "Bash(go test:*)"); err != nil {
				t.Fatal(err)
			}
			got, _ := os.ReadFile(path)
			if string(got) != c.after {
				t.Errorf("got\n%s\nwant\n%s", got, c.after)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "sub", "*")); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func TestARuleIsTakenOutAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.toml")
	ed := Editor{Locks: dir}
	put(t, path, "[permissions]\nallow = [\n  \"Read\", # keep\n  \"Bash(ls:*)\",\n]\n")
	if err := ed.Remove(t.Context(), AllowRules, path, "Bash(ls:*)"); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(path)
	if string(got) != "[permissions]\nallow = [\n  \"Read\", # keep\n]\n" {
		t.Errorf("got %s", got)
	}
	if err := ed.Remove(t.Context(), AllowRules, path, "Bash(ls:*)"); !errors.Is(err, ErrAbsent) {
		t.Errorf("twice: %v", err)
	}
	info, _ := os.Stat(path)
	if info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestAFormThatCannotBeChangedSafelyIsLeftAlone(t *testing.T) {
	for name, text := range map[string]string{
		"broken":          "[permissions\n",
		"no list":         "[permissions]\nallow = \"Read\"\n",
		"mixed":           "[permissions]\nallow = [1]\n",
		"an inline table": "permissions = { allow = [\"Read\"] }\n",
		"a dotted key":    "permissions.allow = [\"Read\"]\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.toml")
			put(t, path, text)
			err := Editor{Locks: t.TempDir()}.Add(t.Context(), AllowRules, path, "Bash=x")
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Fatalf("err %v", err)
			}
			if got, _ := os.ReadFile(path); string(got) != text {
				t.Errorf("it was changed: %s", got)
			}
		})
	}
}

func TestTwoWritersLoseNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.toml")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ed := Editor{Locks: dir}
			if err := ed.Add(context.Background(), AllowRules, path, "Bash=echo "+strings.Repeat("x", i+1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c, err := Load(Sources{User: path})
	if err != nil || len(c.Permissions.Allow) != 8 {
		t.Fatalf("%v, %d rules: %v", err, len(c.Permissions.Allow), c.Permissions.Allow)
	}
}

// Whatever a rule's text is, it is read back as it was given, and taking it out gives the earlier rules.
func TestAnyRuleTextIsReadBackAsItWasGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "edit")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path, ed := filepath.Join(dir, "c.toml"), Editor{Locks: dir}
		rule := rapid.String().Draw(t, "rule")
		before := "# head\n[permissions]\nallow = [\"Read\"]\n"
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ed.Add(t.Context(), AllowRules, path, rule); err != nil {
			if got, _ := os.ReadFile(path); string(got) != before {
				t.Fatalf("refused (%v) and changed: %s", err, got)
			}
			return
		}
		c, err := Load(Sources{User: path})
		if err != nil || c.Permissions.Allow[len(c.Permissions.Allow)-1] != rule {
			t.Fatalf("%v: %q", err, c.Permissions.Allow)
		}
	})
}
