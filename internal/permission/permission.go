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

// Path is one path of a call: as written, and cleaned with symlinks resolved. Root is the workspace root that relative rules start from.
type Path struct {
	Raw      string
	Resolved string
}

// Call is one decoded tool call.
type Call struct {
	Tool     string // canonical tool id: bash, write_file, mcp__server__tool
	Args     json.RawMessage
	ReadOnly bool
	Paths    []Path // every path that the call touches
	Root     string // absolute workspace root
}

// Situation is everything besides the rules that the decision depends on.
type Situation struct {
	Posture    Posture
	Surface    Surface
	PlanWindow bool // an approved plan's execution window is open
	Hook       HookVerdict
}

// Decision is the outcome with its reason.
type Decision struct {
	Verdict   Verdict `json:"decision"`
	Class     Class   `json:"class,omitempty"`
	Offending string  `json:"offending,omitempty"` // the part of the line that decided the class
	Rule      string  `json:"rule,omitempty"`      // text of the rule that decided
	Source    string  `json:"source,omitempty"`    // file:line of that rule
	Reason    string  `json:"reason"`
}
