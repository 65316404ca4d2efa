package sandbox

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func benchPolicy(b *testing.B) (Box, Policy) {
	box := newBox(b)
	p := Policy{Workspace: b.TempDir(), Env: []string{"PATH=" + defaultPath}}
	_, missing, err := planMounts(p)
	if err != nil {
		b.Fatal(err)
	}
	release, err := shadows.hold(missing) // as if another box of the workspace ran: plain bubblewrap needs them too
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(release)
	return box, p
}

// plainBwrap runs true in bubblewrap with the same flags and mounts as the box, and nothing else of ours.
func plainBwrap(b *testing.B, p Policy, program string) {
	mounts, _, err := planMounts(p)
	if err != nil {
		b.Fatal(err)
	}
	x := &execution{workspace: p.Workspace, private: true, mounts: append(identity(os.Geteuid(), os.Getegid(), ""), mounts...)}
	args, err := x.arguments()
	if err != nil {
		b.Fatal(err)
	}
	defer x.closeFiles()
	filter, err := filterProgram(true)
	if err != nil {
		b.Fatal(err)
	}
	fd, err := x.give(filter)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, append(args, "--seccomp", fd, "--remount-ro", "/", "--remount-ro", "/dev", "--chdir", p.Workspace, "--", "/bin/true")...)
	cmd.ExtraFiles = x.files
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
}

func boxedTrue(b *testing.B, box Box, p Policy) {
	if r, err := box.Run(context.Background(), p, Command{Argv: []string{"/bin/true"}}); err != nil || r.ExitCode != 0 {
		b.Fatal(r, err)
	}
}

// BenchmarkBoxedOverPlain runs the two by turns, so that a busy machine slows both, and compares their medians: the box's own cost.
func BenchmarkBoxedOverPlain(b *testing.B) {
	box, p := benchPolicy(b)
	program := box.(bwrap).program
	var boxed, plain []time.Duration
	for b.Loop() {
		start := time.Now()
		boxedTrue(b, box, p)
		middle := time.Now()
		plainBwrap(b, p, program)
		boxed, plain = append(boxed, middle.Sub(start)), append(plain, time.Since(middle))
	}
	b.ReportMetric(median(boxed)/median(plain), "ratio")
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2])
}

func BenchmarkBoxedTrue(b *testing.B) {
	box, p := benchPolicy(b)
	for b.Loop() {
		boxedTrue(b, box, p)
	}
}

// BenchmarkBoxedTrueUnderAnAccount is the box of a bot task of a root host, whose mounts are staged for an account of its own.
func BenchmarkBoxedTrueUnderAnAccount(b *testing.B) {
	box, p := benchPolicy(b)
	uid, gid, ok := box.(Accounts).Account("bench")
	if !ok {
		b.Skip("root only")
	}
	if err := os.Chown(p.Workspace, uid, gid); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		boxedTrue(b, box, p)
	}
}

// BenchmarkReducedTrue is to be compared with BenchmarkPlainTrue.
func BenchmarkReducedTrue(b *testing.B) {
	box := newReducedBox(b)
	p := Policy{Workspace: b.TempDir(), Env: []string{"PATH=" + defaultPath}}
	for b.Loop() {
		if r, err := box.Run(context.Background(), p, Command{Argv: []string{"/bin/true"}}); err != nil || r.ExitCode != 0 {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkPlainBwrapTrue(b *testing.B) {
	box, p := benchPolicy(b)
	for b.Loop() {
		plainBwrap(b, p, box.(bwrap).program)
	}
}

func BenchmarkPlainTrue(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
