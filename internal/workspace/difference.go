package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// differenceLimit bounds what people are shown; what did not fit is counted, never dropped in silence.
const differenceLimit = 64 << 10

// Difference describes what changed in the tree since the state with that hash. Empty: nothing did.
func (w *Workspace) Difference(ctx context.Context, fromHash string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, err := w.difference(ctx, fromHash)
	if err != nil {
		return "", fmt.Errorf("compare workspace %s: %w", w.ID, err)
	}
	return text, nil
}

func (w *Workspace) difference(ctx context.Context, fromHash string) (string, error) {
	var from manifest
	if len(fromHash) != 64 || strings.Trim(fromHash, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is not the hash of a state", fromHash)
	}
	data, err := os.ReadFile(w.manifestFile(fromHash))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "The state it is compared with is not known on this host; the change cannot be shown.\n", nil
	case err != nil:
		return "", err
	}
	if err := json.Unmarshal(data, &from); err != nil {
		return "", err
	}
	now, state, err := w.scan(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if from.Head != state.Head {
		fmt.Fprintf(&b, "HEAD: %s → %s\n", short(from.Head), short(state.Head))
	}
	left, before := 0, from.whole(w.base)
	for _, p := range changedPaths(before, now) {
		text := w.describe(ctx, p, before[p], now[p])
		if b.Len()+len(text) > differenceLimit {
			left++
			continue
		}
		b.WriteString(text)
	}
	if left > 0 {
		fmt.Fprintf(&b, "… and %d more changed files, too long to show\n", left)
	}
	return b.String(), nil
}

func short(sha string) string {
	if len(sha) > 12 {
		return sha[:12]
	}
	if sha == "" {
		return "none"
	}
	return sha
}

func changedPaths(a, b map[string]entry) []string {
	changed := map[string]bool{}
	for p, e := range a {
		if other, ok := b[p]; !ok || !same(e, other) {
			changed[p] = true
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			changed[p] = true
		}
	}
	return sortedKeys(changed)
}

// same: the base's own file needs no hash to be compared with itself.
func same(a, b entry) bool {
	return a.Mode == b.Mode && a.Base == b.Base && (a.Base || a.Hash == b.Hash)
}

func (w *Workspace) describe(ctx context.Context, p string, a, b entry) string {
	old, okA := w.text(ctx, p, a)
	cur, okB := w.text(ctx, p, b)
	if okA && okB && old != cur {
		from, to := "a/"+p, "b/"+p
		if a.Mode == "" {
			from = os.DevNull
		}
		if b.Mode == "" {
			to = os.DevNull
		}
		return udiff.Unified(from, to, old, cur)
	}
	what := map[string]string{"": "absent", "f": "file", "x": "executable", "l": "link", "s": "special file"}
	return fmt.Sprintf("%q: %s of %d bytes → %s of %d bytes\n", p, what[a.Mode], a.Size, what[b.Mode], b.Size)
}

// text is the kept content of a text file; an absent file is empty text.
func (w *Workspace) text(ctx context.Context, p string, e entry) (string, bool) {
	var data []byte
	var err error
	switch {
	case e.Mode == "":
		return "", true
	case e.Base:
		data, err = w.store.run(ctx, gitCall{dir: w.store.hostGit(w.ID), args: []string{"cat-file", "blob", w.base.blobs[p]}, limit: keptText + 1})
	case e.Kept:
		var ok bool
		if data, ok = w.keptBlob(e.Hash); !ok {
			return "", false
		}
	default:
		return "", false
	}
	text := string(data)
	return text, err == nil && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
