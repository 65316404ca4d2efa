package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/tool"
)

// house is a workspace W beside an outside folder O with a marker file, as the escape cases describe them.
type house struct {
	t      *testing.T
	w, o   string
	files  *Files
	marker string
}

func newHouse(t *testing.T, c FilesConfig) *house {
	t.Helper()
	return newHouseIn(t, t.TempDir(), c)
}

func newHouseIn(t *testing.T, dir string, c FilesConfig) *house {
	t.Helper()
	base, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, w: filepath.Join(base, "W"), o: filepath.Join(base, "O")}
	h.marker = filepath.Join(h.o, "a")
	for _, d := range []string{h.w, h.o, filepath.Join(h.w, ".git", "hooks")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.put(h.marker, "marker")
	h.put(h.in(".git/config"), "[core]\n")
	c.Workspace = h.w
	if h.files, err = NewFiles(c); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) in(rel string) string { return filepath.Join(h.w, filepath.FromSlash(rel)) }

func (h *house) put(path, content string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) link(target, name string) {
	h.t.Helper()
	if err := os.Symlink(target, h.in(name)); err != nil {
		h.t.Skipf("links cannot be made here: %v", err)
	}
}

func (h *house) write(path string) error {
	return h.files.Write(h.t.Context(), path, []byte("x"), "")
}

// untouched asserts that nothing outside changed.
func (h *house) untouched() {
	h.t.Helper()
	got, err := os.ReadFile(h.marker)
	if err != nil || string(got) != "marker" {
		h.t.Errorf("the marker outside is now %q (%v)", got, err)
	}
	entries, err := os.ReadDir(h.o)
	if err != nil || len(entries) != 1 {
		h.t.Errorf("the outside folder holds %v (%v)", entries, err)
	}
}

func TestNothingIsWrittenOrReadOutsideTheRoots(t *testing.T) { // S03, S04
	h := newHouse(t, FilesConfig{})
	h.link(h.o, "l")
	h.link("../O", "rel")
	h.link("l", "chain")
	h.link(h.marker, "leaf")
	h.put(h.in("sub/f"), "x")
	for _, p := range []string{
		"../O/a", "sub/../../O/a", h.w + "/../O/a", h.marker, // S04
		"l/new/deep/a", "l/a", "rel/a", "chain/a", "leaf", "l/../O/a", // S03: the deepest existing ancestor lies outside
		"../W2/a", h.w + "2/a", "", "a\x00b",
	} {
		if err := h.write(p); err == nil {
			t.Errorf("write %q was let through", p)
		}
		if _, _, err := h.files.Read(t.Context(), p, 0); err == nil {
			t.Errorf("read %q was let through", p)
		}
		if err := h.files.Move(t.Context(), "sub/f", p); err == nil {
			t.Errorf("move to %q was let through", p)
		}
		if err := h.files.Move(t.Context(), p, "got"); err == nil {
			t.Errorf("move from %q was let through", p)
		}
	}
	if _, err := h.files.List(t.Context(), "l"); !errors.Is(err, tool.ErrOutside) {
		t.Errorf("list through a link: %v", err)
	}
	h.untouched()
}

func TestALinkBeforeDotDotIsFollowedAsTheKernelDoes(t *testing.T) {
	h := newHouse(t, FilesConfig{})
	h.link(h.o, "l")
	if got := h.files.Resolve("l/../W/x"); got != h.in("x") {
		t.Errorf("l/../W/x resolves to %s", got)
	}
	if got := h.files.Resolve("l/../x"); got != filepath.Join(filepath.Dir(h.w), "x") {
		t.Errorf("l/../x resolves to %s, a lexical cleaning would say W/x", got)
	}
	h.link("loop2", "loop1")
	h.link("loop1", "loop2")
	if err := h.write("loop1/x"); err == nil {
		t.Error("a loop of links was written through")
	}
}

