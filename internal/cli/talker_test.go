package cli_test

import (
	"fmt"
	"strings"

	"reasonix/internal/testkit/modeld"
)

// talker is a model for conversations: what it does depends on the last request, on what people said and on what the tools returned.
func talker(r modeld.Request) modeld.Turn {
	prompt, said, rounds := "", "", 0
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			if _, after, ok := strings.Cut(m.Text(), "chat: "); ok {
				prompt, said, rounds = after, "", 0
			} else {
				said = m.Text()
			}
		case "assistant":
			rounds++
		}
	}
	results := r.Results()
	last := ""
	if len(results) > 0 {
		last = results[len(results)-1]
	}
	call := func(name string, args map[string]any) modeld.Turn {
		return modeld.Turn{Text: "I use " + name + ".", Calls: []modeld.Call{{Name: name, Args: args}}}
	}
	line, _, _ := strings.Cut(prompt, "\n")
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "bash":
		if rounds == 0 {
			return call("bash", map[string]any{"command": rest})
		}
	case "outside":
		if rounds == 0 {
			return call("bash", map[string]any{"command": "echo there > " + rest + "/there.txt", "additional_write_dirs": []string{rest}, "justification": "the report belongs there"})
		}
	case "plan":
		switch {
		case rounds == 0:
			return call("exit_plan_mode", map[string]any{"plan": "Write plan.txt with " + rest + "."})
		case strings.Contains(last, "rejected"):
			return call("exit_plan_mode", map[string]any{"plan": "Write plan.txt otherwise, because: " + last})
		case strings.Contains(last, "approved"):
			_, changes, _ := strings.Cut(last, "\n")
			return call("write_file", map[string]any{"path": "plan.txt", "content": rest + " " + changes + "\n"})
		}
	case "reach":
		switch {
		case said == "" && rounds == 0:
			return call("update_goal", map[string]any{"status": "blocked", "reason": "Which colour?"})
		case strings.HasPrefix(last, "created") || strings.HasPrefix(last, "replaced"):
			return call("update_goal", map[string]any{"status": "complete", "summary": "The colour is " + said + "."})
		case said != "":
			return call("write_file", map[string]any{"path": "colour.txt", "content": said + "\n"})
		}
	case "spend":
		if rounds < 3 {
			return call("ls", map[string]any{"path": "."})
		}
	}
	return modeld.Turn{Text: fmt.Sprintf("It returned: %s", last)}
}
