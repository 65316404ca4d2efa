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
		fmt.Println("ready")
		p := Policy{Workspace: dir, Env: []string{"PATH=" + defaultPath, "TREE=" + filepath.Base(dir)}}
		_, _ = box.Run(context.Background(), p, Command{Argv: []string{"/bin/bash", "-c", "trap '' TERM HUP; echo x > .mcp.json; setsid sleep 300 & echo up; sleep 300"},
			Output: func(b []byte) { os.Stdout.Write(b) }})
		return
	}
	os.Exit(m.Run())
}

// otherHost is a host of its own process, with a workspace of its own, whose box runs a tree that does not want to end.
type otherHost struct {
	dir, mark string
	cmd       *exec.Cmd
	out       *bufio.Reader
}

func startHost(r *room) otherHost {
	r.t.Helper()
	h := otherHost{dir: filepath.Join(filepath.Dir(r.policy.Workspace), "tree"+callID())}
	h.mark = "TREE=" + filepath.Base(h.dir)
	if err := os.Mkdir(h.dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	r.chown(h.dir)
	h.cmd = exec.Command("/proc/self/exe")
	h.cmd.Env = append(os.Environ(), "REASONIX_TEST_HOST="+h.dir, "REASONIX_TEST_BACKEND="+r.box.Name())
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	h.out = bufio.NewReader(out)
	h.says(r, "ready\n")
	return h
}

// says reads the host's next line; the shell complains about the protected file first, where it is protected.
func (h otherHost) says(r *room, want string) {
	r.t.Helper()
	for {
		line, err := h.out.ReadString('\n')
		if err != nil {
			r.t.Fatalf("the other host says %q, %v; want %q", line, err, want)
		}
		if line == want {
			return
		}
		if !strings.Contains(line, ".mcp.json") {
			r.t.Fatalf("the other host says %q; want %q", line, want)
		}
	}
}

// killed ends the host as a power cut would, and waits until its tree is gone. Only the first process of a box that never started may be left
// to the next host's start.
func (h otherHost) killed(r *room) {
	r.t.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		r.t.Fatal(err)
	}
	_ = h.cmd.Wait()
	deadline, waiting := time.After(2*time.Second), time.After(time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left := processesWith(h.mark)
		if len(left) == 0 {
			return
		}
		select {
		case <-waiting:
			if len(left) == 1 && strings.Contains(left[0], "bwrap --unshare-user") {
				sweepOrphans()
			}
		case <-deadline:
			r.t.Fatalf("still running: %s", strings.Join(left, "\n"))
		case <-tick.C: // a death of others gives no signal
		}
	}
}

// successor runs the next box of that workspace, which takes away what the dead host left.
func (h otherHost) successor(r *room) {
	r.t.Helper()
	p := r.policy
	p.Workspace = h.dir
	if _, err := r.box.Run(context.Background(), p, Command{Argv: []string{"true"}}); err != nil {
		r.t.Fatal(err)
	}
	if n := count(h.dir); n != 0 {
		r.t.Errorf("%d files left", n)
	}
	sweepGroups(r.t)
}

func TestInvariant08_ABoxEndsWithItsHost(t *testing.T) {
	r := newRoom(t)
	h := startHost(r)
	h.says(r, "up\n")
	if len(processesWith(h.mark)) < 2 {
		t.Fatal("control: the processes cannot be seen")
	}
	h.killed(r)
	h.successor(r)
}
