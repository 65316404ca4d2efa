package slackd

import (
	"encoding/json"
	"net/url"
	"unicode/utf8"
)

// checkedBlocks reads the blocks and enforces the published limits of Block Kit.
func checkedBlocks(form url.Values) ([]map[string]any, string) {
	raw := form.Get("blocks")
	if raw == "" {
		return nil, ""
	}
	var blocks []map[string]any
	if json.Unmarshal([]byte(raw), &blocks) != nil {
		return nil, "invalid_blocks_format"
	}
	if len(blocks) > 50 {
		return nil, "invalid_blocks"
	}
	ids := map[string]bool{}
	for _, b := range blocks {
		if id := str(b["block_id"]); id != "" && ids[id] {
			return nil, "invalid_blocks"
		} else if id != "" {
			ids[id] = true
		}
		if !blockFits(b) {
			return nil, "invalid_blocks"
		}
	}
	return blocks, ""
}

func blockFits(b map[string]any) bool {
	elements, _ := b["elements"].([]any)
	switch b["type"] {
	case "section":
		fields, _ := b["fields"].([]any)
		for _, f := range fields {
			if n := textLen(f); n == 0 || n > 2000 {
				return false
			}
		}
		if len(fields) > 0 && b["text"] == nil {
			return len(fields) <= 10
		}
		n := textLen(b["text"])
		return len(fields) <= 10 && n > 0 && n <= 3000
	case "header":
		return textLen(b["text"]) <= 150
	case "context":
		for _, e := range elements {
			if n := textLen(e); n == 0 || n > 2000 {
				return false
			}
		}
		return len(elements) > 0 && len(elements) <= 10
	case "actions":
		return actionsFit(elements)
	case "rich_text":
		return len(elements) > 0 && richTextFits(elements)
	case "divider":
		return true
	}
	return false
}

func actionsFit(elements []any) bool {
	seen := map[string]bool{}
	for _, e := range elements {
		m, _ := e.(map[string]any)
		id := str(m["action_id"])
		if n := textLen(m["text"]); n == 0 || n > 75 {
			return false
		}
		if seen[id] || utf8.RuneCountInString(id) > 255 || utf8.RuneCountInString(str(m["value"])) > 2000 {
			return false
		}
		seen[id] = true
	}
	return len(elements) > 0 && len(elements) <= 25
}

// richTextFits refuses empty text elements, as Slack does.
func richTextFits(elements []any) bool {
	for _, e := range elements {
		m, _ := e.(map[string]any)
		if m["type"] == "text" && str(m["text"]) == "" {
			return false
		}
		if inner, ok := m["elements"].([]any); ok && !richTextFits(inner) {
			return false
		}
	}
	return true
}

func textLen(v any) int {
	m, _ := v.(map[string]any)
	return utf8.RuneCountInString(str(m["text"]))
}
