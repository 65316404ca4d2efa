package cli_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "folder for pictures of the demo")

// demo runs `reasonix demo` as a visitor would and returns the link that it prints.
func demo(t *testing.T, args ...string) string {
	t.Helper()
	need(t, "bwrap")
	out := &lockedBuffer{}
	cmd := exec.Command(os.Args[0], append([]string{"demo", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = []string{asChild + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "GOCACHE=" + goEnv(t, "GOCACHE"), "GOFLAGS=-mod=mod"}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demo ended with %v:\n%s", err, out)
		}
	})
	link := regexp.MustCompile(`http://\S+/login\?code=\S+`)
	limit := time.After(60 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if m := link.FindString(out.String()); m != "" {
			return m
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("no link was printed:\n%s", out)
		}
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// visitor is a person before the page.
type visitor struct {
	t   *testing.T
	ctx context.Context
}

func browse(t *testing.T) visitor {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is missing: apt-get install -y chromium")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("headless", "new"), chromedp.Flag("disable-component-update", true), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(end)
	return visitor{t, ctx}
}

func (v visitor) do(steps ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	for _, step := range steps {
		err := chromedp.Do(v.ctx, step)
		for range 20 {
			if err == nil || !strings.Contains(err.Error(), "Could not find node") {
				break
			}
			err = chromedp.Do(v.ctx, step) // the page put a fresh panel there between looking and touching
		}
		if err != nil {
			v.t.Fatalf("%v\n%s", err, v.page())
		}
	}
}

func (v visitor) page() string {
	s, _ := chromedp.Run(v.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	return s
}

// sees waits until the visible text of the selector holds the words.
func (v visitor) sees(selector, words string) {
	v.t.Helper()
	js := fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.checkVisibility() && (e.innerText + (e.value || '')).includes(%q)) && !document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling')", selector, words)
	limit := time.After(120 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := chromedp.Run(v.ctx, chromedp.Evaluate[bool](js)); err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			v.t.Fatalf("the visitor does not see %q in %s:\n%s", words, selector, v.page())
		}
	}
}

// picture keeps what the page looks like, where somebody asked for it.
func (v visitor) picture(name string) {
	v.t.Helper()
	if *shots == "" {
		return
	}
	png, err := chromedp.Run(v.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644)
	}
	if err != nil {
		v.t.Error(err)
	}
}

// TestAVisitorOfTheDemoSeesATestTurnGreen is `make demo` in a real browser, from the printed link to the receipt.
func TestAVisitorOfTheDemoSeesATestTurnGreen(t *testing.T) {
	v := browse(t)
	v.do(chromedp.Navigate(demo(t)))
	v.sees("#text", "The test of this repository fails")
	v.picture("1-home")
	v.sees("body", "written scenario") // the page says that the model is scripted
	v.do(chromedp.Click("#requestform button"))
	v.sees("#feed", "go test ./...")
	v.sees("article.ask.open", "sed -i 's|parts")
	v.sees("article.ask.open", "&& go test ./...")
	v.picture("2-asked")
	v.do(chromedp.Click(`article.ask.open button[value="allow"]`))
	v.sees("article.ask.settled", "visitor")
	v.sees("#result", "The rounding lost the remainder")
	v.sees(".diff .add", "parts[i]++")
	v.sees(".receipt", "go test ./...")
	v.picture("3-done")
}

func TestTheDemosLinkWorksOnce(t *testing.T) {
	link := demo(t)
	first, second := browse(t), browse(t)
	first.do(chromedp.Navigate(link))
	first.sees("#text", "The test")
	second.do(chromedp.Navigate(link))
	second.sees("[role=alert]", "link")
	if strings.Contains(second.page(), "What should be done?") {
		t.Error("the link signed a second browser in")
	}
}

// TestTheDemoCheckNoticesAMissingEdit: with the edit taken out of the scenario the repository's test stays red, and the check says so.
func TestTheDemoCheckNoticesAMissingEdit(t *testing.T) {
	need(t, "bwrap")
	text, err := os.ReadFile(filepath.Join("demo", "scenario.toml"))
	if err != nil {
		t.Fatal(err)
	}
	edit := regexp.MustCompile(`sed -i '.*' split\.go &&`)
	if !edit.Match(text) {
		t.Fatal("the scenario has no edit that could be taken out")
	}
	scenario := filepath.Join(t.TempDir(), "scenario.toml")
	if err := os.WriteFile(scenario, edit.ReplaceAll(text, []byte("true && true &&")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "demo", "--check", "--scenario", scenario)
	cmd.Env = append(os.Environ(), asChild+"=1", "HOME="+t.TempDir(), "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "demo check failed") {
		t.Fatalf("exit code %d:\n%s", cmd.ProcessState.ExitCode(), out)
	}
}
