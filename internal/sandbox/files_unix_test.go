//go:build unix

package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"reasonix/internal/tool"
)

func TestSpecialFilesAreRefusedAtOnce(t *testing.T) { // S56
	h := newHouse(t, FilesConfig{})
	if err := syscall.Mkfifo(h.in("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.link("/dev/zero", "zero")
	h.link("/proc/self/mem", "mem")
	old, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(h.w) // socket paths are short
	l, err := net.Listen("unix", "sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Chdir(old)
	for _, p := range []string{"pipe", "sock", "zero", "mem", "."} {
		if _, _, err := h.files.Read(t.Context(), p, 0); err == nil {
			t.Errorf("read %s was let through", p)
		}
		if err := h.write(p); err == nil {
			t.Errorf("write %s was let through", p)
		}
	}
	if _, _, err := h.files.Read(t.Context(), "pipe", 0); !errors.Is(err, tool.ErrSpecial) {
		t.Errorf("the pipe: %v", err)
	}
	if got := h.walk("."); got != "" {
		t.Errorf("a walk visits %s", got)
	}
}

// A loop swaps W/d between a folder and links while the tool writes and reads through it.
func TestASwappedLinkNeverWins(t *testing.T) { // S20
	for name, target := range map[string]string{"outside": "../O", "the protected folder": ".git/hooks"} {
		t.Run(name, func(t *testing.T) {
			h := newHouseIn(t, memoryDir(t), FilesConfig{})
			if err := os.Mkdir(h.in("d"), 0o755); err != nil {
				t.Fatal(err)
			}
			h.link(target, "d.link")
			stop, stopped, ready := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					exchange(h.in("d"), h.in("d.link"), h.in("d.dir"))
					if i == 0 {
						close(ready)
					}
				}
			}()
			<-ready
			written, refused := 0, 0
			for range 1000 {
				if err := h.files.Write(t.Context(), "d/a", []byte("attack"), ""); err == nil {
					written++
				} else {
					refused++
				}
				if got, _, err := h.files.Read(t.Context(), "d/a", 0); err == nil && string(got) == "marker" {
					t.Fatal("the marker outside was read")
				}
				h.put(h.in("src"), "attack")
				_ = h.files.Move(t.Context(), "src", "d/moved") // only its effect counts
				runtime.Gosched()
			}
			close(stop)
			<-stopped
			h.untouched()
			hooks, err := os.ReadDir(h.in(".git/hooks"))
			if err != nil || len(hooks) != 0 {
				t.Errorf("hooks now holds %v (%v)", hooks, err)
			}
			t.Logf("%d written, %d refused", written, refused)
			if written == 0 || refused == 0 {
				t.Log("the race was one-sided on this machine")
			}
		})
	}
}

// memoryDir is a folder whose syncs cost nothing, where there is one: the race needs speed.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "reasonix-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// exchange makes d a link, then a folder again; each step is one rename.
func exchange(d, link, dir string) {
	_ = os.Rename(d, dir)
	_ = os.Rename(link, d)
	runtime.Gosched()
	_ = os.Rename(d, link)
	_ = os.Rename(dir, d)
}

func TestMovingAcrossAMountCopies(t *testing.T) {
	shm := "/dev/shm"
	if _, err := os.Stat(shm); err != nil {
		t.Skip("no /dev/shm here to stand for another file system")
	}
	other, err := os.MkdirTemp(shm, "reasonix-test-")
	if err != nil {
		t.Skipf("cannot write to /dev/shm: %v", err)
	}
	defer os.RemoveAll(other)
	h := newHouse(t, FilesConfig{Write: []string{other}})
	h.put(h.in("f"), "content")
	to := filepath.Join(other, "f")
	if err := h.files.Move(t.Context(), "f", to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != "content" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := os.Lstat(h.in("f")); err == nil {
		t.Error("the source is still there")
	}
}

func TestAFolderThatBecameALinkIsNotEntered(t *testing.T) {
	h := newHouse(t, FilesConfig{})
	h.link(".git/hooks", "inside")
	h.link(h.o, "outside")
	for _, name := range []string{"inside", "outside"} {
		if dir, err := openFolder(h.w, []string{name}, true); !errors.Is(err, errSwapped) {
			t.Errorf("%s: %v %v", name, dir, err)
		}
	}
	root, err := os.OpenRoot(h.w)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	h.put(h.in("real"), "x")
	h.link("real", "alias")
	if _, _, err := openRegular(root, "alias"); !errors.Is(err, errSwapped) {
		t.Errorf("a file that became a link: %v", err)
	}
}

func TestAHostRunningAsRootCreatesForTheWorkspacesOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	h := newHouse(t, FilesConfig{})
	const owner = 54321
	h.put(h.in("theirs"), "x")
	for p, uid := range map[string]int{h.w: owner, h.in("theirs"): owner + 1} {
		if err := os.Chown(p, uid, uid); err != nil {
			t.Skipf("cannot change owners here: %v", err)
		}
	}
	for _, p := range []string{"new/deep/f", "top", "theirs"} {
		if err := h.write(p); err != nil {
			t.Fatal(err)
		}
	}
	for p, want := range map[string]uint32{"new": owner, "new/deep": owner, "new/deep/f": owner, "top": owner, "theirs": owner + 1} {
		info, err := os.Stat(h.in(p))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
			t.Errorf("%s belongs to %d, want %d", p, got, want)
		}
	}
}

// Resolve agrees with the kernel about everything that exists.
func TestResolveAgreesWithTheKernel(t *testing.T) {
	h := newHouse(t, FilesConfig{})
	h.put(h.in("a/b/f"), "x")
	h.put(h.in("c/f"), "x")
	for name, target := range map[string]string{"l1": "a/b", "a/up": "..", "c/over": "../a/b/../../l1", "abs": h.in("c"), "a/b/loop": "loop"} {
		h.link(target, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "f", "..", ".", "l1", "up", "over", "abs"}), 1, 7).Draw(t, "path")
		path := strings.Join(parts, "/")
		info, err := os.Stat(h.w + "/" + path)
		if err != nil {
			return
		}
		resolved := h.files.Resolve(path)
		again, err := os.Lstat(resolved)
		if err != nil || !os.SameFile(info, again) || h.files.Resolve(resolved) != resolved {
			t.Fatalf("%s resolves to %s: %v", path, resolved, err)
		}
	})
}
