package sqlite

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

	"go.uber.org/goleak"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

// otherProcess makes this test program play another process on the same state: "first start" opens and adds a task, "worker"
// works as host-a, claims what comes and never finishes.
const otherProcess = "REASONIX_TEST_STATE_PROCESS"

func TestMain(m *testing.M) {
	if part := os.Getenv(otherProcess); part != "" {
		if err := playOther(part, os.Args[1]); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func playOther(part, path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{Log: quiet()})
	if err != nil {
		return err
	}
	defer s.Close()
	if part != "worker" {
		_, err := s.Open(ctx, opening(part))
		return err
	}
	return s.Work(ctx, "host-a", 1, func(ctx context.Context, id string) error {
		if _, err := s.Claim(ctx, id, "host-a", time.Hour); err != nil {
			return err
		}
		fmt.Println("claimed", id)
		select {}
	})
}

func other(t *testing.T, part, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, path)
	cmd.Env = append(os.Environ(), otherProcess+"="+part)
	return cmd
}

func TestFirstStartsOfManyProcessesAtOnceAllSucceed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	results := make(chan string, 6)
	for i := range cap(results) {
		cmd := other(t, fmt.Sprint("start-", i), path)
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				results <- fmt.Sprintf("%v: %s", err, out)
				return
			}
			results <- ""
		}()
	}
	for range cap(results) {
		if failure := <-results; failure != "" {
			t.Error(failure)
		}
	}
	s := mustOpen(t, path, Options{})
	defer s.Close()
	if all, err := s.Tasks(t.Context(), chat.TaskFilter{}); err != nil || len(all) != cap(results) {
		t.Fatalf("%d tasks: %v", len(all), err)
	}
}

func TestInvariant03_AKilledHostsWorkIsTakenUpAtOnceByItsSuccessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := mustOpen(t, path, Options{})
	defer s.Close()
	tk, err := s.Open(t.Context(), opening("1"))
	if err != nil {
		t.Fatal(err)
	}
	waitForClaim(t, path, tk.ID)
	dead, err := s.Task(t.Context(), tk.ID)
	if err != nil || dead.State != task.Running || dead.Fence != 1 {
		t.Fatalf("after the kill: %+v, %v", dead, err)
	}

	claims := make(chan flow.Claim, 1)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- s.Work(ctx, "host-a", 1, func(ctx context.Context, id string) error {
			c, err := s.Claim(ctx, id, "host-a", time.Hour)
			if err == nil {
				claims <- c
			}
			return err
		})
	}()
	select {
	case c := <-claims:
		if c.Task.ID != tk.ID || c.Task.Fence != 2 {
			t.Fatalf("claim: %+v", c.Task)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the successor did not take the task up")
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var running int
	if err := s.r.QueryRow(`SELECT count(*) FROM river_job WHERE state = 'running'`).Scan(&running); err != nil || running != 0 {
		t.Fatalf("%d job rows still say running: %v", running, err)
	}
}

// waitForClaim starts a worker, waits until it holds the task, and kills it.
func waitForClaim(t *testing.T, path, taskID string) {
	t.Helper()
	cmd := other(t, "worker", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "claimed "+taskID {
		t.Fatalf("the worker said %q: %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
}

// A post that a killed host had taken is due at once for its successor, as one of unknown fate; what another host or the successor itself took stays taken.
func TestInvariant07_WhatAKilledHostHadTakenIsLookedUpAtOnceByItsSuccessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	take := func(s *Store, want string) []flow.Queued {
		t.Helper()
		due, err := s.Due(t.Context(), []string{"slack"}, 1, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, q := range due {
			got += q.TaskID
		}
		if got != want {
			t.Fatalf("taken: %q, want %q", got, want)
		}
		return due
	}
	dead, stranger := mustOpen(t, path, Options{Host: "a"}), mustOpen(t, path, Options{Host: "ab"})
	defer stranger.Close()
	ids := make([]string, 3)
	for i, s := range []*Store{dead, stranger, stranger} {
		tk, err := s.Open(t.Context(), opening(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = tk.ID
	}
	take(dead, ids[0])
	take(stranger, ids[1])
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	next := mustOpen(t, path, Options{Host: "a"})
	defer next.Close()
	own := take(next, ids[2])
	take(next, "")
	if err := next.takeBack(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	due := take(next, ids[0])
	if !due[0].Uncertain || own[0].Uncertain {
		t.Errorf("uncertain: the dead host's %v, its own %v", due[0].Uncertain, own[0].Uncertain)
	}
	take(next, "")
}
