package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reasonix/internal/tool"
)

func TestDigestChangesWithEverythingThatMatters(t *testing.T) {
	base := Policy{Workspace: "/w", Home: "/h", Caches: []string{"/c", "/d"}, Writable: []string{"/x"}}
	seen := map[string]string{base.Digest(): "base"}
	for name, change := range map[string]func(*Policy){
		"workspace": func(p *Policy) { p.Workspace = "/w2" },
		"read only": func(p *Policy) { p.ReadOnly = true },
		"home":      func(p *Policy) { p.Home = "/h2" },
		"temp":      func(p *Policy) { p.Temp = "/t" },
		"caches":    func(p *Policy) { p.Caches = []string{"/c"} },
		"writable":  func(p *Policy) { p.Writable = append(p.Writable, "/y") },
		"readable":  func(p *Policy) { p.Readable = []string{"/x"} },
		"forbidden": func(p *Policy) { p.ForbidRead = []string{"/x"} },
		"env":       func(p *Policy) { p.Env = []string{"A=b"} },
		"limits":    func(p *Policy) { p.Limits.Processes = 7 },
	} {
		p := base
		p.Writable = append([]string{}, base.Writable...)
		change(&p)
		if other, ok := seen[p.Digest()]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[p.Digest()] = name
	}
	p := base
	p.Caches = []string{"/d", "/c"}
	p.Limits = Defaults
	if p.Digest() != base.Digest() {
		t.Error("order of the caches or spelled-out defaults change the digest")
	}
}

func TestCaptureKeepsHeadAndTailOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := int64(rapid.IntRange(2, 64).Draw(t, "limit")) * 2
		var all []byte
		var live int
		c := newCapture(limit, func(b []byte) { live += len(b) })
		for range rapid.IntRange(0, 20).Draw(t, "writes") {
			p := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "p")
			all = append(all, p...)
			if n, err := c.Write(p); n != len(p) || err != nil {
				t.Fatalf("Write: %d %v", n, err)
			}
		}
		got, omitted := c.bytes()
		if live != len(all) {
			t.Fatalf("live saw %d of %d", live, len(all))
		}
		if int64(len(all)) <= limit {
			if string(got) != string(all) || omitted != 0 {
				t.Fatalf("short output changed: %q, %d", got, omitted)
			}
			return
		}
		half := int(limit / 2)
		if omitted != int64(len(all))-limit || string(got[:half]) != string(all[:half]) || string(got[len(got)-half:]) != string(all[len(all)-half:]) {
			t.Fatalf("omitted %d of %d", omitted, len(all))
		}
	})
}

func TestBoxEnvIsAnAllowList(t *testing.T) {
	host := map[string]string{"PATH": "/usr/bin:rel:./x:/opt/x", "LANG": "C.UTF-8", "OPENAI_API_KEY": "k", "TERM": "a\nb", "HTTP_PROXY": "http://u:p@h"}
	env := BoxEnv(func(n string) (string, bool) { v, ok := host[n]; return v, ok }, "/home/t", "/tmp", "/caches")
	text := strings.Join(env, "\n")
	for _, want := range []string{"PATH=/usr/bin:/opt/x", "LANG=C.UTF-8", "HOME=/home/t", "TMPDIR=/tmp", "GOCACHE=/caches/go-build", "GOMODCACHE=/caches/go-mod", "npm_config_cache=/caches/npm"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s", want)
		}
	}
	for _, bad := range []string{"KEY", "PROXY", "\nTERM=", "=k"} {
		if strings.Contains(text, bad) {
			t.Errorf("carries %s:\n%s", bad, text)
		}
	}
}

func TestDetectRefusesWhatIsNotBuilt(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		cfg  Config
		want string
	}{{Config{Bash: "maybe"}, "maybe"}, {Config{Backend: "landlock"}, "allow_reduced_box = true"}, {Config{Backend: "chroot"}, "landlock"}} {
		if box, _, err := Detect(ctx, c.cfg); err == nil || box != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v %v", c.cfg, box, err)
		}
	}
	box, rep, err := Detect(ctx, Config{Bash: "off"})
	if err != nil || box.Name() != "off" || len(rep.Warnings) == 0 {
		t.Errorf("off: %v %+v %v", box, rep, err)
	}
}

// echoBox shows what the shell hands to a box.
type echoBox struct{ got *Command }

func (echoBox) Name() string { return "echo" }
func (b echoBox) Run(_ context.Context, _ Policy, c Command) (Result, error) {
	*b.got = c
	return Result{Output: []byte("out"), ExitCode: 3, Omitted: 4, TimedOut: true, Duration: time.Second}, nil
}

func TestShellHandsTheLineToTheBox(t *testing.T) {
	dir := t.TempDir()
	var got Command
	sh := NewShell(echoBox{&got}, func() Policy { return Policy{Workspace: dir} })
	res, err := sh.Run(context.Background(), tool.Command{Line: "a | b", Timeout: time.Minute})
	want := tool.Result{Output: "out", ExitCode: 3, Omitted: 4, TimedOut: true, Duration: time.Second}
	if err != nil || res != want || got.Dir != dir || got.Wall != time.Minute || got.Argv[2] != "a | b" {
		t.Errorf("%+v %v %+v", res, err, got)
	}
	for _, line := range []string{"a\x00b", strings.Repeat("x", 128<<10)} {
		if _, err := sh.Run(context.Background(), tool.Command{Line: line}); err == nil {
			t.Errorf("a line of %d bytes was run", len(line))
		}
	}
	if _, err := sh.Run(context.Background(), tool.Command{Line: "x", Dir: "../x"}); !errors.Is(err, tool.ErrOutside) {
		t.Errorf("outside: %v", err)
	}
}

func TestACommandCanOnlyTightenTheWallTime(t *testing.T) {
	for _, c := range []struct{ policy, command, want time.Duration }{
		{0, 0, 120 * time.Second}, {time.Minute, 0, time.Minute}, {time.Minute, time.Hour, time.Minute},
		{time.Minute, time.Second, time.Second}, {-1, 0, noWall}, {-1, time.Second, time.Second},
	} {
		if got := wallFor(Limits{Wall: c.policy}.withDefaults(), Command{Wall: c.command}); got != c.want {
			t.Errorf("policy %v, command %v: %v, want %v", c.policy, c.command, got, c.want)
		}
	}
}
