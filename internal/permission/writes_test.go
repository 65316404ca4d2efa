package permission

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWriteAccessOutsideTheRootsIsAskedForOrNeverGranted(t *testing.T) {
	p := NewPolicy(Config{Allow: []Rule{{Text: "Bash"}, {Text: "Edit"}}})
	for name, c := range map[string]struct {
		dirs    string
		posture Posture
		surface Surface
		want    Verdict
		reason  string
	}{
		"a folder":               {`["/srv/cache"]`, PostureAsk, Attended, Ask, "/srv/cache"},
		"under yolo too":         {`["/srv/cache"]`, PostureYolo, Attended, Ask, "/srv/cache"},
		"nobody to ask":          {`["/srv/cache"]`, PostureYolo, Headless, Refuse, "nobody can be asked"},
		"inside a root":          {`["/srv/open/x", "/w/sub"]`, PostureAsk, Attended, Allow, ""},
		"the root":               {`["/"]`, PostureYolo, Attended, Deny, "root of the file system"},
		"the root, spelled":      {`["/srv/../"]`, PostureAsk, Attended, Deny, "root of the file system"},
		"the host's state":       {`["/state/x"]`, PostureYolo, Attended, Deny, "its own state"},
		"above the host's state": {`["/state"]`, PostureAsk, Attended, Deny, "its own state"},
		"the system":             {`["/usr/local/bin"]`, PostureAsk, Attended, Deny, "belongs to the system"},
		"the home":               {`["/home/u"]`, PostureAsk, Attended, Ask, "Warning: /home/u"},
		"above the home":         {`["/home"]`, PostureAsk, Attended, Ask, "Warning: /home"},
		"in the home":            {`["/home/u/x"]`, PostureAsk, Attended, Ask, "/home/u/x"},
		"no list":                {`"x"`, PostureAsk, Attended, Ask, ""},
	} {
		call := Call{Tool: "bash", Args: json.RawMessage(`{"command":"make","additional_write_dirs":` + c.dirs + `}`), Root: "/w",
			WriteRoots: []string{"/srv/open"}, Never: []string{"/state/x"}, Home: "/home/u"}
		d := p.Decide(call, Situation{Posture: c.posture, Surface: c.surface})
		if d.Verdict != c.want || !strings.Contains(d.Reason, c.reason) {
			t.Errorf("%s: %s, %s", name, d.Verdict, d.Reason)
		}
		if d.Verdict == Ask && (d.Kind != KindWrite || len(d.Writes) == 0) || strings.Contains(d.Reason, "Warning") != strings.Contains(c.reason, "Warning") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	edit := Call{Tool: "write_file", Args: json.RawMessage(`{"path":"/srv/x","content":""}`), Root: "/w", Never: []string{"/state"}, Paths: []Path{{Raw: "/srv/x", Resolved: "/srv/x"}}}
	if d := p.Decide(edit, Situation{Surface: Attended}); d.Verdict != Ask || d.Kind != KindWrite || len(d.Writes) != 1 || d.Writes[0] != "/srv/x" || len(d.Folders) != 1 || d.Folders[0] != "/srv" {
		t.Errorf("%+v", d)
	}
	edit.Paths = []Path{{Raw: "/etc/hosts", Resolved: "/etc/hosts"}}
	if d := p.Decide(edit, Situation{Surface: Attended}); d.Verdict != Ask || len(d.Folders) != 0 {
		t.Errorf("a file of the system, once: %+v", d)
	}
	edit.Paths = []Path{{Raw: "x", Resolved: "/state/db"}}
	if d := p.Decide(edit, Situation{Posture: PostureYolo, Surface: Attended}); d.Verdict != Deny {
		t.Errorf("through a link: %+v", d)
	}
}
