//go:build unix

package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"reasonix/internal/testkit/modeld"
)

// seat is a person at a real terminal in front of the product.
type seat struct {
	t      *testing.T
	home   string
	dir    string
	cmd    *exec.Cmd
	tty    *os.File
	screen *lockedBuffer
	from   int // what was read before it was looked at
	gone   chan struct{}
}

func newSeat(t *testing.T, brain modeld.Brain) *seat {
	t.Helper()
	need(t, "bwrap")
	model, err := modeld.Start(brain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	s := &seat{t: t, home: t.TempDir(), dir: t.TempDir()}
	text := fmt.Sprintf("default_model = \"double\"\n[[providers]]\nname = \"double\"\nkind = \"openai\"\nbase_url = %q\nmodel = \"double\"\n", model.URL)
	if err := os.WriteFile(filepath.Join(s.home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	return s
}

func (s *seat) sit(args ...string) {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(self, args...)
	s.cmd.Dir = s.dir
	s.cmd.Env = []string{asChild + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "REASONIX_HOME=" + s.home, "TERM=xterm", "TMPDIR=" + os.TempDir()}
	s.screen, s.from, s.gone = &lockedBuffer{}, 0, make(chan struct{})
	if s.tty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		s.t.Fatal(err)
	}
	go func(tty *os.File, to io.Writer, cmd *exec.Cmd, gone chan struct{}) {
		_, _ = io.Copy(to, tty)
		_ = cmd.Wait()
		close(gone)
	}(s.tty, s.screen, s.cmd, s.gone)
}

// end sends a signal and waits until the process is gone.
func (s *seat) end(sig syscall.Signal) {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	<-s.gone
	s.tty.Close()
	s.cmd = nil
}

// sees waits until the text stands on the screen behind what was seen before.
func (s *seat) sees(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		deadline := time.Now().Add(30 * time.Second)
		for {
			now := s.screen.String()
			if i := strings.Index(now[s.from:], text); i >= 0 {
				s.from += i + len(text)
				break
			}
			if time.Now().After(deadline) {
				s.t.Fatalf("the screen never showed %q. It shows: %q", text, now[max(0, s.from-800):])
			}
			time.Sleep(5 * time.Millisecond) // a terminal gives no signal
		}
	}
}

func (s *seat) types(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, text); err != nil {
		s.t.Fatal(err)
	}
}

func (s *seat) file(name string) string {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// TestAQuestionAtTheTerminalSurvivesKillNine: the process dies while its question is open; the next one asks it again, and the very call runs once.
func TestAQuestionAtTheTerminalSurvivesKillNine(t *testing.T) {
	s := newSeat(t, talker)
	s.sit()
	s.sees("/help lists", "> ")
	s.types("chat: bash echo once >> made.txt\r")
	s.sees("Allow bash?", "echo once >> made.txt", "digest: ", "[y] yes, once", "? ")
	s.end(syscall.SIGKILL)
	if s.file("made.txt") != "" {
		t.Fatal("it ran without an answer")
	}
	s.sit("chat", "--continue")
	s.sees("waits for you: chat: bash echo once", "Allow bash?", "[n] no", "? ")
	s.types("y\r")
	s.sees("It returned:", "> ")
	if got := s.file("made.txt"); got != "once\n" {
		t.Errorf("made.txt holds %q", got)
	}
	s.types("/quit\r")
	<-s.gone
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestAPersonSteersAndStopsWhileTheModelWorks: what is typed meanwhile reaches the model at its next turn, the posture changes at once, Ctrl-C
// stops the turn and not the conversation.
func TestAPersonSteersAndStopsWhileTheModelWorks(t *testing.T) {
	s := newSeat(t, func(r modeld.Request) modeld.Turn {
		for _, m := range r.Messages {
			if m.Role == "user" && strings.Contains(m.Text(), "blue") {
				return modeld.Turn{Text: "I heard: blue."}
			}
		}
		return modeld.Turn{Text: "Waiting.", Calls: []modeld.Call{{Name: "bash", Args: map[string]any{"command": "while [ ! -e go ]; do sleep 0.01; done"}}}}
	})
	s.sit("chat", "--permission-mode", "yolo")
	s.sees("yolo > ")
	s.types("wait for me\r")
	s.sees("• bash while")
	s.types("make it blue\r")
	s.sees("(read at the next turn)")
	s.types("/pos\task\r")
	s.sees("Posture ask")
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.sees("I heard: blue.", "> ")
	if err := os.Remove(filepath.Join(s.dir, "go")); err != nil {
		t.Fatal(err)
	}
	s.types("/status\r")
	s.sees("posture     ask", "session")
	s.types("/new\r")
	s.sees("session run_", "yolo > ") // a new session begins as the command line says
	s.types("wait again\r")
	s.sees("• bash while")
	s.types("\x03")
	s.sees("Interrupted. /continue goes on", "yolo > ")
	s.types("\x03")
	s.sees("Nothing is running")
	s.types("\x04")
	<-s.gone
	if left := processes(t, "while [ ! -e go ]"); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// processes lists command lines that hold the text.
func processes(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, d := range dirs {
		data, err := os.ReadFile(d)
		if err == nil && strings.Contains(string(data), text) {
			out = append(out, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return out
}
