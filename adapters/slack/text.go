package slack

import (
	"regexp"
	"strings"
)

var (
	control  = regexp.MustCompile(`<([^<>]*)>`) // Slack's own <@U…>, <#C…|name>, <https://…|label>, <!here>
	entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
	escapes  = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
)

// plainText turns Slack's encoded text into what the person typed, without the bot's mention, and says whether it was mentioned.
func plainText(s, botUser string) (text string, mentioned bool) {
	s = control.ReplaceAllStringFunc(s, func(m string) string {
		body, label, labelled := strings.Cut(m[1:len(m)-1], "|")
		switch {
		case botUser != "" && body == "@"+botUser:
			mentioned = true
			return ""
		case strings.HasPrefix(body, "@"), strings.HasPrefix(body, "!"):
			if labelled {
				return label
			}
			return "@" + body[1:]
		case strings.HasPrefix(body, "#"):
			if labelled {
				return "#" + label
			}
			return body
		}
		return body
	})
	return strings.TrimSpace(entities.Replace(s)), mentioned
}

// escape makes text harmless for mrkdwn: no mention, link or channel can be formed in it.
func escape(s string) string { return escapes.Replace(s) }
