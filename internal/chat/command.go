package chat

import "strings"

// ParseVerb reads the explicit command words that every text door shares: stop, status, help, approve ID, deny ID,
// answer ID TEXT, posture X. The words count only at the very start and, for those that take an id, only with one; anything
// else is work. Consent is never read out of prose.
func ParseVerb(text string) (Verb, string, *Press) {
	t := strings.TrimSpace(text)
	word, rest, _ := strings.Cut(t, " ")
	rest = strings.TrimSpace(rest)
	switch w := strings.ToLower(strings.TrimPrefix(word, "/")); w {
	case "stop", "cancel":
		if rest == "" {
			return VerbStop, "", nil
		}
	case "status":
		if rest == "" {
			return VerbStatus, "", nil
		}
	case "help":
		if rest == "" {
			return VerbHelp, "", nil
		}
	case "posture":
		if rest == "ask" || rest == "auto" || rest == "yolo" {
			return VerbPosture, rest, nil
		}
	case "approve", "deny", "answer":
		id, more, _ := strings.Cut(rest, " ")
		if !IsAskID(id) {
			return VerbWork, t, nil
		}
		choice := map[string]string{"approve": "allow", "deny": "deny", "answer": "answer"}[w]
		return VerbPress, "", &Press{AskID: id, Choice: choice, Text: strings.TrimSpace(more)}
	}
	return VerbWork, t, nil
}

// IsAskID tells whether s has the shape of an ask's id: "ask_" and 16 to 40 characters of lower-case base32.
func IsAskID(s string) bool {
	body, ok := strings.CutPrefix(s, "ask_")
	if !ok || len(body) < 16 || len(body) > 40 {
		return false
	}
	return strings.Trim(body, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
