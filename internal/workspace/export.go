package workspace

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrExists: a workspace with that id is here already.
var ErrExists = errors.New("a workspace with this id is here already")

// ErrExport: the file is not an export that can be read.
var ErrExport = errors.New("not an export of a workspace")

const (
	exportVersion = 1
	exportList    = "workspace.json"
	exportBundle  = "snapshots.bundle"
	listLimit     = 1 << 20
	exportLimit   = 16 << 30 // bytes of a bundle that is imported
)

// exported says what lies in an export: a tar file with this list first and a git bundle behind it.
type exported struct {
	Version   int        `json:"version"`
	Whole     bool       `json:"whole"` // the base's history is in the bundle
	Meta      meta       `json:"workspace"`
	Snapshots []Snapshot `json:"snapshots"`
}

// Export writes the snapshots of a workspace and what is needed to go on from them elsewhere into a new file. The base commit comes from
// the upstream there, unless whole takes its history along. ErrUnknown, ErrNoSnapshot, fs.ErrExist.
func (s *Store) Export(ctx context.Context, id, file string, whole bool) error {
	if err := s.export(ctx, id, file, whole); err != nil {
		return fmt.Errorf("export workspace %s: %w", id, err)
	}
	return nil
}

func (s *Store) export(ctx context.Context, id, file string, whole bool) error {
	if !idShape.MatchString(id) {
		return ErrUnknown
	}
	unlock, err := s.lock(ctx, "work-"+id)
	if err != nil {
		return err
	}
	defer unlock()
	m, err := s.readMeta(id)
	if err != nil {
		return err
	}
	snaps, err := s.snapshots(ctx, id)
	if err != nil {
		return err
	}
	if len(snaps) == 0 {
		return ErrNoSnapshot
	}
	whole = whole || m.Mirror == ""
	bundle := filepath.Join(s.hostDir(id), "export.bundle")
	defer os.Remove(bundle)
	args := []string{"bundle", "create", "--quiet", bundle, "refs/base"}
	for _, snap := range snaps {
		args = append(args, snap.Ref)
	}
	if !whole {
		args = append(args, "^"+m.Base)
	}
	if _, err := s.git(ctx, s.hostGit(id), args...); err != nil {
		return err
	}
	m.Mirror = ""
	list, err := json.MarshalIndent(exported{Version: exportVersion, Whole: whole, Meta: m, Snapshots: snaps}, "", "  ")
	if err != nil {
		return err
	}
	return writeExport(file, list, bundle)
}

// writeExport never writes over a file, and leaves none that is not whole.
func writeExport(file string, list []byte, bundle string) (err error) {
	in, err := os.Open(bundle)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file)
		}
	}()
	now := time.Now().UTC().Truncate(time.Second)
	t := tar.NewWriter(out)
	err = errors.Join(
		t.WriteHeader(&tar.Header{Name: exportList, Mode: 0o600, Size: int64(len(list)), ModTime: now}), second(t.Write(list)),
		t.WriteHeader(&tar.Header{Name: exportBundle, Mode: 0o600, Size: info.Size(), ModTime: now}), second(io.Copy(t, in)),
		t.Close(), out.Sync(), out.Close(),
	)
	return err
}

func second[T any](_ T, err error) error { return err }

// Described reads what an export is of, without importing it: the repository's name and the workspace's id. ErrExport.
func Described(file string) (Info, error) {
	f, err := os.Open(file)
	if err != nil {
		return Info{}, fmt.Errorf("read export: %w", err)
	}
	defer f.Close()
	e, _, err := readList(f)
	if err != nil {
		return Info{}, fmt.Errorf("read export %s: %w", file, err)
	}
	return Info{ID: e.Meta.ID, Repo: e.Meta.Repo, Branch: e.Meta.Branch, Base: e.Meta.Base, Snapshots: len(e.Snapshots), Created: e.Meta.Created}, nil
}

func readList(in io.Reader) (exported, *tar.Reader, error) {
	var e exported
	t := tar.NewReader(in)
	h, err := t.Next()
	if err != nil || h.Name != exportList || h.Size > listLimit {
		return e, nil, ErrExport
	}
	if err := json.NewDecoder(io.LimitReader(t, listLimit)).Decode(&e); err != nil {
		return e, nil, fmt.Errorf("%w: %w", ErrExport, err)
	}
	if e.Version != exportVersion {
		return e, nil, fmt.Errorf("%w: version %d, read is %d", ErrExport, e.Version, exportVersion)
	}
	ok := idShape.MatchString(e.Meta.ID) && shaShape.MatchString(e.Meta.Base) && len(e.Snapshots) > 0 && len(e.Snapshots) <= 10*keptSnapshots
	for _, snap := range e.Snapshots {
		ok = ok && shaShape.MatchString(snap.SHA) && snap.Ref == fmt.Sprintf("refs/snapshots/%020d", snap.At.UnixNano())
	}
	if !ok {
		return e, nil, fmt.Errorf("%w: its list names no workspace", ErrExport)
	}
	return e, t, nil
}

