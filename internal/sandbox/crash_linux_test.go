package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test program play a host that dies, and the program that a box with a network starts with.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == RelayCommand {
		fmt.Fprintln(os.Stderr, Relay(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == StageCommand {
		if err := Stage(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv("REASONIX_TEST_HOST"); dir != "" {
		box, _, err := Detect(context.Background(), Config{Backend: os.Getenv("REASONIX_TEST_BACKEND"), AllowReduced: true})
		if err != nil {
			panic(err)
		}
		p := Policy{Workspace: dir, Env: []string{"PATH=" + defaultPath, "TREE=" + filepath.Base(dir)}}
		_, _ = box.Run(context.Background(), p, Command{Argv: []string{"/bin/bash", "-c", "trap '' TERM HUP; echo x > .mcp.json; setsid sleep 300 & echo up; sleep 300"},
			Output: func(b []byte) { os.Stdout.Write(b) }})
		return
	}
	os.Exit(m.Run())
}

func TestInvariant08_ABoxEndsWithItsHost(t *testing.T) {
	r := newRoom(t)
	dir := filepath.Join(filepath.Dir(r.policy.Workspace), "tree"+callID())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.chown(dir)
	host := exec.Command("/proc/self/exe")
	host.Env = append(os.Environ(), "REASONIX_TEST_HOST="+dir, "REASONIX_TEST_BACKEND="+r.box.Name())
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for line := ""; line != "up\n"; {
		if line, err = lines.ReadString('\n'); err != nil { // the shell complains about the protected file first, where it is protected
			t.Fatalf("the box of the other host says %q, %v", line, err)
		}
	}
	mark := "TREE=" + filepath.Base(dir)
	if len(processesWith(mark)) < 2 {
		t.Fatal("control: the processes cannot be seen")
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	deadline := time.After(2 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left := processesWith(mark)
		if len(left) == 0 {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("still running: %s", strings.Join(left, "\n"))
		case <-tick.C: // a death of others gives no signal
		}
	}
	// The next box of that workspace takes away what the dead host left.
	p := r.policy
	p.Workspace = dir
	if _, err := r.box.Run(context.Background(), p, Command{Argv: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	if n := count(dir); n != 0 {
		t.Errorf("%d files left", n)
	}
}
