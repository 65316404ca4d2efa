package slack

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	mdHeading = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	mdBullet  = regexp.MustCompile(`^(\s*)[-*+]\s+`)
	mdBold    = regexp.MustCompile(`\*\*([^*\n]+)\*\*|__([^_\n]+)__`)
	mdLink    = regexp.MustCompile(`!?\[([^\]\n]+)\]\((https?://[^\s()<>|]+)\)`)
)

// mrkdwn turns markdown into Slack's dialect. Everything is escaped first, so that text can form no mention; only links
// with http or https become links, and their address is shown when the label says something else.
func mrkdwn(md string) string {
	lines := strings.Split(escape(md), "\n")
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			lines[i] = "```"
			continue
		}
		if !fenced {
			lines[i] = mrkdwnLine(line)
		}
	}
	if fenced {
		lines = append(lines, "```")
	}
	return strings.Join(lines, "\n")
}

func mrkdwnLine(line string) string {
	if h := mdHeading.FindStringSubmatch(line); h != nil {
		return "*" + strings.ReplaceAll(h[1], "*", "") + "*"
	}
	line = mdBullet.ReplaceAllString(line, "$1• ")
	parts := strings.Split(line, "`")
	for i := 0; i < len(parts); i += 2 { // odd parts are code
		parts[i] = mdBold.ReplaceAllString(parts[i], "*$1$2*")
		parts[i] = mdLink.ReplaceAllString(parts[i], "$1 (<$2>)")
	}
	return strings.Join(parts, "`")
}

// splitText cuts text into pieces of at most limit characters, at line ends where there are some; an open code fence is
// closed in one piece and opened again in the next.
func splitText(s string, limit int) []string {
	var pieces []string
	var cur strings.Builder
	size, fenced := 0, false
	flush := func() {
		if size == 0 {
			return
		}
		if fenced {
			cur.WriteString("```")
		}
		pieces = append(pieces, cur.String())
		cur.Reset()
		size = 0
		if fenced {
			cur.WriteString("```\n")
			size = 4
		}
	}
	room := limit - 8 // for fences
	for _, line := range strings.SplitAfter(s, "\n") {
		for _, part := range hardWrap(line, room-4) {
			n := utf8.RuneCountInString(part)
			if size+n > room {
				flush()
			}
			cur.WriteString(part)
			size += n
		}
		if strings.TrimSpace(line) == "```" {
			fenced = !fenced
		}
	}
	fenced = false
	flush()
	return pieces
}

func hardWrap(line string, limit int) []string {
	r := []rune(line)
	var parts []string
	for len(r) > limit {
		parts = append(parts, string(r[:limit]))
		r = r[limit:]
	}
	return append(parts, string(r))
}
