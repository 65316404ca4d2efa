// Command mutants plants one fault per invariant and expects the invariant's own test to turn red: a test that stays green
// with the fault in place proves nothing. It uses the overlay of the go command, so the tree itself is never changed.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// mutant is one planted fault.
type mutant struct {
	Invariant int    `toml:"invariant"`
	Fault     string `toml:"fault"` // in words
	File      string `toml:"file"`
	Old       string `toml:"old"` // must occur exactly once
	New       string `toml:"new"`
	Package   string `toml:"package"`
	Test      string `toml:"test"` // full name
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: mutants FILE.toml [invariant]")
		os.Exit(2)
	}
	var list struct {
		Mutants []mutant `toml:"mutants"`
	}
	if _, err := toml.DecodeFile(os.Args[1], &list); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	survived := 0
	for _, m := range list.Mutants {
		if len(os.Args) > 2 && os.Args[2] != fmt.Sprint(m.Invariant) {
			continue
		}
		verdict, ok := try(m)
		fmt.Printf("%-8s invariant %2d: %s (%s)\n", verdict, m.Invariant, m.Fault, m.Test)
		if !ok {
			survived++
		}
	}
	if survived > 0 {
		fmt.Printf("%d planted faults were not found by the test of their invariant\n", survived)
		os.Exit(1)
	}
}

func try(m mutant) (string, bool) {
	source, err := os.ReadFile(m.File)
	if err != nil {
		return "ERROR " + err.Error(), false
	}
	if n := bytes.Count(source, []byte(m.Old)); n != 1 {
		return fmt.Sprintf("ERROR %d places match in %s", n, m.File), false
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "ERROR " + err.Error(), false
	}
	defer os.RemoveAll(dir)
	overlay, err := write(dir, m, source)
	if err != nil {
		return "ERROR " + err.Error(), false
	}
	cmd := exec.Command("go", "test", "-count=1", "-timeout", "3m", "-overlay", overlay, "-run", "^"+regexp.QuoteMeta(m.Test)+"$", "-v", m.Package)
	out, err := cmd.CombinedOutput()
	switch red := strings.Contains(string(out), "--- FAIL: "+m.Test); {
	case red:
		return "caught", true
	case err != nil && strings.Contains(string(out), "panic: test timed out"):
		return "caught", true // the fault hangs the story; its test cannot pass
	case err != nil:
		return "ERROR " + strings.TrimSpace(string(out)), false
	}
	return "SURVIVED", false
}

func write(dir string, m mutant, source []byte) (string, error) {
	abs, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(changed, bytes.Replace(source, []byte(m.Old), []byte(m.New), 1), 0o600); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {abs: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}