// Import makes a workspace of an export. r gives the repository's address and credential here; its base commit is fetched, unless the
// export holds it. The folder is made when a task or Restore needs it. ErrExport, ErrExists, ErrNoBase.
func (s *Store) Import(ctx context.Context, file string, r Request) (Info, error) {
	f, err := os.Open(file)
	if err != nil {
		return Info{}, fmt.Errorf("import workspace: %w", err)
	}
	defer f.Close()
	e, t, err := readList(f)
	if err == nil {
		err = s.takeIn(ctx, e, t, r)
	}
	if err != nil {
		return Info{}, fmt.Errorf("import workspace %s: %w", e.Meta.ID, err)
	}
	return Info{ID: e.Meta.ID, Repo: e.Meta.Repo, Branch: e.Meta.Branch, Base: e.Meta.Base, Snapshots: len(e.Snapshots), Created: e.Meta.Created}, nil
}

func (s *Store) takeIn(ctx context.Context, e exported, t *tar.Reader, r Request) error {
	m := e.Meta
	m.Mirror = ""
	if err := s.checkNames(ctx, Request{Branch: m.Branch, Base: m.BaseRef, URL: r.URL}); err != nil {
		return fmt.Errorf("%w: %w", ErrExport, err)
	}
	unlock, err := s.lock(ctx, "work-"+m.ID)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.readMeta(m.ID); err == nil {
		return ErrExists
	} else if !errors.Is(err, ErrUnknown) {
		return err
	}
	if err := s.discard(m.ID); err != nil {
		return err
	}
	if !e.Whole {
		if m.Mirror, err = s.mirror(ctx, Request{Repo: m.Repo, URL: r.URL, SHA: m.Base, Credential: r.Credential}); err != nil {
			return err
		}
	}
	if err := s.unpackExport(ctx, m, e.Snapshots, t); err != nil {
		return errors.Join(err, s.discard(m.ID))
	}
	return s.writeMeta(m)
}

func (s *Store) unpackExport(ctx context.Context, m meta, snaps []Snapshot, t *tar.Reader) error {
	if err := os.MkdirAll(s.hostDir(m.ID), 0o700); err != nil {
		return err
	}
	bundle := filepath.Join(s.hostDir(m.ID), "import.bundle")
	defer os.Remove(bundle)
	h, err := t.Next()
	if err != nil || h.Name != exportBundle || h.Size > exportLimit {
		return fmt.Errorf("%w: it holds no bundle", ErrExport)
	}
	out, err := os.OpenFile(bundle, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(second(io.Copy(out, t)), out.Close()); err != nil {
		return fmt.Errorf("%w: %w", ErrExport, err)
	}
	dir := s.hostGit(m.ID)
	if err := s.initBare(ctx, dir, m); err != nil {
		return err
	}
	refs, err := s.unbundle(ctx, dir, bundle)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrExport, err)
	}
	if !s.has(ctx, dir, m.Base) {
		return fmt.Errorf("%w: commit %s", ErrNoBase, m.Base)
	}
	if _, err := s.git(ctx, dir, "update-ref", "refs/base", m.Base); err != nil {
		return err
	}
	w := s.workspace(m, Rules{})
	for _, snap := range snaps {
		if refs[snap.Ref] != snap.SHA || !s.has(ctx, dir, snap.SHA) {
			return fmt.Errorf("%w: the bundle does not hold the snapshot of %s", ErrExport, snap.At.Format(time.DateTime))
		}
		if err := w.checkSizes(ctx, snap.SHA); err != nil {
			return fmt.Errorf("%w: %w", ErrExport, err)
		}
		if _, err := s.git(ctx, dir, "update-ref", snap.Ref, snap.SHA); err != nil {
			return err
		}
		if err := s.noteBranch(m.ID, Snapshot{Ref: snap.Ref, Branch: s.branchName(ctx, snap.Branch)}); err != nil {
			return err
		}
	}
	return nil
}
