package console

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden pages anew")

var versions = regexp.MustCompile(`\?v=[0-9a-f]+`)

func TestPagesLookAsAgreed(t *testing.T) {
	c := &clock{zero}
	w := newWorld()
	w.now = func() time.Time { return c.at }
	w.health = wellHost()
	const fill = "task_1"
	park(t, w)
	var n atomic.Int64
	r := run(t, w, Config{Suggest: "Fix the failing test."}, c.set, func(d *Door) {
		d.nonce = func() string { return fmt.Sprintf("nonce-%d", n.Add(1)) }
	})
	b := r.as("lead")
	golden := func(name string, b *browser, path string) {
		n.Store(0)
		_, body := b.get(path)
		compare(t, name, versions.ReplaceAllString(body, "?v=0"))
	}
	golden("login.html", r.browser(), "/login")
	golden("home.html", b, "/")
	golden("health.html", b, "/health")
	golden("asks.html", b, "/asks")
	golden("task-parked.html", b, "/tasks/"+fill)
	golden("panel.html", b, "/tasks/"+fill+"/panel")
	n.Store(0)
	_, card := r.as("visitor").script().post(pressPath, pressForm("allow"))
	compare(t, "card-refused.html", card)
	conclude(w, fill)
	w.tasks[0].Trouble = []string{"A post to slack:#eng-bots was not delivered: channel_not_found"}
	golden("task-done.html", b, "/tasks/"+fill)
	if status, _ := b.get("/static/none.css"); status != http.StatusNotFound {
		t.Errorf("an unknown file: %d", status)
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./adapters/console -run TestPages -update)", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is another than agreed; look at it, then update with -update:\n%s", name, d)
	}
}
