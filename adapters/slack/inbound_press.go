package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/slack-go/slack"

	"reasonix/internal/chat"
)

const (
	answerModal = "reasonix_answer"
	answerBlock = "answer"
	answerInput = "text"
)

// buttonValue is what a button carries: which ask it answers and how.
type buttonValue struct {
	Ask    string `json:"ask"`
	Choice string `json:"choice"`
	Input  bool   `json:"input,omitempty"`
	// Optional: the text may be left empty; Label then says what sending means.
	Optional bool   `json:"optional,omitempty"`
	Label    string `json:"label,omitempty"`
	// set in a modal only: where the button stood
	Channel string `json:"channel,omitempty"`
	Thread  string `json:"thread,omitempty"`
}

func (in *inbound) interaction(w http.ResponseWriter, r *http.Request, payload []byte) error {
	var cb slack.InteractionCallback
	if err := json.Unmarshal(payload, &cb); err != nil {
		return &refusal{http.StatusBadRequest, "payload is no interaction"}
	}
	if in.cfg.Team != "" && cb.Team.ID != in.cfg.Team {
		return in.ignore(w, "another workspace")
	}
	if cb.User.ID == "" {
		return &refusal{http.StatusBadRequest, "interaction without a user"}
	}
	switch cb.Type {
	case slack.InteractionTypeBlockActions:
		return in.pressed(w, r, cb)
	case slack.InteractionTypeViewSubmission:
		return in.submitted(w, r, cb)
	}
	return in.ignore(w, "interaction without meaning here")
}

func (in *inbound) pressed(w http.ResponseWriter, r *http.Request, cb slack.InteractionCallback) error {
	if len(cb.ActionCallback.BlockActions) != 1 {
		return in.ignore(w, "interaction without one button")
	}
	action := cb.ActionCallback.BlockActions[0]
	v, ok := decodeButton(action.Value)
	if !ok {
		return in.ignore(w, "button of something else")
	}
	v.Channel, v.Thread = cb.Container.ChannelID, cb.Container.ThreadTs
	if v.Channel == "" {
		v.Channel = cb.Channel.ID
	}
	if v.Thread == "" {
		v.Thread = cb.Message.ThreadTimestamp
	}
	if v.Input {
		return in.openAnswer(w, r, cb, v)
	}
	key := strings.Join([]string{"slack", in.name, cb.Team.ID, "press", cb.User.ID, v.Ask, v.Choice, action.ActionTs}, ":")
	out, err := in.accept(r.Context(), in.pressEvent(r.Context(), key, cb, v, ""))
	if err != nil {
		return err
	}
	acknowledge(w)
	in.tell(r.Context(), telling{channel: v.Channel, thread: v.Thread, user: cb.User.ID, text: out.Text, responseURL: cb.ResponseURL})
	return nil
}

// optionalLabel is the button's own words, for the field that may stay empty.
func optionalLabel(b chat.Button) string {
	if !b.Optional {
		return ""
	}
	return clip(chat.Visible(b.Label), 100)
}

func decodeButton(value string) (buttonValue, bool) {
	var v buttonValue
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		return v, false
	}
	return v, chat.IsAskID(v.Ask) && v.Choice != ""
}

func (in *inbound) pressEvent(ctx context.Context, key string, cb slack.InteractionCallback, v buttonValue, text string) chat.Event {
	team := cb.User.TeamID // of the person; in a shared channel not the app's
	if team == "" {
		team = cb.Team.ID
	}
	return chat.Event{
		Key:   key,
		On:    "slack.press",
		Actor: chat.Actor{Kind: "slack", ID: cb.User.ID, Team: team, Name: cb.User.Name},
		Place: chat.Place{Connection: in.name, Kind: "slack", Channel: v.Channel, Thread: in.pressThread(ctx, v)},
		Verb:  chat.VerbPress,
		Press: &chat.Press{AskID: v.Ask, Choice: v.Choice, Text: text},
	}
}

// openAnswer shows the free-text field; the trigger lives 3 seconds, so the answer to Slack waits for it.
func (in *inbound) openAnswer(w http.ResponseWriter, r *http.Request, cb slack.InteractionCallback, v buttonValue) error {
	meta, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("open answer field: %w", err)
	}
	input := slack.NewPlainTextInputBlockElement(nil, answerInput)
	input.Multiline, input.MaxLength = true, 3000
	field := slack.NewInputBlock(answerBlock, plainObject("Answer"), nil, input)
	if v.Optional { // sending it empty is an answer too, so the field says what is sent
		field.Optional, field.Label = true, plainObject(clip(cmp.Or(v.Label, "Answer"), 150))
	}
	view := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: answerModal, PrivateMetadata: string(meta),
		Title: plainObject("Your answer"), Submit: plainObject("Send"), Close: plainObject("Cancel"),
		Blocks: slack.Blocks{BlockSet: []slack.Block{field}},
	}
	if _, err := in.api.OpenViewContext(r.Context(), cb.TriggerID, view); err != nil {
		in.host.Log.Warn("slack answer field could not be opened", "connection", in.name, "err", err)
		acknowledge(w)
		in.tell(r.Context(), telling{channel: v.Channel, thread: v.Thread, user: cb.User.ID, responseURL: cb.ResponseURL,
			text: "Slack could not open the answer field. Press again, or write: answer " + v.Ask + " YOUR TEXT"})
		return nil
	}
	acknowledge(w)
	return nil
}

func (in *inbound) submitted(w http.ResponseWriter, r *http.Request, cb slack.InteractionCallback) error {
	v, ok := decodeButton(cb.View.PrivateMetadata)
	if cb.View.CallbackID != answerModal || !ok {
		return in.ignore(w, "modal of something else")
	}
	text := ""
	if cb.View.State != nil {
		text = strings.TrimSpace(cb.View.State.Values[answerBlock][answerInput].Value)
	}
	if text == "" && !v.Optional {
		return respondJSON(w, modalError("Write an answer first."))
	}
	key := strings.Join([]string{"slack", in.name, cb.Team.ID, "answer", cb.User.ID, v.Ask, cb.View.ID, cb.View.Hash}, ":")
	out, err := in.accept(r.Context(), in.pressEvent(r.Context(), key, cb, v, text))
	if err != nil {
		return err
	}
	if out.Kind == chat.OutcomeRefused && out.Text != "" {
		return respondJSON(w, modalError(out.Text))
	}
	acknowledge(w)
	in.tell(r.Context(), telling{channel: v.Channel, thread: v.Thread, user: cb.User.ID, text: out.Text})
	return nil
}

func modalError(text string) any {
	return map[string]any{"response_action": "errors", "errors": map[string]string{answerBlock: clip(text, 2000)}}
}

func plainObject(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}
