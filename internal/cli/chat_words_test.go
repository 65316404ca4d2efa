package cli_test

import (
	"strings"
	"testing"

	"reasonix/internal/testkit/modeld"
)

// TestTheTerminalSaysWhatToDoNext: what a person gets wrong costs nothing, and the answer names what would be right.
func TestTheTerminalSaysWhatToDoNext(t *testing.T) {
	s := newSeat(t, talker)
	s.sit()
	s.sees("/help lists", "> ")
	s.types("/stop\r")
	s.sees("Nothing is running", "> ")
	s.types("/normal\r")
	s.sees("ordinary request", "> ")
	s.types("/resume nowhere\r")
	s.sees("there is no session nowhere", "This session goes on", "session run_", "> ")
	s.types("chat: bash touch made.txt\r")
	s.sees("Allow bash?", "? ")
	s.types("yes please\r")
	s.sees("nothing was decided. Answer with y, s", "n TEXT", "? ")
	s.types("/goal make it blue\r")
	s.sees("/goal has to wait until this is answered. Answer with y, s", "? ")
	s.types("n not now\r")
	s.sees("not now", "> ")
	if s.file("made.txt") != "" {
		t.Error("it ran without a yes")
	}
	s.types("/quit\r")
	<-s.gone
	if shown := s.screen.String(); strings.HasSuffix(strings.TrimRight(strings.ReplaceAll(shown, "\x1b[?2004l", ""), "\r"), "· ") {
		t.Errorf("a prompt stays behind: %q", shown[max(0, len(shown)-80):])
	}
}

// TestAPasteBehindTypedWordsIsOneMessage, and so the model is asked once.
func TestAPasteBehindTypedWordsIsOneMessage(t *testing.T) {
	s := newSeat(t, func(r modeld.Request) modeld.Turn {
		users := 0
		last := ""
		for _, m := range r.Messages {
			if m.Role == "user" {
				users, last = users+1, m.Text()
			}
		}
		if users == 1 && strings.Contains(last, "look: one\ntwo\nthree") {
			return modeld.Turn{Text: "I heard all of it."}
		}
		return modeld.Turn{Text: "I heard a part: " + last}
	})
	s.sit()
	s.sees("/help lists", "> ")
	s.types("look: \x1b[200~one\ntwo\r\nthree\x1b[201~\r")
	s.sees("I heard ", "all of it.", "> ")
}

// TestAnInterruptionThatGoesOnSaysSo: what was typed before Ctrl-C is read next, without /continue.
func TestAnInterruptionThatGoesOnSaysSo(t *testing.T) {
	s := newSeat(t, func(r modeld.Request) modeld.Turn {
		for _, m := range r.Messages {
			if m.Role == "user" && strings.Contains(m.Text(), "blue") {
				return modeld.Turn{Text: "I heard: blue."}
			}
		}
		return modeld.Turn{Calls: []modeld.Call{{Name: "bash", Args: map[string]any{"command": "sleep 60"}}}}
	})
	s.sit("chat", "--permission-mode", "yolo")
	s.sees("yolo > ")
	s.types("wait for me\r")
	s.sees("• bash sleep")
	s.types("make it blue\r")
	s.sees("(read at the next turn)")
	s.types("\x03")
	s.sees("Interrupted. It goes on with what you typed", "I heard: blue.", "> ")
}