func TestLinksInsideTheWorkspaceWork(t *testing.T) {
	h := newHouse(t, FilesConfig{})
	h.put(h.in("real/f"), "old")
	h.link("real", "alias")
	h.link(h.in("real/f"), "direct")
	if err := h.write("alias/f"); err != nil {
		t.Fatal(err)
	}
	if got, _, err := h.files.Read(t.Context(), "direct", 0); err != nil || string(got) != "x" {
		t.Fatalf("%q %v", got, err)
	}
	if fi, err := os.Lstat(h.in("direct")); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced instead of its target")
	}
}

func TestGrantedRootsOpenMore(t *testing.T) {
	base := t.TempDir()
	granted, readable := filepath.Join(base, "granted"), filepath.Join(base, "readable")
	h := newHouse(t, FilesConfig{Write: []string{granted}, Readable: []string{readable}})
	if err := h.write(filepath.Join(granted, "f")); err == nil {
		t.Error("a granted folder that does not exist was made out of nothing")
	}
	h.put(filepath.Join(granted, "old"), "x") // it appears later
	h.put(filepath.Join(readable, "f"), "text")
	if err := h.write(filepath.Join(granted, "f")); err != nil {
		t.Error(err)
	}
	if err := h.write(filepath.Join(readable, "f")); !errors.Is(err, tool.ErrOutside) {
		t.Errorf("a folder that may only be read was written: %v", err)
	}
	if got, _, err := h.files.Read(t.Context(), filepath.Join(readable, "f"), 0); err != nil || string(got) != "text" {
		t.Errorf("%q %v", got, err)
	}
	if err := h.files.Move(t.Context(), filepath.Join(granted, "f"), "moved"); err != nil {
		t.Errorf("move between roots: %v", err)
	}
}

func TestAtATerminalEverythingButTheForbiddenMayBeRead(t *testing.T) {
	h := newHouse(t, FilesConfig{ReadAnywhere: true})
	if got, _, err := h.files.Read(t.Context(), h.marker, 0); err != nil || string(got) != "marker" {
		t.Errorf("%q %v", got, err)
	}
	if err := h.write(h.marker); !errors.Is(err, tool.ErrOutside) {
		t.Errorf("write: %v", err)
	}
	for _, p := range []string{"/proc/self/environ", "/dev/zero", "/sys/kernel"} {
		if _, _, err := h.files.Read(t.Context(), p, 0); err == nil {
			t.Errorf("%s was read", p)
		}
	}
	h.untouched()
}

func TestForbiddenPathsAreNeitherReadListedNorSearchedEvenWhenTheyAppearLater(t *testing.T) {
	h := newHouse(t, FilesConfig{ReadAnywhere: true, ForbidRead: []string{"secrets", "later", "/nowhere/at/all"}})
	h.put(h.in("secrets/key"), "k")
	h.put(h.in("open"), "o")
	h.link("secrets", "alias")
	if _, err := os.Lstat(h.in("later")); err == nil {
		t.Fatal("the case needs a path that does not exist yet")
	}
	h.put(h.in("later"), "k")
	if err := os.Link(h.in("secrets/key"), h.in("other-name")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"secrets/key", "alias/key", "later", "other-name", "sub/../secrets/key"} {
		if _, _, err := h.files.Read(t.Context(), p, 0); !errors.Is(err, tool.ErrForbidden) {
			t.Errorf("read %s: %v", p, err)
		}
	}
	if _, err := h.files.List(t.Context(), "secrets"); !errors.Is(err, tool.ErrForbidden) {
		t.Errorf("list: %v", err)
	}
	if _, err := h.files.Stat(t.Context(), "secrets/key"); !errors.Is(err, tool.ErrForbidden) {
		t.Errorf("stat: %v", err)
	}
	if err := h.files.Move(t.Context(), "secrets/key", "mine"); !errors.Is(err, tool.ErrForbidden) {
		t.Errorf("move: %v", err)
	}
	entries, err := h.files.List(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "secrets" || e.Name() == "later" {
			t.Errorf("%s is listed", e.Name())
		}
	}
	if err := os.Remove(h.in("other-name")); err != nil {
		t.Fatal(err)
	}
	if got := h.walk("."); strings.Contains(got, "secrets") || strings.Contains(got, "later") || !strings.Contains(got, "open") {
		t.Errorf("walk shows %s", got)
	}
}

