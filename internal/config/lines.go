package config

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

var tableLine = regexp.MustCompile(`^\s*\[\[?\s*([A-Za-z0-9_.\-" ]+?)\s*\]?\]`)

// lineOf finds where a key stands, 1-based; the TOML library gives no positions of values. It looks for the key in its
// table first, then for its last part anywhere, and answers 1 when it finds neither.
func lineOf(data []byte, key ...string) int {
	last := key[len(key)-1]
	table, anywhere, current := strings.Join(key[:len(key)-1], "."), 0, ""
	assign := regexp.MustCompile(`(^|[\s{,])"?` + regexp.QuoteMeta(last) + `"?\s*=`)
	for i, line := range bytes.Split(data, []byte("\n")) {
		text := string(line)
		if m := tableLine.FindStringSubmatch(text); m != nil {
			current = strings.ReplaceAll(m[1], `"`, "")
			if current == strings.Join(key, ".") {
				return i + 1
			}
		}
		if !assign.MatchString(text) {
			continue
		}
		if current == table {
			return i + 1
		}
		if anywhere == 0 {
			anywhere = i + 1
		}
	}
	return max(anywhere, 1)
}

// nthTable finds the line of the n-th [[name]].
func nthTable(data []byte, name string, n int) int {
	for i, line := range bytes.Split(data, []byte("\n")) {
		if m := tableLine.FindStringSubmatch(string(line)); m != nil && m[1] == name {
			if n == 0 {
				return i + 1
			}
			n--
		}
	}
	return 1
}

// noteSources remembers where each rule stands.
func (c *Config) noteSources(path string, data []byte) {
	lines := bytes.Split(data, []byte("\n"))
	find := func(rule string) string {
		for i, line := range lines {
			if bytes.Contains(line, []byte(strconv.Quote(rule))) || bytes.Contains(line, []byte("'"+rule+"'")) {
				return path + ":" + strconv.Itoa(i+1)
			}
		}
		return path
	}
	for list, rules := range map[string][]string{"allow": c.Permissions.Allow, "ask": c.Permissions.Ask, "deny": c.Permissions.Deny} {
		for _, r := range rules {
			c.Permissions.Sources[list+"\x00"+r] = find(r)
		}
	}
}
