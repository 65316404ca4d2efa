package tool

import (
	"context"
	"encoding/json"
	"time"
)

// Background runs commands beside the calls of one run. Every command is known by the id that Start was given; all of them end
// when the run stops, for whatever reason.
type Background interface {
	// Start returns at once. ErrTooMany when too many run already.
	Start(id string, c Command) error
	// Look gives what was written since the last look, at most max bytes; the rest comes with the next one. ErrNoCommand.
	Look(id string, max int) (Glimpse, error)
	// Wait returns when one of the commands has ended, the time is over or ctx ends; no ids means all that run. It gives the state of each
	// without its output. ErrNoCommand.
	Wait(ctx context.Context, ids []string, d time.Duration) ([]Glimpse, error)
	// Kill ends the command with everything it started and returns when it is gone. ErrNoCommand.
	Kill(id string) (Glimpse, error)
}

// Glimpse is how a background command stands.
type Glimpse struct {
	ID       string
	Line     string
	Running  bool
	ExitCode int    // once it has ended
	TimedOut bool   // its own timeout ended it
	Failure  string // it could not be run
	Output   string
	Omitted  int64 // bytes that were dropped before Output because nobody looked in time
	More     bool  // there is more to read now
	Age      time.Duration
}

// NoteShell is the Env.Note kind about background commands; its data is a ShellNote.
const NoteShell = "shell"

// ShellNote says that a background command was started, or that the model learned of its end.
type ShellNote struct {
	ID      string `json:"id"`
	Command string `json:"command,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
}

// Shells follows the notes of earlier attempts: what they started has ended with them.
type Shells struct {
	Started int // ids given so far
	open    []ShellNote
}

// Recall takes in one NoteShell, in order.
func (s *Shells) Recall(data json.RawMessage) error {
	var n ShellNote
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	if !n.Ended {
		s.Started++
		s.open = append(s.open, n)
		return nil
	}
	for i, o := range s.open {
		if o.ID == n.ID {
			s.open = append(s.open[:i:i], s.open[i+1:]...)
			break
		}
	}
	return nil
}

// Told: the model knows that everything up to this id has ended.
func (s *Shells) Told(id string) {
	for i, o := range s.open {
		if o.ID == id {
			s.open = s.open[i+1:]
			return
		}
	}
}

// Open lists what the model believes to be running.
func (s *Shells) Open() []ShellNote { return s.open }