func TestWhatSteersTheHostIsChangedByPeopleOnly(t *testing.T) {
	h := newHouse(t, FilesConfig{Protected: []string{"ci"}})
	h.link(".git", "g")
	h.put(h.in("f"), "x")
	for _, p := range []string{
		".git/config", ".git/hooks/pre-commit", ".git", "g/config", ".GIT/config", ".git./config", "sub/.git/config",
		"git~1/config", ".reasonix/commands/x.md", "reasonix.toml", "Reasonix.TOML", ".mcp.json", "ci/deploy.yml",
	} {
		if err := h.write(p); !errors.Is(err, tool.ErrProtected) {
			t.Errorf("write %s: %v", p, err)
		}
		if err := h.files.Move(t.Context(), "f", p); !errors.Is(err, tool.ErrProtected) {
			t.Errorf("move to %s: %v", p, err)
		}
	}
	if err := h.files.Move(t.Context(), ".git", "g2"); !errors.Is(err, tool.ErrProtected) {
		t.Errorf("move .git away: %v", err)
	}
	if got, _, err := h.files.Read(t.Context(), ".git/config", 0); err != nil || string(got) != "[core]\n" {
		t.Errorf("reading .git is allowed: %q %v", got, err)
	}
	for _, p := range []string{".gitignore", ".github/x.yml", "sub/reasonix.toml"} {
		if err := h.write(p); err != nil {
			t.Errorf("%s is an ordinary file: %v", p, err)
		}
	}
}

func TestAHardLinkIsNoWayToAProtectedFile(t *testing.T) { // S06
	h := newHouse(t, FilesConfig{})
	if err := os.Link(h.in(".git/config"), h.in("notes.txt")); err != nil {
		t.Skipf("hard links cannot be made here: %v", err)
	}
	if err := h.write("notes.txt"); !errors.Is(err, tool.ErrProtected) {
		t.Errorf("write: %v", err)
	}
	if got, err := os.ReadFile(h.in(".git/config")); err != nil || string(got) != "[core]\n" {
		t.Errorf(".git/config is now %q (%v)", got, err)
	}
	h.put(h.in("a"), "old")
	if err := os.Link(h.in("a"), h.in("b")); err != nil {
		t.Fatal(err)
	}
	if err := h.write("a"); err != nil {
		t.Errorf("an ordinary file with two names: %v", err)
	}
	if got, _ := os.ReadFile(h.in("b")); string(got) != "old" {
		t.Errorf("the other name changed too: %q", got)
	}
}

func TestAReadOnlyWorkspaceRefusesEveryChange(t *testing.T) {
	other := t.TempDir()
	h := newHouse(t, FilesConfig{ReadOnly: true, Write: []string{other}})
	h.put(h.in("f"), "x")
	for _, err := range []error{h.write("f"), h.write("new"), h.write(filepath.Join(other, "x")), h.files.Move(t.Context(), "f", "g")} {
		if !errors.Is(err, tool.ErrReadOnly) {
			t.Errorf("got %v", err)
		}
	}
	if _, _, err := h.files.Read(t.Context(), "f", 0); err != nil {
		t.Error(err)
	}
}

func TestNewFilesNamesWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ws := range []string{"", filepath.Join(file, "none"), file} {
		if _, err := NewFiles(FilesConfig{Workspace: ws}); err == nil || !strings.Contains(err.Error(), "open file tools") {
			t.Errorf("workspace %q: %v", ws, err)
		}
	}
}

// walk joins what a walk visits.
func (h *house) walk(path string) string {
	h.t.Helper()
	var seen []string
	err := h.files.Walk(h.t.Context(), path, func(p string, d fs.DirEntry) error {
		if _, err := d.(tool.Content).Read(0); err != nil {
			seen = append(seen, p+":"+err.Error())
			return nil
		}
		seen = append(seen, p)
		return nil
	})
	if err != nil {
		h.t.Errorf("walk %s: %v", path, err)
	}
	return strings.Join(seen, " ")
}
