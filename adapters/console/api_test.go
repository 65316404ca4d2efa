package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"reasonix/internal/chat"
)

func TestASecondFrontEndCanDoEverything(t *testing.T) {
	w := newWorld()
	w.opened = dress
	w.health = wellHost()
	r := run(t, w, Config{TokenEnv: "TOKEN", TokenPerson: "lead"})
	send := func(body string) (int, map[string]any) { return r.api("POST", "/api/events", accessToken, body) }

	status, got := send(`{"type":"request","key":"k1","text":"Fix it"}`)
	if status != 200 || got["outcome"] != "opened" || got["task_id"] != "task_1" {
		t.Fatalf("request: %d %v", status, got)
	}
	if _, again := send(`{"type":"request","key":"k1","text":"Fix it"}`); again["outcome"] != "duplicate" || again["task_id"] != "task_1" || len(w.tasks) != 1 {
		t.Errorf("the same key: %v", again)
	}
	begin(w, "task_1")
	_, list := r.api("GET", "/api/asks", accessToken, "")
	ask := list["asks"].([]any)[0].(map[string]any)
	if ask["id"] != askID || ask["digest"] == "" || len(ask["buttons"].([]any)) != 4 || ask["expires"] == nil {
		t.Errorf("ask: %v", ask)
	}
	status, got = send(fmt.Sprintf(`{"type":"press","key":"k2","ask_id":"%s","choice":"allow","digest":"other"}`, askID))
	if status != 400 || len(w.seen(chat.VerbPress)) != 0 {
		t.Errorf("a press on another digest: %d %v", status, got)
	}
	status, got = send(fmt.Sprintf(`{"type":"press","key":"k3","ask_id":"%s","choice":"allow","digest":"%s"}`, askID, ask["digest"]))
	if status != 200 || got["outcome"] != "answered" {
		t.Errorf("press: %d %v", status, got)
	}
	status, got = send(fmt.Sprintf(`{"type":"press","key":"k4","ask_id":"%s","choice":"deny"}`, askID))
	if status != 403 || !strings.Contains(got["text"].(string), "already answered: lead chose allow") {
		t.Errorf("second press: %d %v", status, got)
	}
	if _, got = send(`{"type":"reply","key":"k5","task_id":"task_1","text":"faster"}`); got["outcome"] != "steered" {
		t.Errorf("reply: %v", got)
	}
	if status, got = send(`{"type":"posture","key":"k6","task_id":"task_1","posture":"auto"}`); status != 403 {
		t.Errorf("posture: %d %v", status, got)
	}
	conclude(w, "task_1")
	_, task := r.api("GET", "/api/tasks/task_1", accessToken, "")
	if task["state"] != "completed" || task["ended"] != true || task["diff"] != fixedDiff || task["receipt"].(map[string]any)["asked_by"] != "visitor" {
		t.Errorf("task: %v", task)
	}
	_, tasks := r.api("GET", "/api/tasks?state=completed&limit=5", accessToken, "")
	if len(tasks["tasks"].([]any)) != 1 {
		t.Errorf("tasks: %v", tasks)
	}
	_, me := r.api("GET", "/api/me", accessToken, "")
	if me["person"] != "lead" || me["role"] != "approver" {
		t.Errorf("me: %v", me)
	}
	if _, h := r.api("GET", "/api/health", accessToken, ""); len(h["health"].([]any)) != 5 {
		t.Errorf("health: %v", h)
	}
}

