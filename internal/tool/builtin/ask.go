package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"reasonix/internal/tool"
)

const (
	askDescription = `Ask a person, and wait for the answer. Only for what nobody but a person can decide; decide ordinary details yourself.`

	askSchema = `{"type":"object","additionalProperties":false,"required":["question"],"properties":{` +
		`"question":{"type":"string","minLength":1,"maxLength":4000,"description":"Whole question with what is needed to answer it; markdown."},` +
		`"options":{"type":"array","maxItems":5,"uniqueItems":true,"items":{"type":"string","minLength":1,"maxLength":75},` +
		`"description":"Answers to choose from; free text when absent."}}}`

	askTitle = 120 // bytes of the title that is taken from the question
)

func init() { tool.Register(newAsk) }

func newAsk(tool.Env) tool.Tool { return ask{card{"ask", askDescription, askSchema, true}} }

type ask struct{ card }

var _ tool.Asker = ask{}

type askArgs struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

// Question is what the person is shown, whole.
func (ask) Question(raw json.RawMessage) (tool.Question, error) {
	a, err := decode[askArgs](raw)
	if err != nil {
		return tool.Question{}, err
	}
	if strings.TrimSpace(a.Question) == "" {
		return tool.Question{}, errors.New("question is empty")
	}
	title, _, _ := strings.Cut(strings.TrimSpace(a.Question), "\n")
	return tool.Question{Kind: "question", Title: shorten(title, askTitle), Text: a.Question, Options: a.Options}, nil
}

// Execute refuses: only a person's answer becomes the result.
func (ask) Execute(context.Context, json.RawMessage) (string, error) {
	return "", errors.New("nobody can be asked here: decide with sensible defaults and report them as assumptions")
}
