package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var seatbeltPolicy = Policy{
	Workspace: "/Users/dev/work", Home: "/Users/dev/.reasonix/boxes/x/home", Temp: "/var/folders/ab/T/x", Caches: []string{"/Users/dev/.reasonix/boxes/x/caches"},
	Writable: []string{"/tmp/shared"}, Readable: []string{"/opt/go"}, ForbidRead: []string{"/Users/dev/work/.env", "/etc/secret"},
}

// The whole text, so that every change of it is looked at: UPDATE=1 writes it anew.
func TestSeatbeltProfileIsTheOneThatWasLookedAt(t *testing.T) {
	plan := seatbeltPolicy
	plan.ReadOnly = true
	plan.Writable = append([]string{"/Users/dev/work/out"}, plan.Writable...)
	for name, p := range map[string]Policy{"seatbelt.sb": seatbeltPolicy, "seatbelt-plan.sb": plan} {
		got, err := seatbeltProfile(p)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name)
		if os.Getenv("UPDATE") == "1" {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || got != string(want) {
			t.Errorf("%s differs:\n%s", name, got)
		}
	}
}

// What decides is which rule matches last.
func TestSeatbeltDeniesComeAfterTheGrantsAroundThem(t *testing.T) {
	text, err := seatbeltProfile(seatbeltPolicy)
	if err != nil {
		t.Fatal(err)
	}
	grant := strings.Index(text, "(allow file-write*\n")
	for _, later := range []string{`"^/Users/dev/work/\\.[gG][iI][tT]/[hH][oO][oO][kK][sS](/|$)"`, `"^/Users/dev/work/\\.[gG][iI][tT]$"`, `"^/Users/dev/work/\\.[mM][cC][pP]\\.`,
		`(subpath "/Users/dev/work/.env")`, `(subpath "/private/etc/secret")`} {
		if at := strings.LastIndex(text, later); grant < 0 || at < grant {
			t.Errorf("%s stands at %d, the grant at %d", later, at, grant)
		}
	}
	for _, want := range []string{"(deny default)", "(deny network*)", `(subpath "/private/tmp/shared")`, `(subpath "/private/var/folders/ab/T/x")`, `(literal "/Users/dev")`} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s", want)
		}
	}
	for _, bad := range []string{"allow network", "(subpath \"/Users/dev\")", "(subpath \"/private/tmp\")", "(subpath \"/\")"} {
		if strings.Contains(text, bad) {
			t.Errorf("has %s", bad)
		}
	}
}

func TestSeatbeltOfAPlanWritesNothingInTheWorkspace(t *testing.T) {
	p := seatbeltPolicy
	p.ReadOnly, p.Writable = true, []string{"/Users/dev/work/out", "/Users/dev/elsewhere"}
	text, err := seatbeltProfile(p)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(text, "(allow file-write*\n")
	granted, _, _ := strings.Cut(after, ")\n(")
	if strings.Contains(granted, "/Users/dev/work") || !strings.Contains(granted, "/Users/dev/elsewhere") {
		t.Errorf("writable in a plan:\n%s", granted)
	}
}

func TestSeatbeltQuotesPathsAndRefusesWhatItCannotQuote(t *testing.T) {
	p := seatbeltPolicy
	p.Workspace = `/Users/dev/a "b" (c) \d`
	text, err := seatbeltProfile(p)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `(subpath "/Users/dev/a \"b\" (c) \\d")`) || !strings.Contains(text, `"^/Users/dev/a \"b\" \\(c\\) \\\\d/\\.[gG]`) {
		t.Errorf("quoted wrongly:\n%s", text)
	}
	for name, change := range map[string]func(*Policy){
		"no workspace":        func(p *Policy) { p.Workspace = "" },
		"relative":            func(p *Policy) { p.Workspace = "work" },
		"not clean":           func(p *Policy) { p.Readable = []string{"/a/../b"} },
		"a line break":        func(p *Policy) { p.Caches = []string{"/a\n(allow default)"} },
		"a NUL":               func(p *Policy) { p.ForbidRead = []string{"/a\x00"} },
		"the root":            func(p *Policy) { p.Writable = []string{"/"} },
		"all temporary files": func(p *Policy) { p.Writable = []string{"/tmp"} },
		"all homes":           func(p *Policy) { p.Workspace = "/Users" },
		"a network":           func(p *Policy) { p.Network = &Network{} },
	} {
		p := seatbeltPolicy
		change(&p)
		if text, err := seatbeltProfile(p); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestPathsThatMacOSKeepsElsewhere(t *testing.T) {
	for in, want := range map[string]string{"/tmp": "/private/tmp", "/tmp/a": "/private/tmp/a", "/tmpx": "/tmpx", "/var/folders/x": "/private/var/folders/x",
		"/etc/hosts": "/private/etc/hosts", "/private/tmp": "/private/tmp", "/Users/dev/tmp": "/Users/dev/tmp"} {
		if got := privatePath(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestSystemsWithoutABox(t *testing.T) {
	box, rep, err := detectNone("windows")
	if err != nil || box.Name() != "off" || rep.Mode != "off" || !strings.Contains(strings.Join(rep.Warnings, ""), "bash = \"enforce\" is ignored") {
		t.Errorf("windows: %v %+v %v", box, rep, err)
	}
	if box, rep, err := detectNone("plan9"); err == nil || box != nil || !strings.Contains(rep.Reason, "plan9") {
		t.Errorf("plan9: %v %+v %v", box, rep, err)
	}
}
