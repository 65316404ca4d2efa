package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reasonix/internal/agent"
	"reasonix/internal/permission"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// PlanTool is what the model presents its plan with.
const PlanTool = "exit_plan_mode"

// maxPlan bounds a plan in bytes: people must be able to read it whole.
const maxPlan = 32 << 10

// planState follows the transcript: a plan is approved by a person's decision, and by nothing else (Spec, section 3.7).
type planState struct {
	open      bool // the execution window is open
	approved  bool // approved, but the message that presented the plan is not over
	presented bool // a plan was presented for this request
}

func (p *planState) apply(e session.Entry, request string) {
	switch {
	case e.Kind == session.KindUser && e.Name == request:
		*p = planState{} // a new request plans anew
	case e.Kind == session.KindAssistant:
		// The window opens with the message after the approval: what stood beside the plan was written without knowing the answer.
		p.open, p.approved = p.open || p.approved, false
	case e.Kind == session.KindPending && e.Name == "plan":
		p.presented = true
	case e.Kind == session.KindDecision && e.Name == PlanTool:
		p.decide(e.Data)
	}
}

// decide takes a person's word on a plan. A later plan that is turned down closes the window of the earlier one.
func (p *planState) decide(data json.RawMessage) {
	var a agent.Answer
	if json.Unmarshal(data, &a) != nil {
		return
	}
	p.approved = a.Choice == "approve" || a.Choice == "approve-changes"
	if !p.approved {
		p.open = false
	}
}

const planToolDescription = `Present the plan and wait for a person's decision. Call it once the investigation is done; nothing may be changed before.
The plan says, in markdown: what will be changed and where, in which order, what is out of scope, the risks, and how the result will be checked.
The answer is the result: approved (carry it out), approved with changes (carry it out with them), or rejected (change the plan and present it again).`

const planToolSchema = `{"type":"object","additionalProperties":false,"required":["plan"],"properties":{` +
	`"plan":{"type":"string","minLength":1,"maxLength":32768,"description":"The whole plan, in markdown."}}}`

// planTool is exit_plan_mode. It never executes: the person's decision becomes its result.
type planTool struct{}

var _ tool.Asker = planTool{}

func (planTool) Name() string            { return PlanTool }
func (planTool) Description() string     { return planToolDescription }
func (planTool) Schema() json.RawMessage { return json.RawMessage(planToolSchema) }
func (planTool) ReadOnly() bool          { return true }

// Serial: two plans in one message are two questions, in their order.
func (planTool) Serial() bool { return true }

func (planTool) Question(raw json.RawMessage) (tool.Question, error) {
	var a struct {
		Plan string `json:"plan"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return tool.Question{}, fmt.Errorf("%w: %w", tool.ErrArguments, err)
	}
	switch {
	case strings.TrimSpace(a.Plan) == "":
		return tool.Question{}, errors.New("plan is empty: present the whole plan")
	case len(a.Plan) > maxPlan:
		return tool.Question{}, fmt.Errorf("the plan has %d bytes, a person can be shown %d: shorten it", len(a.Plan), maxPlan)
	}
	return tool.Question{Kind: "plan", Title: "Approve the plan?", Text: a.Plan}, nil
}

func (planTool) Execute(context.Context, json.RawMessage) (string, error) {
	return "", errors.New("a plan is decided by a person, and nobody was asked")
}

// planGate blocks what changes something until the plan is approved. Only tools known to read, and bash in its read-only box, get through
// to the rules.
type planGate struct {
	agent.Gate
	standing *Standing
	tools    *tool.Registry
	box      bool // commands run in a box whose workspace can be made read-only
}

func (g planGate) Judge(ctx context.Context, c permission.Call) permission.Decision {
	if !g.standing.Planning() {
		return g.Gate.Judge(ctx, c)
	}
	switch {
	case c.Tool == "bash" && !g.box:
		return g.refuse("plan mode: there is no sandbox that could keep commands from changing the workspace, so none runs before the plan is approved")
	case g.executes(c.Tool):
		return g.refuse("plan mode: " + c.Tool + " belongs to carrying the plan out; nothing is signed off before a person has approved it")
	case c.Tool != "bash" && c.Tool != "web_fetch" && !c.ReadOnly: // a fetch changes nothing here and keeps its rules
		return g.refuse("plan mode: nothing is changed before a person has approved the plan. Investigate with what only reads, then present the plan with " + PlanTool +
			"; a call that stood in the same message as the plan has to be made again after the answer")
	}
	return g.Gate.Judge(ctx, c)
}

// executes: the tool says itself that it has no place in a plan, although it only reads.
func (g planGate) executes(name string) bool {
	if g.tools == nil {
		return false
	}
	t, ok := g.tools.Get(name)
	return ok && tool.OfExecution(t)
}

func (g planGate) refuse(why string) permission.Decision {
	return permission.Decision{Verdict: permission.Refuse, Posture: permission.Posture(g.standing.Posture()), Reason: why}
}

// planBlock is the request in plan mode. It stands in the conversation, so that the cached prefix survives another mode.
func planBlock(request string) string {
	return strings.TrimSpace(request) + "\n\n[plan mode] Plan first. Until a person has approved the plan, nothing may be changed: files cannot be written, and " +
		"commands run with a read-only workspace. Read what matters, then present the whole plan with " + PlanTool + ". After the approval carry it out; " +
		"check its assumptions as you go and report what turned out differently."
}

const planNudge = "[host] You ended without presenting a plan, and nothing was approved. Present it with " + PlanTool + "; if no plan is needed, say why in one sentence."

// offerPlan adds exit_plan_mode and puts the boundary in front of the gate.
func (d *drive) offerPlan() error {
	if _, there := d.spec.Tools.Get(PlanTool); there {
		return fmt.Errorf("%w: %s is offered by the host itself, leave it out of the tools", ErrSpec, PlanTool)
	}
	if d.spec.Standing == nil {
		d.spec.Standing = NewStanding("", true)
	}
	d.spec.Standing.planned = true
	d.spec.Gate = planGate{Gate: d.spec.Gate, standing: d.spec.Standing, tools: d.spec.Tools, box: d.spec.ReadOnlyBox}
	return d.spec.Tools.Add(planTool{})
}

// nudge reminds once of the plan when a turn ended without one. It reports whether the loop goes on.
func (d *drive) nudge(ctx context.Context) (bool, error) {
	key := "plan:" + d.spec.PromptKey + ":nudge"
	if d.spec.Mode != ModePlan || d.spec.Standing.settled() || d.loop.Seen(key) {
		return false, nil
	}
	return true, d.loop.Say(ctx, key, planNudge)
}

// settled tells whether a plan of this request was presented.
func (s *Standing) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan.presented
}
