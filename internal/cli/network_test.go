package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"reasonix/internal/testkit/modeld"
)

func TestInvariant13_ATaskWithNetworkCannotReachTheConsoleOfItsHost(t *testing.T) {
	need(t, "curl")
	var targets []string
	brain := func(r modeld.Request) modeld.Turn {
		if results := r.Results(); len(results) > 0 {
			return modeld.Turn{Text: "Done: " + strings.Join(results, " ")}
		}
		line := ""
		for _, at := range targets {
			for _, how := range []string{"--noproxy '' -x $HTTP_PROXY", "--noproxy '' -p -x $HTTP_PROXY", "--noproxy '*'"} {
				line += "curl -s -o /dev/null -m 5 " + how + " -w '%{http_code}:' http://" + at + "/ ; "
			}
		}
		return modeld.Turn{Text: "I look around.", Calls: []modeld.Call{{Name: "bash", Args: map[string]any{"command": line + "echo end"}}}}
	}
	w := newWorld(t, brain, func(w *world) {
		w.publish, w.console = "network = true", freeAddr(t)
	})
	for _, addr := range []string{w.console, w.addr} {
		port := addr[strings.LastIndex(addr, ":"):]
		targets = append(targets, "127.0.0.1"+port, "localhost"+port, "0.0.0.0"+port, "127.1"+port, "[::1]"+port, "[::ffff:127.0.0.1]"+port)
	}
	w.comment("dev", "/reasonix fix look for the console")
	w.eventually("the task is done", func() bool { return w.said("Done:") == 1 })
	for _, c := range w.github.BotComments() {
		_, said, ok := strings.Cut(c.Body, "Done: ")
		if !ok {
			continue
		}
		codes, _, _ := strings.Cut(said, "end")
		if n := strings.Count(codes, ":"); n < 3*len(targets) {
			t.Errorf("%d of %d attempts: %s", n, 3*len(targets), said)
		}
		for _, code := range strings.Split(codes, ":") {
			if code = strings.TrimSpace(code); code != "" && code != "000" && code != "403" {
				t.Errorf("an attempt was answered with %s: %s", code, said)
			}
		}
		if !strings.Contains(said, "refused") {
			t.Errorf("the transcript does not say what was refused: %s", said)
		}
	}
	if !strings.Contains(w.log.String(), "a box was refused a target") {
		t.Error("the host logged nothing")
	}
	res, err := http.Get("http://" + w.console + "/")
	if err != nil {
		t.Fatalf("control: the console cannot be reached from the host: %v", err)
	}
	res.Body.Close()
}
