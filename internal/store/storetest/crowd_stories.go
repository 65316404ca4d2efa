package storetest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

// crowd is how many tasks wait for people in the second invariant.
const crowd = 10_000

var crowdStories = map[string]func(*testing.T, *world){
	"TestInvariant02_TenThousandParkedTasksCostRowsNotMemory": func(t *testing.T, w *world) {
		if testing.Short() {
			t.Skip("10,000 tasks take a while")
		}
		for i := range 50 { // connections and caches are warm before anything is counted
			w.parked(t, fmt.Sprintf("warm-%d", i), 1)
		}
		goroutines := runtime.NumGoroutine()
		var wg sync.WaitGroup
		for part := range 4 {
			wg.Go(func() {
				for i := range crowd / 4 {
					w.parked(t, fmt.Sprintf("%d-%d", part, i), 1)
				}
			})
		}
		wg.Wait()
		if now := runtime.NumGoroutine(); now > goroutines+crowd/100 {
			t.Fatalf("%d goroutines before, %d with %d tasks parked", goroutines, now, crowd)
		}
		tk := w.opened(t, "one more")
		began := time.Now()
		_, err := w.Sweep(w.ctx, time.Now())
		must(t, err)
		_, err = w.DueAsks(w.ctx, time.Now())
		must(t, err)
		_, err = w.Claim(w.ctx, tk.ID, "host-a", long)
		must(t, err)
		if due, err := w.Due(w.ctx, slackOnly, 10, long); err != nil || len(due) != 10 {
			t.Fatalf("%d posts are due: %v", len(due), err)
		}
		if _, err := w.Tasks(w.ctx, chat.TaskFilter{State: string(task.Parked)}); err != nil {
			t.Fatal(err)
		}
		t.Logf("sweep, claim, outbox and list with %d parked tasks: %s", crowd, time.Since(began))
	},
	"TwoFirstStartsAtOnceBothSucceed": func(t *testing.T, w *world) {
		must(t, w.Close())
		opened := make(chan flow.Ledger, 4)
		for range 4 {
			go func() { opened <- w.open() }()
		}
		for i := range 4 {
			l := receive(t, opened, "an opening")
			_, err := l.Open(w.ctx, opening(fmt.Sprint("e", i), fmt.Sprint(i)))
			must(t, err)
			if i < 3 {
				defer l.Close()
			} else {
				w.Ledger = l
			}
		}
		if all, err := w.Tasks(w.ctx, chat.TaskFilter{}); err != nil || len(all) != 4 {
			t.Fatalf("%d tasks: %v", len(all), err)
		}
	},
}