func TestTheJSONInterfaceAnswersBadInputWithTheMend(t *testing.T) {
	w := parkedWorld(t)
	r := run(t, w, Config{TokenEnv: "TOKEN", TokenPerson: "lead"})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/api/events", `{`, 400, "cannot be read"},
		{"POST", "/api/events", `{"type":"stop","key":"a","taskid":"x"}`, 400, "unknown field"},
		{"POST", "/api/events", `{"type":"stop","key":"a"} {}`, 400, "more than one"},
		{"POST", "/api/events", `{"type":"stop","task_id":"task_1"}`, 400, "key is needed"},
		{"POST", "/api/events", `{"type":"dance","key":"a"}`, 400, "type is request, reply"},
		{"POST", "/api/events", `{"type":"request","key":"a","text":" "}`, 400, "Write something"},
		{"POST", "/api/events", `{"type":"request","key":"a","text":"x","room":"a/b"}`, 400, "room takes"},
		{"POST", "/api/events", `{"type":"reply","key":"a","task_id":"none","text":"x"}`, 404, "Nothing has this id"},
		{"POST", "/api/events", `{"type":"press","key":"a","ask_id":"` + askID + `"}`, 400, "choice is needed"},
		{"POST", "/api/events", `{"type":"posture","key":"a","task_id":"task_1","posture":"x"}`, 400, "posture is"},
		{"POST", "/api/events", `{"key":"` + strings.Repeat("x", maxBody) + `"}`, 413, "larger than"},
		{"GET", "/api/tasks?limit=0", "", 400, "limit is"},
		{"GET", "/api/tasks/none", "", 404, "Nothing has this id"},
		{"GET", "/api/tasks/task_1/feed?after=-1", "", 400, "numbers from 0"},
		{"GET", "/api/else", "", 404, "docs/console-api.md"},
	} {
		status, got := r.api(c.method, c.path, accessToken, c.body)
		e, _ := got["error"].(map[string]any)
		if status != c.status || !strings.Contains(fmt.Sprint(e["message"]), c.want) {
			t.Errorf("%s %s %.40s: %d %v, want %d %q", c.method, c.path, c.body, status, got, c.status, c.want)
		}
	}
	if len(w.events) != 0 {
		t.Errorf("events: %v", w.events)
	}
	w.broken = errDisk
	status, got := r.api("POST", "/api/events", accessToken, `{"type":"stop","key":"a","task_id":"task_1"}`)
	if status != 503 || !strings.Contains(fmt.Sprint(got), "Send it again with the same key") {
		t.Errorf("a full disk: %d %v", status, got)
	}
}

func TestTokensOfTheJSONInterface(t *testing.T) {
	w := parkedWorld(t)
	r := run(t, w, Config{TokenEnv: "TOKEN", TokenPerson: "lead"})
	link, _ := r.LoginLink("visitor")
	status, got := r.api("POST", "/api/session", "", `{"code":"`+codeOf(t, link)+`"}`)
	if status != 200 || got["person"] != "visitor" {
		t.Fatalf("session: %d %v", status, got)
	}
	token := got["token"].(string)
	if _, me := r.api("GET", "/api/me", token, ""); me["person"] != "visitor" {
		t.Errorf("me: %v", me)
	}
	if status, _ := r.api("POST", "/api/session", "", `{"code":"`+codeOf(t, link)+`"}`); status != 401 {
		t.Errorf("a used code: %d", status)
	}
	status, got = r.api("POST", "/api/login-link", token, "")
	if status != 200 {
		t.Fatalf("login link: %d %v", status, got)
	}
	b := r.browser()
	if _, body := b.post("/login", url.Values{"code": {codeOf(t, got["url"].(string))}}); !strings.Contains(body, "Signed in as visitor") {
		t.Error("the link signs in somebody else")
	}
	// A browser's cookie opens no JSON address: another page could not use it either.
	if status, _ := b.get("/api/me"); status != 401 {
		t.Errorf("a cookie alone: %d", status)
	}
	if status, _ := r.api("GET", "/api/me", accessToken+"x", ""); status != 401 {
		t.Errorf("a wrong token: %d", status)
	}
}

func TestTheDoorChecksItself(t *testing.T) {
	r := run(t, newWorld(), Config{TokenEnv: "TOKEN", TokenPerson: "ghost"})
	text := fmt.Sprint(r.Check(t.Context()))
	for _, want := range []string{"listens on " + r.Addr(), "access token", "session_key_file is not set", `"ghost" is nobody`, `console = "ghost"`} {
		if !strings.Contains(text, want) {
			t.Errorf("check lacks %q: %s", want, text)
		}
	}
	if status, _ := r.api("GET", "/api/me", accessToken, ""); status != 401 {
		t.Errorf("the token of nobody: %d", status)
	}
}
