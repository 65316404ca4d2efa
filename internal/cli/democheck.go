package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"reasonix/internal/config"
	"reasonix/internal/task"
)

// demoTask is what the check reads of a task, from the console's JSON.
type demoTask struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Result string `json:"result"`
	Branch string `json:"branch"`
	Diff   string `json:"diff"`
	Asks   []struct {
		ID     string `json:"id"`
		State  string `json:"state"`
		Title  string `json:"title"`
		Digest string `json:"digest"`
		Blocks []struct {
			Text string `json:"text"`
		} `json:"blocks"`
	} `json:"asks"`
}

// demoClient speaks the console's HTTP interface, as a second front end would.
type demoClient struct {
	base, token string
	keys        int
}

// demoCheck drives the demo's path and looks at the repository itself: its test fails before, passes on the task's branch after an
// approval, and nothing changes after a denial.
func (a *app) demoCheck(ctx context.Context, dir string, cfg config.Config, env config.Env) error {
	repo := filepath.Join(dir, "split")
	say := func(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }
	if out, err := goTest(ctx, repo); err == nil {
		return fmt.Errorf("%w: the repository's test passes before anything was done:\n%s", errCheck, out)
	}
	say("before: the repository's test fails, as it should")
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	h, err := a.assemble(ctx, cfg, env, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer h.close()
	serving, end := context.WithCancel(ctx)
	served := make(chan struct{})
	quiet := *a
	quiet.out = io.Discard
	ctx, fail := context.WithCancelCause(ctx)
	go func() {
		defer close(served)
		fail(quiet.serve(serving, h)) // a host that cannot serve ends the check
	}()
	defer func() { end(); <-served }()
	c, err := signIn(ctx, h, "visitor")
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("%w: sign in: %w", errCheck, err)
	}
	if err := a.checkDenied(ctx, c, repo, say); err != nil {
		return err
	}
	return a.checkApproved(ctx, c, repo, filepath.Join(dir, "result"), say)
}

func (a *app) checkDenied(ctx context.Context, c *demoClient, repo string, say func(string, ...any)) error {
	before, err := git(ctx, repo, "for-each-ref")
	if err != nil {
		return err
	}
	t, err := c.walk(ctx, "deny", say)
	if err != nil {
		return err
	}
	after, err := git(ctx, repo, "for-each-ref")
	if err != nil {
		return err
	}
	if t.Diff != "" || before != after {
		return fmt.Errorf("%w: Deny was pressed and the tree changed:\n%s\n%s", errCheck, t.Diff, after)
	}
	say("denied: nothing changed, no branch was pushed")
	return nil
}

func (a *app) checkApproved(ctx context.Context, c *demoClient, repo, result string, say func(string, ...any)) error {
	t, err := c.walk(ctx, "allow", say)
	if err != nil {
		return err
	}
	if t.State != "completed" {
		return fmt.Errorf("%w: the task is %s: %s", errCheck, t.State, t.Result)
	}
	if out, err := git(ctx, repo, "clone", "-q", "--branch", t.Branch, repo, result); err != nil {
		return fmt.Errorf("%w: the task's branch %s cannot be cloned: %s", errCheck, t.Branch, out)
	}
	if out, err := goTest(ctx, result); err != nil {
		return fmt.Errorf("%w: the test still fails on the task's branch:\n%s", errCheck, out)
	}
	say("after: the test passes on %s\n\n%s", t.Branch, strings.TrimSpace(t.Diff))
	if out, err := goTest(ctx, repo); err == nil {
		return fmt.Errorf("%w: the checked-out tree of the repository changed under its owner:\n%s", errCheck, out)
	}
	say("\ndemo check: everything held")
	return nil
}

// goTest runs the repository's own test on the host, as its owner would.
func goTest(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// signIn exchanges a single-use login link for a token of the interface.
func signIn(ctx context.Context, h *house, person string) (*demoClient, error) {
	link, err := h.loginLink(ctx, person)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	c := &demoClient{base: u.Scheme + "://" + u.Host}
	var got struct{ Token string }
	if err := c.call(ctx, http.MethodPost, "/api/session", map[string]string{"code": u.Query().Get("code")}, &got); err != nil {
		return nil, err
	}
	c.token = got.Token
	return c, nil
}

// walk makes a request, presses the choice on every ask that comes, and waits for the end.
func (c *demoClient) walk(ctx context.Context, choice string, say func(string, ...any)) (demoTask, error) {
	var opened struct {
		TaskID string `json:"task_id"`
		Text   string `json:"text"`
	}
	if err := c.call(ctx, http.MethodPost, "/api/events", map[string]string{"type": "request", "key": c.key(), "text": demoRequest}, &opened); err != nil {
		return demoTask{}, fmt.Errorf("%w: request: %w", errCheck, err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	pressed := map[string]bool{}
	for {
		var t demoTask
		if err := c.call(ctx, http.MethodGet, "/api/tasks/"+opened.TaskID, nil, &t); err != nil {
			return t, fmt.Errorf("%w: look at the task: %w", errCheck, err)
		}
		if task.State(t.State).Ended() {
			if len(pressed) == 0 {
				return t, fmt.Errorf("%w: the task ended as %s and nobody was asked: %s", errCheck, t.State, t.Result)
			}
			return t, nil
		}
		for _, ask := range t.Asks {
			if ask.State != "open" || pressed[ask.ID] {
				continue
			}
			if len(ask.Blocks) == 0 || ask.Digest == "" {
				return t, fmt.Errorf("%w: the ask %q shows no action or no digest", errCheck, ask.Title)
			}
			say("asked: %s\n    %s\n  → %s", ask.Title, strings.ReplaceAll(ask.Blocks[0].Text, "\n", "\n    "), choice)
			pressed[ask.ID] = true
			if err := c.call(ctx, http.MethodPost, "/api/events", map[string]string{"type": "press", "key": c.key(), "ask_id": ask.ID, "task_id": t.ID, "digest": ask.Digest, "choice": choice}, nil); err != nil {
				return t, fmt.Errorf("%w: press: %w", errCheck, err)
			}
		}
		select {
		case <-ctx.Done():
			return t, fmt.Errorf("%w: the task is still %s after five minutes", errCheck, t.State)
		case <-tick.C:
		}
	}
}

func (c *demoClient) key() string {
	c.keys++
	return fmt.Sprintf("check-%d-%d", os.Getpid(), c.keys)
}

func (c *demoClient) call(ctx context.Context, method, path string, body, into any) error {
	var r io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s answered %d: %s", method, path, res.StatusCode, data)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}
