package cli_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reasonix/internal/testkit/modeld"
	"reasonix/internal/testkit/slackd"
)

// sample collects durations.
type sample []time.Duration

// report gives the sample as metrics in milliseconds: the middle, the 95th percentile and the worst.
func (s sample) report(b *testing.B, name string) {
	b.Helper()
	if len(s) == 0 {
		b.Fatalf("%s: nothing was measured", name)
	}
	slices.Sort(s)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(s[len(s)/2]), "ms-"+name+"-p50")
	b.ReportMetric(ms(s[len(s)*95/100]), "ms-"+name+"-p95")
	b.ReportMetric(ms(s[len(s)-1]), "ms-"+name+"-max")
	b.ReportMetric(0, "ns/op")
}

const burst = 500

// BenchmarkAcknowledge sends a burst of requests to the Slack door of a whole host, each of them a new task in the state, and the same bodies
// to a handler that only verifies the signature.
func BenchmarkAcknowledge(b *testing.B) {
	hold := make(chan struct{})
	w := newWorld(b, func(modeld.Request) modeld.Turn { return modeld.Turn{Text: "ok"} }, func(w *world) {
		for range 16 { // the tasks that run at once wait for their model
			w.model.Fail(modeld.Fault{Hold: hold})
		}
	})
	defer close(hold)
	bare := httptest.NewServer(verifier(w.slack.SigningSecret))
	defer bare.Close()
	var full, only sample
	for b.Loop() {
		deliveries := make([]slackd.Delivery, burst)
		for i := range deliveries {
			deliveries[i] = w.slack.Command(fmt.Sprint("C", i), "UDEV", "/reasonix", "fix the tabs")
		}
		only = append(only, w.burst(b, bare.URL, deliveries)...)
		full = append(full, w.burst(b, w.hook("team"), deliveries)...)
	}
	full.report(b, "door")
	only.report(b, "bare")
}

// verifier does the least that a door may do.
func verifier(secret string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "v0:%s:%s", r.Header.Get("X-Slack-Request-Timestamp"), body)
		if err != nil || "v0="+hex.EncodeToString(mac.Sum(nil)) != r.Header.Get("X-Slack-Signature") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
}

// burst sends everything, 32 at a time, and measures each from the request to its answer.
func (w *world) burst(b *testing.B, url string, deliveries []slackd.Delivery) sample {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	took := make(sample, len(deliveries))
	next := make(chan int)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := range next {
				req, err := w.slack.Request(url, deliveries[i])
				if err != nil {
					b.Error(err)
					return
				}
				began := time.Now()
				res, err := client.Do(req)
				if err != nil || res.StatusCode != http.StatusOK {
					b.Errorf("delivery %d: %v %v", i, res, err)
					continue
				}
				took[i] = time.Since(began)
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
	for i := range deliveries {
		next <- i
	}
	close(next)
	wg.Wait()
	return took
}

// BenchmarkEventToModel measures from a comment to the model's first request for its task, on a host that has nothing else to do: the task in
// the state, its clone, its box and its prompt lie between.
func BenchmarkEventToModel(b *testing.B) {
	asked := make(chan time.Time, 1)
	w := newWorld(b, func(r modeld.Request) modeld.Turn {
		asked <- r.At
		return modeld.Turn{Text: "ok"}
	})
	var all sample
	for n := 100; b.Loop(); n++ {
		d := w.github.Comment("acme/api", n, "dev", "/reasonix fix the tabs")
		began := time.Now()
		if a := w.github.Deliver(b, w.hook("hub"), d); a.Status/100 != 2 {
			b.Fatalf("%+v", a)
		}
		all = append(all, (<-asked).Sub(began))
		w.eventually("the task is over", func() bool { return strings.Contains(w.onIssue(n), "Completed") })
	}
	all.report(b, "event")
}

// product builds the real binary.
func product(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "reasonix")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "../../cmd/reasonix")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// bench is a folder and a home for headless runs of the binary.
type bench struct {
	b            *testing.B
	binary, home string
	dir          string
}

func newBench(b *testing.B, model string) *bench {
	b.Helper()
	need(b, "bwrap")
	t := &bench{b: b, binary: product(b), home: b.TempDir(), dir: b.TempDir()}
	text := fmt.Sprintf("default_model = \"double\"\n[[providers]]\nname = \"double\"\nkind = \"openai\"\nbase_url = %q\nmodel = \"double\"\n", model)
	for path, data := range map[string]string{filepath.Join(t.home, "config.toml"): text, filepath.Join(t.dir, "page.txt"): strings.Repeat("a line of text\n", 100)} {
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return t
}

func (t *bench) run(args ...string) time.Duration {
	t.b.Helper()
	cmd := exec.Command(t.binary, args...)
	cmd.Dir, cmd.Env = t.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.home, "REASONIX_HOME=" + t.home}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.b.Fatalf("%v: %v\n%s", args, err, out.String())
	}
	return time.Since(began)
}

// BenchmarkStart: from the start of the process to its end for --version, beside /bin/true, and to the model's first request for a headless run.
func BenchmarkStart(b *testing.B) {
	var at time.Time
	var size int
	model, err := modeld.Start(func(r modeld.Request) modeld.Turn {
		at, size = r.At, len(r.Body)
		return modeld.Turn{Text: "ok"}
	})
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	t := newBench(b, model.URL)
	var version, first, nothing sample
	for b.Loop() {
		began := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		nothing = append(nothing, time.Since(began))
		version = append(version, t.run("--version"))
		began = time.Now()
		t.run("run", "-y", "say ok")
		first = append(first, at.Sub(began))
	}
	nothing.report(b, "true")
	version.report(b, "version")
	first.report(b, "first")
	b.ReportMetric(float64(size)/1024, "KB-first-request")
	if info, err := os.Stat(t.binary); err == nil {
		b.ReportMetric(float64(info.Size())/(1<<20), "MB-binary")
	}
}

// BenchmarkTurnGap measures, in a headless run of the real binary with the box on, from the model's answer to its next request: what the host
// adds to every turn.
func BenchmarkTurnGap(b *testing.B) {
	read := modeld.Call{Name: "read_file", Args: map[string]any{"path": "page.txt"}}
	kinds := []struct {
		name  string
		calls []modeld.Call
	}{
		{"shell", []modeld.Call{{Name: "bash", Args: map[string]any{"command": "true"}}}},
		{"read", []modeld.Call{read}},
		{"ten-reads", slices.Repeat([]modeld.Call{read}, 10)},
	}
	const turns = 20
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			var gaps sample
			var answered time.Time
			n := 0
			model, err := modeld.Start(func(r modeld.Request) modeld.Turn {
				defer func() { answered = time.Now() }()
				if n > 1 { // the first call warms things up
					gaps = append(gaps, r.At.Sub(answered))
				}
				if n++; n <= turns {
					return modeld.Turn{Calls: slices.Clone(k.calls)}
				}
				for _, text := range r.Results() {
					if strings.Contains(text, "error") || strings.Contains(text, "blocked") {
						b.Errorf("a call failed: %s", text)
					}
				}
				return modeld.Turn{Text: "ok"}
			})
			if err != nil {
				b.Fatal(err)
			}
			defer model.Close()
			t := newBench(b, model.URL)
			for b.Loop() {
				n = 0
				t.run("run", "-y", "go")
			}
			gaps.report(b, k.name)
		})
	}
}
