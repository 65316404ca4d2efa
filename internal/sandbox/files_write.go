package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"reasonix/internal/tool"
)

// Write replaces or creates a file at once: a temporary file in the same open folder, then a rename. The file keeps its mode
// and owner; a hard link elsewhere keeps the old content.
func (f *Files) Write(ctx context.Context, path string, data []byte, want string) error {
	if err := f.put(ctx, path, data, want); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func (f *Files) put(ctx context.Context, path string, data []byte, want string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	spot, err := f.locate(ctx, path, forWriting)
	if err != nil {
		return err
	}
	if spot.name == "." {
		return fmt.Errorf("%w: it is a folder", tool.ErrSpecial)
	}
	mayCreate := want == "" || want == tool.VersionAbsent
	dir, err := openFolder(spot.root, spot.parents, mayCreate)
	if err != nil {
		return err
	}
	defer dir.Close()
	old, err := f.replaceable(dir, spot.name, want)
	if err != nil {
		return err
	}
	return replace(dir, spot.name, data, old)
}

// replaceable checks what is there now and returns its description, nil when there is nothing.
func (f *Files) replaceable(dir *os.Root, name, want string) (fs.FileInfo, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if want == "" || want == tool.VersionAbsent {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: it is gone", tool.ErrChanged)
	}
	if err != nil {
		return nil, pathless(err)
	}
	if err := mustBeRegular(info); err != nil {
		return nil, err
	}
	if want == tool.VersionAbsent {
		return nil, fmt.Errorf("%w: it exists now", tool.ErrChanged)
	}
	file, info, err := openRegular(dir, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if links(file, info) > 1 {
		guarded := append(f.absolute([]string{".git"}), f.protected...)
		if other, same := linkedInto(info, append(guarded, f.forbid...)); same {
			return nil, fmt.Errorf("%w: it is another name of %s", tool.ErrProtected, other)
		}
	}
	if want == "" {
		return info, nil
	}
	now, err := io.ReadAll(io.LimitReader(file, maxReadDefault+1))
	if err != nil {
		return nil, err
	}
	if version(now) != want {
		return nil, tool.ErrChanged
	}
	return info, nil
}

func replace(dir *os.Root, name string, data []byte, old fs.FileInfo) (err error) {
	mode := fs.FileMode(0o666) // the process's umask narrows it
	if old != nil {
		mode = old.Mode().Perm()
	}
	temp := ".reasonix-" + randomHex() + ".tmp"
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return pathless(err)
	}
	defer func() {
		if err != nil {
			_ = dir.Remove(temp)
		}
	}()
	if old == nil {
		giveToOwnerOf(dir, file)
	}
	if err := fill(file, data, old); err != nil {
		return err
	}
	return pathless(dir.Rename(temp, name))
}

// giveToOwnerOf makes what a host running as root created belong to the folder's owner: the box works as that user.
func giveToOwnerOf(dir *os.Root, file *os.File) {
	if info, err := dir.Lstat("."); err == nil {
		keepOwner(file, info)
	}
}

func fill(file *os.File, data []byte, old fs.FileInfo) error {
	_, err := file.Write(data)
	if err == nil && old != nil {
		keepOwner(file, old)
		err = file.Chmod(old.Mode().Perm()) // after chown, and against the umask
	}
	if err == nil {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return pathless(err)
}

func randomHex() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Move renames a file or folder; the destination must not exist, its parent folders are made.
func (f *Files) Move(ctx context.Context, from, to string) error {
	if err := f.rename(ctx, from, to); err != nil {
		return fmt.Errorf("move %s to %s: %w", from, to, err)
	}
	return nil
}

func (f *Files) rename(ctx context.Context, from, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	src, err := f.locate(ctx, from, forWriting)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	dst, err := f.locate(ctx, to, forWriting)
	if err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	if src.name == "." || dst.name == "." {
		return errors.New("a root folder itself cannot be moved")
	}
	if insidePath(dst.path, src.path) {
		return errors.New("the destination lies in the source")
	}
	if held, ok := f.holds(src.path); ok {
		return fmt.Errorf("source: %w: it contains %s", tool.ErrProtected, held)
	}
	a, err := openFolder(src.root, src.parents, false)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	defer a.Close()
	info, err := movable(a, src.name)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	b, err := openFolder(dst.root, dst.parents, true)
	if err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	defer b.Close()
	if _, err := b.Lstat(dst.name); !errors.Is(err, fs.ErrNotExist) {
		return errors.New("the destination exists already")
	}
	err = renameBetween(a, src.name, b, dst.name)
	if errors.Is(err, syscall.EXDEV) && info.Mode().IsRegular() {
		return f.carry(a, src.name, b, dst.name)
	}
	return err
}

// holds tells which protected or forbidden path lies below path: it would move along.
func (f *Files) holds(path string) (string, bool) {
	for _, p := range append(f.forbid[:len(f.forbid):len(f.forbid)], f.protected...) {
		if insidePath(resolveLinks(p), path) {
			if _, err := os.Lstat(p); err == nil {
				return p, true
			}
		}
	}
	return "", false
}

func movable(dir *os.Root, name string) (fs.FileInfo, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, pathless(err)
	}
	if info.IsDir() {
		return info, nil
	}
	return info, mustBeRegular(info)
}

// carry copies a file to a root on another file system and then removes the source.
func (f *Files) carry(a *os.Root, from string, b *os.Root, to string) error {
	data, err := f.readIn(a, from, 0)
	if err != nil {
		return err
	}
	info, err := a.Lstat(from)
	if err != nil {
		return pathless(err)
	}
	if err := replace(b, to, data, info); err != nil {
		return err
	}
	return pathless(a.Remove(from))
}
