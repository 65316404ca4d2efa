package config

import (
	"strings"
	"testing"
)

func TestTheReducedBoxIsTheHostsDecisionAlone(t *testing.T) {
	for name, c := range map[string]struct{ user, project, want string }{
		"asked for and allowed":           {"[sandbox]\nbackend = \"landlock\"\nallow_reduced_box = true\n", "", ""},
		"allowed as a fallback":           {"[sandbox]\nallow_reduced_box = true\n", "", ""},
		"asked for and not allowed":       {"[sandbox]\nbackend = \"landlock\"\n", "", "write allow_reduced_box = true"},
		"an unknown box":                  {"[sandbox]\nbackend = \"chroot\"\n", "", "use \"auto\", \"bwrap\" or \"landlock\""},
		"a project that allows it":        {"", "[sandbox]\nallow_reduced_box = true\n", "reasonix.toml:2: sandbox.allow_reduced_box belongs into the host's own configuration"},
		"a project that asks for it":      {"[sandbox]\nallow_reduced_box = true\n", "[sandbox]\nbackend = \"landlock\"\n", "reasonix.toml:2: sandbox.backend = \"landlock\" belongs into the host's"},
		"a project on a host that has it": {"[sandbox]\nbackend = \"landlock\"\nallow_reduced_box = true\n", "[sandbox]\nbackend = \"bwrap\"\n", ""},
	} {
		_, err := Load(Sources{User: write(t, "config.toml", c.user), Project: write(t, "reasonix.toml", c.project)})
		if (c.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	c, err := Tighten(Defaults(), "reasonix.toml", []byte("[sandbox]\nallow_reduced_box = true\n"))
	if err != nil || c.Sandbox.AllowReduced || !strings.Contains(strings.Join(c.Warnings, "\n"), "sandbox.allow_reduced_box is ignored here") {
		t.Errorf("a repository of a bot task: %+v %v %v", c.Sandbox, c.Warnings, err)
	}
}
