// Package tool is what the model may call: the contract of a tool, the registry of a run, and the one strict decoding of arguments.
package tool

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"time"
)

// Tool is one capability offered to the model. Execute gets arguments that Registry.Decode already accepted; an error
// is fed back to the model and is not fatal.
type Tool interface {
	Name() string
	Description() string
	Schema() json.RawMessage // JSON Schema of the arguments
	ReadOnly() bool          // true: no effect outside the transcript; may run beside other readers and be repeated
	Execute(ctx context.Context, args json.RawMessage) (string, error)
}

// Asker is a Tool whose call is a question to a person. It never executes: the person's answer becomes its result.
type Asker interface {
	Tool
	Question(args json.RawMessage) (Question, error)
}

// Execution is a Tool that belongs to carrying work out: it is refused before a plan is approved, even if it only reads.
type Execution interface {
	Tool
	OfExecution() bool
}

// Outward is a Tool that is not read-only and whose effects all lie outside the workspace.
type Outward interface {
	Tool
	Outward() bool
}

// ChangesWorkspace tells whether a call of the tool may change files of the workspace.
func ChangesWorkspace(t Tool) bool {
	o, ok := t.(Outward)
	return !t.ReadOnly() && !(ok && o.Outward())
}

// OfExecution tells whether the tool says that it belongs to carrying work out.
func OfExecution(t Tool) bool {
	e, ok := t.(Execution)
	return ok && e.OfExecution()
}

// Question is what a person is asked. Kind is "question" or "plan".
type Question struct {
	Kind    string
	Title   string
	Text    string   // whole text, markdown
	Options []string // empty: free text
}

// Pather is a Tool that can name the paths which a call touches, as the model wrote them.
type Pather interface {
	Paths(args json.RawMessage) []string
}

// Files is the task's view of the file system. Paths are relative to the workspace or absolute; every method resolves
// through descriptors, obeys the roots and forbidden reads, and refuses special files.
type Files interface {
	// Read returns the whole content and an opaque version that Write can be bound to. Larger than max bytes: ErrTooLarge.
	Read(ctx context.Context, path string, max int64) (data []byte, version string, err error)
	// Write replaces or creates atomically (parent folders too), keeping the mode; version "" skips the check, VersionAbsent
	// demands that there is no file yet, any other value gives ErrChanged when it differs.
	Write(ctx context.Context, path string, data []byte, version string) error
	Move(ctx context.Context, from, to string) error
	List(ctx context.Context, path string) ([]fs.DirEntry, error)
	Stat(ctx context.Context, path string) (fs.FileInfo, error)
	// Walk visits regular files under path in lexical order, honouring ignore rules; fn gets slash paths relative to the workspace
	// (absolute outside it) and entries that implement Content; fs.SkipAll from fn ends the walk without an error.
	Walk(ctx context.Context, path string, fn func(path string, d fs.DirEntry) error) error
	// Resolve gives the cleaned, symlink-free absolute path (deepest existing ancestor resolved) for rules; it touches nothing.
	Resolve(path string) string
}

// Content is a walked entry that can be read through the descriptor of its folder, without resolving its path again.
type Content interface {
	fs.DirEntry
	// Read returns the whole content; larger than max bytes: ErrTooLarge.
	Read(max int64) ([]byte, error)
}

// Shell runs a command line in the task's box.
type Shell interface {
	Run(ctx context.Context, c Command) (Result, error)
}

// Command is one shell line.
type Command struct {
	Line    string
	Dir     string        // relative to the workspace, empty for its root
	Timeout time.Duration // 0: the configured default
	Output  func([]byte)  // live output, may be nil
	Writes  []string      // absolute folders that a person let this command write, besides those of the policy
}

// Result is how the line ended. Output is stdout and stderr together, bounded with head and tail kept.
type Result struct {
	Output   string
	ExitCode int
	TimedOut bool
	Omitted  int64 // bytes dropped from the middle
	Duration time.Duration
}

// Env carries the ports that a built-in may use; a nil port means that the tool is not offered.
type Env struct {
	Files Files
	Shell Shell
	// Background runs commands beside the calls; nil: none can be started. Shells is what earlier attempts of the run started.
	Background Background
	Shells     Shells
	// Web reaches what the task's network reaches; nil: there is none.
	Web *http.Client
	// Note keeps host facts of the run (todos, goal reports, seen files); nil outside a run.
	Note func(kind string, data json.RawMessage)
	// Output takes live output of a running command; may be nil.
	Output func([]byte)
	// Versions is shared by the tools of one run; nil: Builtins starts an empty one.
	Versions *Versions
}

// Constructor builds a built-in for one run; it returns nil when the Env lacks what the tool needs.
type Constructor func(Env) Tool

var constructors []Constructor

// Register adds a built-in; called from init.
func Register(c Constructor) { constructors = append(constructors, c) }

// Builtins builds every registered tool that env can serve, in registration order.
func Builtins(env Env) []Tool {
	if env.Versions == nil {
		env.Versions = NewVersions()
	}
	var out []Tool
	for _, c := range constructors {
		if t := c(env); t != nil {
			out = append(out, t)
		}
	}
	return out
}
