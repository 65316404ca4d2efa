package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"reasonix/internal/tool"
)

func background(t *testing.T) (*room, *Jobs) {
	r := newRoom(t)
	j := NewJobs(r.box, func() Policy { return r.policy })
	t.Cleanup(func() { j.Close() })
	return r, j
}

// says looks until the command has written the text.
func says(t *testing.T, j *Jobs, id, text string) {
	t.Helper()
	all := ""
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		g, err := j.Look(id, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if all += g.Output; strings.Contains(all, text) {
			return
		}
		if _, err := j.Wait(t.Context(), []string{id}, 20*time.Millisecond); err != nil || !g.Running {
			break
		}
	}
	t.Fatalf("%s never said %q: %q", id, text, all)
}

func TestABackgroundCommandRunsBesideOthersAndItsOutputIsReadInPieces(t *testing.T) {
	r, j := background(t)
	if err := j.Start("a", tool.Command{Line: "echo up; until test -e go; do sleep 0.05; done; echo down; exit 3"}); err != nil {
		t.Fatal(err)
	}
	says(t, j, "a", "up\n")
	r.must("touch go") // the same workspace
	list, err := j.Wait(t.Context(), []string{"a"}, 10*time.Second)
	if err != nil || len(list) != 1 || list[0].Running || list[0].ExitCode != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	g, err := j.Look("a", 3)
	if err != nil || g.Output != "dow" || !g.More || g.Running {
		t.Errorf("%+v, %v", g, err)
	}
	if g, _ = j.Look("a", 100); g.Output != "n\n" || g.More {
		t.Errorf("%+v", g)
	}
	if _, err := j.Look("b", 1); !errors.Is(err, tool.ErrNoCommand) {
		t.Errorf("%v", err)
	}
	if _, err := j.Wait(t.Context(), []string{"b"}, 1); !errors.Is(err, tool.ErrNoCommand) {
		t.Errorf("%v", err)
	}
}

func TestInvariant08_BackgroundCommandsEndWithTheRunDetachedChildrenToo(t *testing.T) {
	_, j := background(t)
	mark := "TREE=jobs" + callID()
	line := mark + " setsid sh -c 'trap \"\" TERM HUP; sleep 300' & trap '' TERM; echo up; exec env " + mark + " sleep 300"
	for _, id := range []string{"a", "b"} {
		if err := j.Start(id, tool.Command{Line: line}); err != nil {
			t.Fatal(err)
		}
		says(t, j, id, "up")
	}
	if n := len(processesWith(mark)); n < 4 {
		t.Fatalf("control: %d processes", n)
	}
	start := time.Now()
	g, err := j.Kill("a")
	if err != nil || g.Running || g.ExitCode != killedCode || g.Failure != "" {
		t.Errorf("%+v, %v", g, err)
	}
	ended := j.Close()
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("it took %v", d)
	}
	if len(ended) != 1 || ended[0] != line {
		t.Errorf("ended: %v", ended)
	}
	if left := processesWith(mark); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if err := j.Start("c", tool.Command{Line: "true"}); err == nil {
		t.Error("a command was started after the end of the run")
	}
	if again := j.Close(); len(again) != 0 {
		t.Errorf("closed twice: %v", again)
	}
}

func TestBackgroundCommandsAreBoundedInNumberTimeAndOutput(t *testing.T) {
	_, j := background(t)
	if err := j.Start("big", tool.Command{Line: "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end"}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Wait(t.Context(), nil, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	g, err := j.Look("big", 10<<20)
	if err != nil || g.Omitted == 0 || len(g.Output) > 2*jobSpool || g.Omitted+int64(len(g.Output)) != 3000005 || !strings.HasSuffix(g.Output, "end\n") {
		t.Errorf("omitted %d, kept %d, %v", g.Omitted, len(g.Output), err)
	}
	if err := j.Start("short", tool.Command{Line: "sleep 60", Timeout: time.Second}); err != nil {
		t.Fatal(err)
	}
	list, err := j.Wait(t.Context(), []string{"short"}, 20*time.Second)
	if err != nil || !list[0].TimedOut {
		t.Errorf("%+v, %v", list, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for i := range maxJobs {
		if err := j.Start("n"+itoa(i), tool.Command{Line: "sleep 60"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Start("over", tool.Command{Line: "true"}); !errors.Is(err, tool.ErrTooMany) {
		t.Errorf("%v", err)
	}
	cancel()
	start := time.Now()
	if list, err := j.Wait(ctx, nil, time.Minute); err != nil || len(list) != maxJobs || time.Since(start) > 5*time.Second {
		t.Errorf("%d, %v after %v", len(list), err, time.Since(start))
	}
	if err := j.Start("bad", tool.Command{Line: "true", Dir: ".."}); !errors.Is(err, tool.ErrOutside) {
		t.Errorf("%v", err)
	}
}
