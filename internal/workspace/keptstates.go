package workspace

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// keep stores a text under its hash, for differences that are shown later; false when this state has kept enough already. It is not
// synced to the disk: whoever reads it checks the hash.
func (k *walker) keep(hash string, text []byte) (bool, error) {
	file := filepath.Join(k.blobs, hash)
	if info, err := os.Stat(file); err == nil && info.Size() == int64(len(text)) {
		return true, nil
	}
	k.mu.Lock()
	k.kept += int64(len(text))
	full := k.kept > keptNew
	k.mu.Unlock()
	if full {
		return false, nil
	}
	f, err := os.CreateTemp(k.blobs, ".new-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	return true, os.Rename(f.Name(), file)
}

func (w *Workspace) blobsDir() string { return filepath.Join(w.store.hostDir(w.ID), "blobs") }

// keptBlob is a text that keep stored; false when it is gone or damaged.
func (w *Workspace) keptBlob(hash string) ([]byte, bool) {
	data, err := os.ReadFile(filepath.Join(w.blobsDir(), hash))
	return data, err == nil && digest(string(data)) == hash
}

func (w *Workspace) statesDir() string { return filepath.Join(w.store.hostDir(w.ID), "states") }

func (w *Workspace) manifestFile(hash string) string {
	return filepath.Join(w.statesDir(), hash+".json")
}

func (w *Workspace) keep(hash string, entries map[string]entry, head string) error {
	if err := os.MkdirAll(w.statesDir(), 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(narrow(head, entries, w.base))
	if err != nil {
		return err
	}
	if err := writeFile(w.manifestFile(hash), data); err != nil {
		return err
	}
	return w.trimStates()
}

// keptStates of one workspace; a question that is older than so many others is shown without its difference.
const keptStates = 200

// trimStates lets the older half go when there are too many, and then the texts that no state names any more.
func (w *Workspace) trimStates() error {
	list, err := os.ReadDir(w.statesDir())
	if err != nil || len(list) <= keptStates {
		return err
	}
	var all []fs.FileInfo
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	gone := max(0, len(all)-keptStates/2)
	for _, old := range all[:gone] {
		if err := os.Remove(filepath.Join(w.statesDir(), old.Name())); err != nil {
			return err
		}
	}
	return w.trimBlobs(all[gone:])
}

func (w *Workspace) trimBlobs(states []fs.FileInfo) error {
	named := map[string]bool{}
	for _, info := range states {
		data, err := os.ReadFile(filepath.Join(w.statesDir(), info.Name()))
		if err != nil {
			return err
		}
		var m manifest
		if err := json.Unmarshal(data, &m); err != nil {
			continue // its difference cannot be shown either
		}
		for _, e := range m.Entries {
			if e.Kept {
				named[e.Hash] = true
			}
		}
	}
	list, err := os.ReadDir(w.blobsDir())
	if err != nil {
		return err
	}
	for _, e := range list {
		if named[e.Name()] {
			continue
		}
		if err := os.Remove(filepath.Join(w.blobsDir(), e.Name())); err != nil {
			return err
		}
	}
	return nil
}
