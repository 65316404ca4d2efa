package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// headLimit bounds the list of references in front of a bundle's objects.
const headLimit = 1 << 20

// readLimit is how long the host reads one bundle of a task, and how long it judges it: small files of deltas can stand for very much.
const readLimit = 10 * time.Minute

// streamLarge keeps index-pack from holding files as large as half a gigabyte in memory.
var streamLarge = []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.bigFileThreshold", "GIT_CONFIG_VALUE_0=32m"}

var errBundle = errors.New("not a git bundle that is read")

// unbundle takes the objects of a bundle into dir, with git's own checks of each, and returns its references; none of them is written.
// A plain fetch would not do: before git 2.46 it checks nothing of what comes from a bundle.
func (s *Store) unbundle(ctx context.Context, dir, file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	refs, err := bundleRefs(in)
	if err != nil {
		return nil, err
	}
	if _, err := s.run(ctx, gitCall{dir: dir, args: []string{"index-pack", "--stdin", "--fix-thin", "--strict"}, stdin: in, env: streamLarge}); err != nil {
		return nil, err
	}
	var tips strings.Builder
	for _, name := range sortedKeys(refs) {
		tips.WriteString(refs[name] + "\n")
	}
	// All that the references lead to is here, too.
	_, err = s.run(ctx, gitCall{dir: dir, args: []string{"rev-list", "--objects", "--quiet", "--stdin", "--not", "--all", "--alternate-refs"},
		stdin: strings.NewReader(tips.String())})
	return refs, err
}

// bundleRefs reads the head of a bundle, see gitformat-bundle(5), and leaves in at the objects.
func bundleRefs(in *bufio.Reader) (map[string]string, error) {
	refs := map[string]string{}
	left := headLimit
	for n := 0; ; n++ {
		text, err := in.ReadSlice('\n')
		if left -= len(text); err != nil || left < 0 {
			if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) || err == nil {
				err = errors.New("its head does not end")
			}
			return nil, fmt.Errorf("%w: %w", errBundle, err)
		}
		line := strings.TrimSuffix(string(text), "\n")
		sha, name, _ := strings.Cut(line, " ")
		switch {
		case n == 0:
			if line != "# v2 git bundle" && line != "# v3 git bundle" {
				return nil, errBundle
			}
		case line == "":
			return refs, nil
		case strings.HasPrefix(line, "@object-format="), strings.HasPrefix(line, "-"): // what it builds on is checked with the objects
		case shaShape.MatchString(sha) && strings.HasPrefix(name, "refs/"):
			refs[name] = sha
		default:
			return nil, fmt.Errorf("%w: line %d of its head", errBundle, n+1)
		}
	}
}
