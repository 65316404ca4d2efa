package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const openNonBlocking = 0

func links(f *os.File, _ fs.FileInfo) uint64 {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return 2 // unknown: look the names up
	}
	return uint64(info.NumberOfLinks)
}

func keepOwner(*os.File, fs.FileInfo) {}

// renameBetween moves a name between folders by path: Windows has no rename over two open folders. The folders cannot be swapped
// meanwhile, because an open handle keeps a folder from being renamed.
func renameBetween(from *os.Root, a string, to *os.Root, b string) error {
	return pathless(os.Rename(filepath.Join(from.Name(), a), filepath.Join(to.Name(), b)))
}
