package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// safety is given to every git the host runs: no hooks, no repository found by accident, no transport that runs programs.
var safety = []string{"-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=explicit", "-c", "protocol.ext.allow=never",
	"-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.attributesFile=/dev/null",
	"-c", "core.excludesFile=/dev/null", "-c", "submodule.recurse=false"}

// passedToGit are host variables that reaching a remote may need; none of them is a token of ours.
var passedToGit = []string{"PATH", "HOME", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY",
	"NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SystemRoot", "USERPROFILE"}

// gitCall is one run of git by the host. It never runs in a task's clone once the task has seen it.
type gitCall struct {
	dir   string // git dir
	args  []string
	env   []string
	stdin io.Reader
	out   io.Writer // takes the output instead; its error ends git
	limit int64     // bytes of output, 0 means 16 MiB
	cred  Credential
	url   string // that cred is for
}

var errOutputLimit = errors.New("git printed more than the limit")

func (s *Store) git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := s.run(ctx, gitCall{dir: dir, args: args})
	return strings.TrimSpace(string(out)), err
}

// run returns standard output; errOutputLimit comes with the part that fit.
func (s *Store) run(ctx context.Context, c gitCall) ([]byte, error) {
	args := append([]string{}, safety...)
	if c.dir != "" {
		args = append(args, "--git-dir="+c.dir)
	}
	cmd := exec.CommandContext(ctx, s.opt.Git, append(args, c.args...)...)
	cmd.Dir = s.root // never a folder of a task
	cmd.WaitDelay = 2 * time.Second
	cmd.Cancel = func() error { // a git that is asked takes its lock files along
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	cmd.Env = append(s.gitEnv(), c.env...)
	secret, err := c.credentials(ctx, cmd)
	if err != nil {
		return nil, err
	}
	limit := c.limit
	if limit == 0 {
		limit = 16 << 20
	}
	out := &bounded{left: limit, ends: true}
	var stderr bounded
	stderr.left = 16 << 10
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, out, &stderr
	if c.out != nil {
		cmd.Stdout = c.out
	}
	if err := cmd.Run(); err != nil && !out.over {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		text := strings.TrimSpace(stderr.buf.String())
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
		return out.buf.Bytes(), fmt.Errorf("git %s: %w: %s", c.args[0], err, withoutUserinfo(text))
	}
	if out.over {
		return out.buf.Bytes(), errOutputLimit
	}
	return out.buf.Bytes(), nil
}

func (s *Store) gitEnv() []string {
	env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + s.gitConfig(), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=",
		"SSH_ASKPASS=", "GIT_SSH_COMMAND=ssh -oBatchMode=yes", "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_AUTHOR_NAME=Reasonix", "GIT_AUTHOR_EMAIL=reasonix@reasonix.invalid",
		"GIT_COMMITTER_NAME=Reasonix", "GIT_COMMITTER_EMAIL=reasonix@reasonix.invalid"}
	for _, name := range passedToGit {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// helper answers git from the environment of this one process: the secret is in no configuration, argument or file.
const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$REASONIX_GIT_USER" "$REASONIX_GIT_SECRET"; }; f`

// credentials offers user and secret to the host of c.url only, so that a redirect elsewhere does not carry them.
func (c gitCall) credentials(ctx context.Context, cmd *exec.Cmd) (secret string, err error) {
	if c.cred == nil {
		return "", nil
	}
	u, err := url.Parse(c.url)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", nil // a path or SSH: nothing to offer
	}
	user, secret, err := c.cred(ctx)
	if err != nil {
		return "", fmt.Errorf("credential for %s: %w", u.Host, err)
	}
	config := [][2]string{{"credential.helper", ""}, {"credential." + u.Scheme + "://" + u.Host + ".helper", helper}, {"http.followRedirects", "initial"}}
	cmd.Env = append(cmd.Env, "REASONIX_GIT_USER="+user, "REASONIX_GIT_SECRET="+secret, "GIT_CONFIG_COUNT="+strconv.Itoa(len(config)))
	for i, kv := range config {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, kv[1]))
	}
	return secret, nil
}

// bounded keeps the first bytes; the writer goes on, or ends when ends is set.
type bounded struct {
	buf  bytes.Buffer
	left int64
	over bool
	ends bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := len(p)
	if int64(n) > b.left {
		b.over = true
		p = p[:b.left]
	}
	b.left -= int64(len(p))
	b.buf.Write(p)
	if b.over && b.ends {
		return len(p), errOutputLimit
	}
	return n, nil
}

// withoutUserinfo hides a password that somebody wrote into a URL.
func withoutUserinfo(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		scheme, rest, ok := strings.Cut(w, "://")
		at := strings.LastIndex(rest, "@")
		if ok && at >= 0 && !strings.Contains(rest[:at], "/") {
			words[i] = scheme + "://" + rest[at+1:]
		}
	}
	return strings.Join(words, " ")
}
