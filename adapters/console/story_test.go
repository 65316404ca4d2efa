package console

import (
	"time"

	"reasonix/internal/chat"
)

const fixedDiff = `diff --git a/money/round.go b/money/round.go
index 3b18e51..9f2c0aa 100644
--- a/money/round.go
+++ b/money/round.go
@@ -8,10 +8,13 @@ import "math"
 
 // Cents rounds an amount to whole cents, halves away from zero.
 func Cents(amount float64) int64 {
-	return int64(amount * 100)
+	if math.IsNaN(amount) {
+		return 0
+	}
+	return int64(math.Round(amount * 100))
 }
 
 // Format shows cents as a decimal number.
 func Format(cents int64) string {
-	return fmt.Sprintf("%d.%d", cents/100, cents%100)
+	return fmt.Sprintf("%d.%02d", cents/100, cents%100)
 }
`

const askID = "ask_abcdefghijklmnop"

func commandAsk(task string, now time.Time) chat.AskView {
	return chat.AskView{
		ID: askID, TaskID: task, Kind: "approval", State: "open", Title: "Run a command",
		Text:   "The model wants to run the tests of the `money` package.",
		Blocks: []chat.Block{{Name: "command.sh", Lang: "sh", Text: "go test -count=1 -run 'TestCents|TestFormat' ./money/..."}},
		Fields: []chat.Field{{Label: "Folder", Value: "/workspace"}, {Label: "Box", Value: "bubblewrap, network off"}},
		Buttons: []chat.Button{
			{Label: "Approve", Choice: "allow", Style: "primary"}, {Label: "Approve for this task: Bash(go test:*)", Choice: "allow-session"},
			{Label: "Deny", Choice: "deny", Style: "danger"}, {Label: "Deny and say why", Choice: "deny", Style: "danger", Input: true},
		},
		Digest: "5a1d8bb2f04c2f7e0b7f9e4c1a6d03e85a1d8bb2f04c2f7e0b7f9e4c1a6d03e8", Approvers: []string{"lead", "second"},
		Created: now, Expires: now.Add(24*time.Hour - time.Minute),
	}
}

// dress gives a new task what a configured route gives it.
func dress(t *chat.TaskView) {
	t.Title, t.Route, t.Repo, t.Branch = "Fix the failing test in money", "demo", "shop", "reasonix/fix-money-1"
	t.Model, t.Scripted, t.Attempts = "script", true, 1
	t.Controls = []chat.Field{
		{Label: "Mode", Value: "goal"}, {Label: "Posture", Value: "ask"}, {Label: "Contract", Value: "tests must pass"},
		{Label: "Permission", Value: "3 allow, 2 deny rules"}, {Label: "Box", Value: "bubblewrap, network off"},
	}
}

// begin is the story up to the question.
func begin(w *world, id string) {
	w.say(id,
		chat.FeedItem{Kind: "state", Text: "queued → running on host-1"},
		chat.FeedItem{Kind: "text", Text: "I'll look at the failing test first, then at the code it covers."},
		chat.FeedItem{Kind: "call", Tool: "read_file", ID: "c1", Text: `{"path":"money/round.go"}`},
		chat.FeedItem{Kind: "result", Tool: "read_file", ID: "c1", OK: true, Text: "package money\n\nimport \"math\"\n\n// Cents rounds an amount to whole cents, halves away from zero.\nfunc Cents(amount float64) int64 {\n\treturn int64(amount * 100)\n}\n"},
		chat.FeedItem{Kind: "text", Text: "`Cents` **truncates** instead of rounding. I want to see the test fail before I change anything."},
		chat.FeedItem{Kind: "call", Tool: "bash", ID: "c2", Text: `{"command":"go test -count=1 -run 'TestCents|TestFormat' ./money/...","timeout":60}`},
		chat.FeedItem{Kind: "ask", ID: "c2", Text: "Run a command: go test ./money/..."},
	)
	w.alter(id, func(t *chat.TaskView) {
		t.State = "parked"
		t.Asks = append(t.Asks, commandAsk(id, w.now()))
	})
}

// conclude is the story after the approval.
func conclude(w *world, id string) {
	w.say(id,
		chat.FeedItem{Kind: "decision", ID: "c2", OK: true, Text: "lead approved: go test ./money/..."},
		chat.FeedItem{Kind: "result", Tool: "bash", ID: "c2", OK: false, Text: "--- FAIL: TestCents (0.00s)\n    round_test.go:14: Cents(1.115) = 111, want 112\nFAIL\nexit status 1"},
		chat.FeedItem{Kind: "call", Tool: "edit_file", ID: "c3", Text: `{"path":"money/round.go","old":"return int64(amount * 100)","new":"return int64(math.Round(amount * 100))"}`},
		chat.FeedItem{Kind: "result", Tool: "edit_file", ID: "c3", OK: true, Text: "1 replacement"},
		chat.FeedItem{Kind: "text", Text: "The test passes now."},
	)
	w.alter(id, func(t *chat.TaskView) {
		t.State, t.Diff = "completed", fixedDiff
		t.Result = "`Cents` rounds now instead of truncating, and `Format` pads the cents.\n\n- `TestCents` and `TestFormat` **pass**\n- nothing else changed"
		t.Receipt = &chat.ReceiptView{
			AskedBy: "visitor", Approvals: []string{"lead approved 5a1d8bb2f04c (go test ./money/...)"},
			Tools:      []chat.Field{{Label: "read_file", Value: "1"}, {Label: "bash", Value: "2"}, {Label: "edit_file", Value: "1"}},
			Checks:     []chat.Field{{Label: "go test ./money/...", Value: "passed, exit 0"}},
			Usage:      []chat.Field{{Label: "Tokens", Value: "8,412"}, {Label: "Cost", Value: "0.00 USD"}, {Label: "Steps", Value: "5"}, {Label: "Time", Value: "14 s"}},
			HostFacts:  []string{"1 command failed before the change: go test ./money/..."},
			BaseCommit: "8c1f0a7be22d", HeadCommit: "d93b7714ac01",
		}
	})
}

func wellHost() []chat.HealthItem {
	return []chat.HealthItem{
		{Name: "Model", OK: true, Text: "script answers"}, {Name: "Sandbox", OK: true, Text: "bubblewrap 0.8 ran a command"},
		{Name: "Git", OK: true, Text: "2.39.5"}, {Name: "State", OK: true, Text: "SQLite, 3 tasks"},
		{Name: "Slack", Text: "no signing secret", Mend: "set signing_secret_env of connection acme-slack"},
	}
}
