package sandbox

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

func benchPolicy(b *testing.B) (Box, Policy) {
	box := newBox(b)
	dir := b.TempDir()
	return box, Policy{Workspace: dir, Env: []string{"PATH=" + defaultPath}}
}

// BenchmarkBoxedTrue is to be compared with BenchmarkPlainBwrapTrue: the box's own cost.
func BenchmarkBoxedTrue(b *testing.B) {
	box, p := benchPolicy(b)
	for b.Loop() {
		if r, err := box.Run(context.Background(), p, Command{Argv: []string{"/bin/true"}}); err != nil || r.ExitCode != 0 {
			b.Fatal(r, err)
		}
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
	_, p := benchPolicy(b)
	x := &execution{workspace: p.Workspace, private: true, mounts: append(identity(os.Geteuid(), os.Getegid(), ""), rootMounts(p)...)}
	program, err := exec.LookPath("bwrap")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		args, err := x.arguments()
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(program, append(args, "--", "/bin/true")...)
		cmd.ExtraFiles = x.files
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		x.closeFiles()
	}
}

func BenchmarkPlainTrue(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
