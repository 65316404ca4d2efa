package workspace

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strconv"
)

// records are files of NUL-separated fields behind their own checksum. They are caches: what cannot be read is made again, so they are not
// synced to the disk.

func writeRecords(file string, fields []string) error {
	var b bytes.Buffer
	for _, f := range fields {
		b.WriteString(f)
		b.WriteByte(0)
	}
	sum := sha256.Sum256(b.Bytes())
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	_, err = tmp.Write(append(sum[:], b.Bytes()...))
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// readRecords gives the fields in groups of n; nil when there are none that can be trusted.
func readRecords(file string, n int) [][]string {
	data, err := os.ReadFile(file)
	if err != nil || len(data) < sha256.Size {
		return nil
	}
	sum := sha256.Sum256(data[sha256.Size:])
	if !bytes.Equal(sum[:], data[:sha256.Size]) {
		return nil
	}
	fields := lines(data[sha256.Size:])
	if len(fields)%n != 0 {
		return nil
	}
	out := make([][]string, 0, len(fields)/n)
	for ; len(fields) > 0; fields = fields[n:] {
		out = append(out, fields[:n:n])
	}
	return out
}

// The index of a workspace: hashes with the stamps of the files that they were read from. A stamp holds device, inode, mode, size and
// change time, which a task cannot set; the file lies on the host's side.

func (s *Store) indexFile(id string) string { return filepath.Join(s.hostDir(id), "index") }

func (s *Store) readIndex(id string) map[string]cached {
	out := map[string]cached{}
	for _, f := range readRecords(s.indexFile(id), 6) {
		size, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			return map[string]cached{}
		}
		out[f[0]] = cached{entry: entry{Mode: f[1], Hash: f[2], Size: size, Base: f[4] == "base", Kept: f[4] == "kept"}, stamp: f[5]}
	}
	return out
}

func (s *Store) writeIndex(id string, index map[string]cached) error {
	fields := make([]string, 0, 6*len(index))
	for path, c := range index {
		of := ""
		switch {
		case c.Base:
			of = "base"
		case c.Kept:
			of = "kept"
		}
		fields = append(fields, path, c.Mode, c.Hash, strconv.FormatInt(c.Size, 10), of, c.stamp)
	}
	return writeRecords(s.indexFile(id), fields)
}
