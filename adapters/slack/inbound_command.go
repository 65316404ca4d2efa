package slack

import (
	"net/http"
	"net/url"
	"strings"

	"reasonix/internal/chat"
)

// slashCommand takes "/reasonix fix the login": the command is "/reasonix fix", the rest is the text. A slash command has no
// message, so its conversation gets a name of its own; the host's first post in it becomes the thread's root.
func (in *inbound) slashCommand(w http.ResponseWriter, r *http.Request, form url.Values) error {
	for _, key := range []string{"team_id", "channel_id", "user_id", "trigger_id"} {
		if form.Get(key) == "" {
			return &refusal{http.StatusBadRequest, "command lacks " + key}
		}
	}
	team, channel := form.Get("team_id"), form.Get("channel_id")
	if in.cfg.Team != "" && team != in.cfg.Team {
		return in.ignore(w, "another workspace")
	}
	text, _ := plainText(form.Get("text"), "")
	e := chat.Event{
		Key:   strings.Join([]string{"slack", in.name, team, "command", form.Get("trigger_id")}, ":"),
		On:    "slack.command",
		Actor: chat.Actor{Kind: "slack", ID: form.Get("user_id"), Team: team, Name: form.Get("user_name")},
		Place: chat.Place{Connection: in.name, Kind: "slack", Channel: channel,
			Thread: commandThread(r.Header.Get("X-Slack-Request-Timestamp"), form.Get("trigger_id"))},
	}
	e.Verb, e.Text, e.Press = chat.ParseVerb(text)
	e.Command, e.Text = commandWords(form.Get("command"), e)
	out, err := in.accept(r.Context(), e)
	if err != nil {
		return err
	}
	if out.Text == "" {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return respondJSON(w, map[string]string{"response_type": "ephemeral", "text": escape(out.Text)})
}

// commandWords joins the slash command and, for work, the first word of its text.
func commandWords(command string, e chat.Event) (string, string) {
	if e.Verb != chat.VerbWork {
		return command, e.Text
	}
	first := strings.Fields(e.Text)
	if len(first) == 0 {
		return command, ""
	}
	rest := strings.TrimSpace(strings.TrimPrefix(e.Text, first[0]))
	return command + " " + strings.ToLower(first[0]), rest
}
