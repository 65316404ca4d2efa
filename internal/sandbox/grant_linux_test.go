package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/tool"
)

func TestAGrantedFolderIsWritableForThatCommandAlone(t *testing.T) {
	r := newRoom(t)
	dir := filepath.Join(r.outside, "granted")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.chown(dir)
	sh := NewShell(r.box, func() Policy { return r.policy })
	run := func(writes ...string) (tool.Result, error) {
		return sh.Run(t.Context(), tool.Command{Line: "echo x > " + dir + "/f && echo y > " + r.outside + "/marker" /* the box's own folder of that name */, Writes: writes})
	}
	if res, err := run(); err != nil || res.ExitCode == 0 {
		t.Errorf("without a grant: %+v, %v", res, err)
	}
	if res, err := run(dir); err != nil || res.ExitCode != 0 || read(t, filepath.Join(dir, "f")) != "x\n" {
		t.Errorf("with it: %+v, %v", res, err)
	}
	if len(r.policy.Writable) != 0 {
		t.Error("the grant stayed in the policy")
	}
	link := filepath.Join(r.outside, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for bad, want := range map[string]string{link: "it is a link", dir + "/f": "not a folder", dir + "/none": "no such file"} {
		if _, err := run(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestAGrantedFileIsWritableForThatCallAlone(t *testing.T) {
	h := newHouse(t, FilesConfig{})
	at := filepath.Join(h.o, "new.txt")
	ctx := tool.WithWrites(t.Context(), []string{at})
	if err := h.files.Write(t.Context(), at, []byte("x"), ""); !errors.Is(err, tool.ErrOutside) {
		t.Errorf("without a grant: %v", err)
	}
	if err := h.files.Write(ctx, at, []byte("x"), ""); err != nil {
		t.Error(err)
	}
	if data, _, err := h.files.Read(ctx, at, 0); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
	if err := h.files.Write(ctx, filepath.Join(h.o, "other.txt"), []byte("x"), ""); !errors.Is(err, tool.ErrOutside) {
		t.Errorf("a neighbour: %v", err)
	}
}
