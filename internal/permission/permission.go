// Package permission decides, without touching anything, whether a call may run: allow, ask or deny, always with the reason.
package permission

import "encoding/json"

// Posture says how a needed approval resolves (Spec, section 3.7).
type Posture string

// The postures.
const (
	PostureAsk  Posture = "ask"
	PostureAuto Posture = "auto"
	PostureYolo Posture = "yolo"
)

// Surface says whether a person can be asked.
type Surface string

// The surfaces.
const (
	Attended Surface = "attended"
	Headless Surface = "headless"
)

// Verdict is the outcome for one call.
type Verdict string

// The verdicts. AskHuman can only be answered by a person; Refuse means that nobody can answer or nothing could be decoded.
const (
	Allow    Verdict = "allow"
	Ask      Verdict = "ask"
	AskHuman Verdict = "ask-human"
	Deny     Verdict = "deny"
	Refuse   Verdict = "refuse"
)

// Class is what a bash line is.
type Class string

// The classes of a bash line; empty for other tools.
const (
	Plain           Class = "plain"
	DynamicOrdinary Class = "dynamic_ordinary"
	HumanRequired   Class = "human_required"
)

// HookVerdict is what PreToolUse hooks said.
type HookVerdict string

// The hook verdicts.
const (
	HookNone   HookVerdict = ""
	HookAllows HookVerdict = "allows"
	HookBlocks HookVerdict = "blocks"
)

// Path is one path of a call: as written, and cleaned with symlinks resolved (absolute; empty when nobody resolved it).
type Path struct {
	Raw      string
	Resolved string
}

// Call is one decoded tool call.
type Call struct {
	Tool     string // canonical tool id: bash, write_file, mcp__server__tool
	Args     json.RawMessage
	ReadOnly bool
	Paths    []Path // every path that the call touches; when empty they are read from Args
	Root     string // absolute workspace root, which relative rules and paths start from
	RealRoot string // Root free of symlinks; empty: the same
	// WriteRoots are absolute folders besides Root that may be written ([sandbox].allow_write, grants).
	WriteRoots []string
	// Managed are absolute paths of the host's own configuration; a change there always needs a person.
	Managed []string
	// Never are absolute folders that no answer opens for writing: the host's own state.
	Never []string
	Asked bool   // a question about this very call stands in the transcript: people were asked, or answered
	Home  string // of the host's user: write access to it is asked with a warning; empty: unknown
}

// Situation is everything besides the rules that the decision depends on.
type Situation struct {
	Posture    Posture
	Surface    Surface
	PlanWindow bool // an approved plan's execution window is open
	Hook       HookVerdict
	HookReason string // what the hook said; becomes part of the reason
}

// Decision is the outcome with its reason.
type Decision struct {
	Verdict   Verdict  `json:"decision"`
	Class     Class    `json:"class,omitempty"`
	Offending string   `json:"offending,omitempty"` // the part of the line that decided the class
	Rule      string   `json:"rule,omitempty"`      // text of the rule that decided
	Source    string   `json:"source,omitempty"`    // file:line of that rule
	Kind      Kind     `json:"kind,omitempty"`      // what is asked, when somebody is asked or would have to be
	Posture   Posture  `json:"posture,omitempty"`   // the posture that was in force
	Fallback  string   `json:"fallback,omitempty"`  // what stood in where no rule matched; empty when a rule or a host rule decided
	Writes    []string `json:"writes,omitempty"`    // of kind write: the absolute places outside the roots
	Folders   []string `json:"folders,omitempty"`   // of kind write: the folders that a person may open for later calls too; empty: only once is possible
	Reason    string   `json:"reason"`
}

// Kind is what a person is asked.
type Kind string

// The kinds of question.
const (
	KindApproval Kind = "approval" // may this call run
	KindPlan     Kind = "plan"     // is this the plan
	KindQuestion Kind = "question" // the model asks something
	KindWrite    Kind = "write"    // may it write outside the roots
	KindConfig   Kind = "config"   // may it change managed configuration
)
