package run

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"reasonix/internal/agent"
	"reasonix/internal/evidence"
	"reasonix/internal/goal"
	"reasonix/internal/provider"
	"reasonix/internal/session"
)

// When the progress lease speaks, in tool rounds in a row without progress (Spec, section 5).
const (
	leaseReassess = 8
	leaseReplan   = 16 // goal mode
)

// lease watches progress. A successful call whose tool, arguments and result were not seen before renews it, and so do a completed todo and a look
// at a background command that still runs (waiting for it is what there is to do); exact repeats, failures and the host's own book-keeping do not.
type lease struct {
	calls   map[string]provider.ToolCall // of the current message
	seen    map[[32]byte]bool
	done    map[string]bool // todos that were completed at some time; one that is opened and completed again is no progress
	idle    int             // tool rounds in a row without progress, the current one included
	renewed int64           // seq of the entry that renewed it last
}

func (l *lease) apply(e session.Entry) {
	switch {
	case e.Kind == session.KindUser && !strings.HasPrefix(e.Name, goal.KeyPrefix) && e.Name != "":
		l.done = nil // a person's word
		l.renew(e.Seq)
	case e.Kind == session.KindAssistant && e.Message != nil && len(e.Message.ToolCalls) > 0:
		l.round(e.Message.ToolCalls)
	case e.Kind == session.KindNote && e.Name == evidence.NoteTodos:
		l.todos(e)
	case e.Kind == session.KindResult && e.Fact != nil && e.Fact.OK && !keeping[e.Fact.Tool]:
		l.result(e)
	}
}

// keeping are calls about the work, not of it.
var keeping = map[string]bool{"todo_write": true, evidence.StepTool: true, goal.ToolName: true}

func (l *lease) round(calls []provider.ToolCall) {
	l.calls = map[string]provider.ToolCall{}
	for _, c := range calls {
		l.calls[c.ID] = c
	}
	l.idle++
}

func (l *lease) result(e session.Entry) {
	text := ""
	if e.Message != nil {
		text = e.Message.Content
	}
	c := l.calls[e.CallID]
	key := sha256.Sum256([]byte(c.Name + "\x00" + c.Arguments + "\x00" + text))
	if l.seen[key] && !e.Fact.Live {
		return
	}
	if l.seen == nil {
		l.seen = map[[32]byte]bool{}
	}
	l.seen[key] = true
	l.renew(e.Seq)
}

func (l *lease) todos(e session.Entry) {
	list, err := evidence.ParseTodos(json.RawMessage(e.Data))
	if err != nil {
		return
	}
	for _, t := range list {
		text := strings.Join(strings.Fields(t.Content), " ")
		if t.Status != evidence.Completed || l.done[text] {
			continue
		}
		if l.done == nil {
			l.done = map[string]bool{}
		}
		l.done[text] = true
		l.renew(e.Seq)
	}
}

func (l *lease) renew(seq int64) { l.idle, l.renewed = 0, seq }

// due is what has to be said at a turn boundary. The key names the stretch without progress, so that each note is given once.
func (l *lease) due(request string, inGoal bool) (agent.Steer, bool) {
	key := func(n int) string { return fmt.Sprintf("%slease:%s:%d:%d", goal.KeyPrefix, request, l.renewed, n) }
	switch {
	case inGoal && l.idle >= leaseReplan:
		return agent.Steer{Key: key(leaseReplan), Text: fmt.Sprintf("[host] %d tool rounds in a row brought nothing new. Drop the current approach: write a new todo list "+
			"with todo_write that reaches the objective another way, and begin with its first step. If only a person can help, report blocked with the reason.", l.idle)}, true
	case l.idle >= leaseReassess:
		return agent.Steer{Key: key(leaseReassess), Text: fmt.Sprintf("[host] %d tool rounds in a row brought nothing new: repeated calls, or failures. Stop and reassess: what is known, "+
			"which assumption may be wrong, and which different step would tell? Then take that step.", l.idle)}, true
	}
	return agent.Steer{}, false
}
