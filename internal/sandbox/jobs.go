package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"reasonix/internal/tool"
)

const (
	maxJobs  = 8         // running at once, per run
	jobSpool = 256 << 10 // bytes of output kept for a look, per command
	maxEnded = 64        // ended commands that can still be looked at
)

// Jobs are the background commands of one run, each in a box run of its own. It implements tool.Background.
type Jobs struct {
	shell shell
	mu    sync.Mutex
	list  map[string]*job
	order []string
	shut  bool
}

// NewJobs runs lines in box under the policy of the moment of their start. Its limit on wall time does not apply: they end with the run.
func NewJobs(box Box, policy func() Policy) *Jobs {
	return Interpreter{}.Jobs(box, policy)
}

type job struct {
	id, line string
	started  time.Time
	stop     context.CancelFunc
	done     chan struct{}
	out      spool

	mu  sync.Mutex // guards what follows until done is closed
	res Result
	err error
	dur time.Duration
}

// Start implements tool.Background.
func (j *Jobs) Start(id string, c tool.Command) error {
	p, command, err := j.shell.prepare(c)
	if err != nil {
		return err
	}
	p.Limits.Wall = -1
	ctx, stop := context.WithCancel(context.Background())
	one := &job{id: id, line: c.Line, started: time.Now(), stop: stop, done: make(chan struct{})}
	command.Output = func(b []byte) { one.out.write(b) }
	if err := j.add(one); err != nil {
		stop()
		return err
	}
	go func() {
		defer close(one.done)
		defer stop()
		r, err := j.shell.box.Run(ctx, p, command)
		one.out.write([]byte(stoppedNote(r.Stopped) + reachedNote(r.Reached)))
		one.mu.Lock()
		defer one.mu.Unlock()
		one.res, one.err, one.dur = r, err, time.Since(one.started)
		one.res.Output = nil // the spool has it
	}()
	return nil
}

func (j *Jobs) add(one *job) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	running := 0
	for _, x := range j.list {
		if x.running() {
			running++
		}
	}
	switch {
	case j.shut:
		return errors.New("the run has ended")
	case j.list[one.id] != nil:
		return fmt.Errorf("background command %s exists already", one.id)
	case running >= maxJobs:
		return fmt.Errorf("%w: %d run already; end one with kill_shell", tool.ErrTooMany, running)
	}
	j.list[one.id] = one
	j.order = append(j.order, one.id)
	for i := 0; len(j.order) > maxEnded && i < len(j.order); {
		if id := j.order[i]; !j.list[id].running() {
			delete(j.list, id)
			j.order = slices.Delete(j.order, i, i+1)
			continue
		}
		i++
	}
	return nil
}

func (x *job) running() bool {
	select {
	case <-x.done:
		return false
	default:
		return true
	}
}

func (j *Jobs) find(id string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if x := j.list[id]; x != nil {
		return x, nil
	}
	if len(j.order) == 0 {
		return nil, fmt.Errorf("%w: %s; none was started since the task continued", tool.ErrNoCommand, id)
	}
	return nil, fmt.Errorf("%w: %s; there are %v", tool.ErrNoCommand, id, j.order)
}

// Knows tells whether a command with that id was started here, whether or not it still runs.
func (j *Jobs) Knows(id string) bool {
	_, err := j.find(id)
	return err == nil
}

// Look implements tool.Background.
func (j *Jobs) Look(id string, max int) (tool.Glimpse, error) {
	x, err := j.find(id)
	if err != nil {
		return tool.Glimpse{}, err
	}
	g := x.glimpse() // before the output: what is reported as ended has nothing more to say
	var text []byte
	text, g.Omitted, g.More = x.out.read(max)
	g.Output = string(text)
	return g, nil
}

func (x *job) glimpse() tool.Glimpse {
	g := tool.Glimpse{ID: x.id, Line: x.line, Running: x.running(), Age: time.Since(x.started)}
	if g.Running {
		return g
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	g.Age, g.ExitCode, g.TimedOut = x.dur, x.res.ExitCode, x.res.TimedOut
	if x.err != nil && !errors.Is(x.err, context.Canceled) {
		g.Failure = x.err.Error()
	}
	if x.err != nil && g.ExitCode == 0 {
		g.ExitCode = killedCode
	}
	return g
}

const killedCode = 137 // as a shell says it of what SIGKILL ended

// Wait implements tool.Background.
func (j *Jobs) Wait(ctx context.Context, ids []string, d time.Duration) ([]tool.Glimpse, error) {
	list, err := j.pick(ids)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	ended := make(chan struct{}, len(list))
	for _, x := range list {
		go func() {
			select {
			case <-x.done:
				ended <- struct{}{}
			case <-ctx.Done():
			}
		}()
	}
	if len(list) > 0 {
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	out := make([]tool.Glimpse, len(list))
	for i, x := range list {
		out[i] = x.glimpse()
	}
	return out, nil
}

func (j *Jobs) pick(ids []string) ([]*job, error) {
	var list []*job
	if len(ids) == 0 {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, id := range j.order {
			if x := j.list[id]; x.running() {
				list = append(list, x)
			}
		}
		return list, nil
	}
	for _, id := range ids {
		x, err := j.find(id)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

// Kill implements tool.Background.
func (j *Jobs) Kill(id string) (tool.Glimpse, error) {
	x, err := j.find(id)
	if err != nil {
		return tool.Glimpse{}, err
	}
	x.stop()
	<-x.done // the box ends its whole tree within two seconds
	return x.glimpse(), nil
}

// Close ends all of them, refuses new ones, and returns the lines of those that were still running.
func (j *Jobs) Close() []string {
	j.mu.Lock()
	j.shut = true
	var running []*job
	for _, id := range j.order {
		if x := j.list[id]; x.running() {
			running = append(running, x)
		}
	}
	j.mu.Unlock()
	var lines []string
	for _, x := range running {
		x.stop()
		lines = append(lines, x.line)
	}
	for _, x := range running {
		<-x.done
	}
	return lines
}

// spool keeps the newest output until somebody looks.
type spool struct {
	mu    sync.Mutex
	buf   []byte
	start int64 // position of buf[0] in all that was written
	seen  int64
}

func (s *spool) write(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(s.buf, b...)
	if over := len(s.buf) - jobSpool; over > jobSpool || (over > 0 && len(b) >= jobSpool) {
		s.buf = append([]byte(nil), s.buf[over:]...)
		s.start += int64(over)
	}
}

func (s *spool) read(max int) (text []byte, omitted int64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.seen
	if lost := s.start - from; lost > 0 {
		omitted, from = lost, s.start
	}
	rest := s.buf[from-s.start:]
	n := min(max, len(rest))
	text = append(text, rest[:n]...)
	s.seen = from + int64(n)
	s.buf = append([]byte(nil), rest[n:]...)
	s.start = s.seen
	return text, omitted, len(s.buf) > 0
}
