package githubd

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type object map[string]any

// handler works with mu held and returns a status and a body.
type handler func(r *http.Request) (int, any)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	on := func(pattern, route string, h handler) { mux.HandleFunc(pattern, s.serve(route, h)) }
	on("GET /user", "GET user", func(*http.Request) (int, any) { return 200, object{"login": s.Bot, "type": "User"} })
	on("GET /app", "GET app", func(*http.Request) (int, any) {
		return 200, object{"id": s.AppID, "slug": strings.TrimSuffix(s.Bot, "[bot]")}
	})
	on("GET /repos/{owner}/{repo}/installation", "GET installation", func(*http.Request) (int, any) {
		if s.InstallationID == 0 {
			return notFound()
		}
		return 200, object{"id": s.InstallationID}
	})
	on("POST /app/installations/{id}/access_tokens", "POST access_tokens", s.accessToken)
	on("GET /repos/{owner}/{repo}/collaborators/{user}/permission", "GET permission", s.permission)
	on("GET /repos/{owner}/{repo}/issues/{number}/comments", "GET comments", s.listComments)
	on("POST /repos/{owner}/{repo}/issues/{number}/comments", "POST comments", s.createComment)
	on("PATCH /repos/{owner}/{repo}/issues/comments/{id}", "PATCH comments", s.editComment)
	on("POST /repos/{owner}/{repo}/issues/comments/{id}/reactions", "POST reactions", s.react("comment"))
	on("POST /repos/{owner}/{repo}/pulls/comments/{id}/reactions", "POST reactions", s.react("review"))
	on("POST /repos/{owner}/{repo}/issues/{id}/reactions", "POST reactions", s.react("issue"))
	on("GET /repos/{owner}/{repo}/pulls/{number}", "GET pull", s.getPull)
	on("GET /repos/{owner}/{repo}/pulls", "GET pulls", s.listPulls)
	on("POST /repos/{owner}/{repo}/pulls", "POST pulls", s.createPull)
	return mux
}

func (s *Server) serve(route string, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls[route]++
		var fault Fault
		if list := s.faults[route]; len(list) > 0 {
			fault, s.faults[route] = list[0], list[1:]
		}
		if s.faulted(w, fault) {
			s.mu.Unlock()
			return
		}
		status, body := 401, any(object{"message": "Bad credentials"})
		if s.authorized(r) {
			status, body = h(r)
		}
		s.mu.Unlock()
		if fault.DropAfter {
			drop(w)
			return
		}
		answer(w, status, body)
	}
}

func (s *Server) faulted(w http.ResponseWriter, f Fault) bool {
	switch {
	case f.DropBefore:
		drop(w)
	case f.RetryAfter > 0:
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		status := 403
		if f.Status != 0 {
			status = f.Status
		}
		answer(w, status, object{"message": "You have exceeded a secondary rate limit.",
			"documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"})
	case f.ResetIn > 0:
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Unix()+int64(f.ResetIn), 10))
		answer(w, 403, object{"message": "API rate limit exceeded"})
	case f.Status > 0:
		answer(w, f.Status, object{"message": f.Message})
	default:
		return false
	}
	return true
}

func drop(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func notFound() (int, any) { return 404, object{"message": "Not Found"} }

// authorized takes the token, an installation token, or for app routes a token signed by the app's key.
func (s *Server) authorized(r *http.Request) bool {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.HasPrefix(r.URL.Path, "/app") || strings.HasSuffix(r.URL.Path, "/installation") {
		return s.signedByApp(token)
	}
	if _, ok := s.tokens[token]; ok {
		return true
	}
	return s.key == nil && token == s.Token
}

func (s *Server) signedByApp(token string) bool {
	parts := strings.Split(token, ".")
	if s.key == nil || len(parts) != 3 {
		return false
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(s.key, crypto.SHA256, sum[:], sig) != nil {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Exp float64 `json:"exp"`
		Iss any     `json:"iss"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return false
	}
	now := float64(time.Now().Unix())
	return fmt.Sprint(claims.Iss) == strconv.FormatInt(s.AppID, 10) && claims.Exp > now && claims.Exp <= now+600
}

func (s *Server) accessToken(r *http.Request) (int, any) {
	if r.PathValue("id") != strconv.FormatInt(s.InstallationID, 10) {
		return notFound()
	}
	var want struct{ Repositories []string }
	_ = json.NewDecoder(r.Body).Decode(&want)
	token := fmt.Sprintf("ghs_%d", len(s.tokens)+1)
	s.tokens[token] = strings.Join(want.Repositories, ",")
	return 201, object{"token": token, "expires_at": time.Now().Add(time.Hour).Format(time.RFC3339)}
}

func repoOf(r *http.Request) string { return r.PathValue("owner") + "/" + r.PathValue("repo") }

func (s *Server) permission(r *http.Request) (int, any) {
	role, ok := s.access[repoOf(r)+" "+strings.ToLower(r.PathValue("user"))]
	if !ok {
		return 200, object{"permission": "none", "role_name": "none"}
	}
	permission := map[string]string{"maintain": "write", "triage": "read"}[role]
	if permission == "" {
		permission = role
	}
	return 200, object{"permission": permission, "role_name": role, "user": object{"login": r.PathValue("user")}}
}

func (s *Server) comment(c *Comment) object {
	kind := "User"
	if strings.HasSuffix(c.Author, "[bot]") {
		kind = "Bot"
	}
	return object{"id": c.ID, "body": c.Body, "user": object{"login": c.Author, "type": kind}, "created_at": c.Created.UTC().Format(time.RFC3339),
		"updated_at": c.Created.UTC().Format(time.RFC3339), "html_url": s.page(fmt.Sprintf("/%s/issues/%d#issuecomment-%d", c.Repo, c.Number, c.ID))}
}

func (s *Server) listComments(r *http.Request) (int, any) {
	since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	var hits []*Comment
	for _, c := range s.comments {
		if c.Repo == repoOf(r) && strconv.Itoa(c.Number) == r.PathValue("number") && !c.Created.Before(since) {
			hits = append(hits, c)
		}
	}
	per, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	if per == 0 {
		per = 30
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	from := min(max(page-1, 0)*per, len(hits))
	list := []object{}
	for _, c := range hits[from:min(from+per, len(hits))] {
		list = append(list, s.comment(c))
	}
	return 200, list
}

func (s *Server) createComment(r *http.Request) (int, any) {
	number, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || number == 404 {
		return notFound()
	}
	if s.closed[fmt.Sprintf("%s#%d", repoOf(r), number)] {
		return 403, object{"message": "Unable to create comment because issue is locked."}
	}
	body, problem := bodyOf(r)
	if problem != nil {
		return 422, problem
	}
	return 201, s.comment(s.add(repoOf(r), number, s.Bot, body))
}

func bodyOf(r *http.Request) (string, object) {
	var in struct{ Body string }
	if json.NewDecoder(r.Body).Decode(&in) != nil || strings.TrimSpace(in.Body) == "" {
		return "", object{"message": "Validation Failed", "errors": []object{{"field": "body", "code": "missing_field"}}}
	}
	if utf8.RuneCountInString(in.Body) > 65536 {
		return "", object{"message": "Validation Failed", "errors": []object{{"field": "body", "code": "custom", "message": "body is too long (maximum is 65536 characters)"}}}
	}
	return in.Body, nil
}

func (s *Server) editComment(r *http.Request) (int, any) {
	for _, c := range s.comments {
		if strconv.FormatInt(c.ID, 10) != r.PathValue("id") || c.Repo != repoOf(r) {
			continue
		}
		body, problem := bodyOf(r)
		if problem != nil {
			return 422, problem
		}
		c.Body = body
		c.Edits++
		return 200, s.comment(c)
	}
	return notFound()
}

func (s *Server) react(kind string) handler {
	return func(r *http.Request) (int, any) {
		var in struct{ Content string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		if !strings.Contains(" +1 -1 laugh confused heart hooray rocket eyes ", " "+in.Content+" ") {
			return 422, object{"message": "Validation Failed"}
		}
		to := kind + " " + r.PathValue("id")
		if kind == "issue" {
			to = kind + " " + repoOf(r) + "#" + r.PathValue("id")
		}
		for _, c := range s.reactions[to] {
			if c == in.Content {
				return 200, object{"content": in.Content}
			}
		}
		s.reactions[to] = append(s.reactions[to], in.Content)
		return 201, object{"content": in.Content}
	}
}

func (s *Server) pull(p *Pull) object {
	head := object{"ref": p.Branch, "sha": p.HeadSHA, "repo": nil}
	if p.HeadRepo != "" {
		head["repo"] = object{"full_name": p.HeadRepo, "fork": p.HeadRepo != p.Repo}
	}
	return object{"number": p.Number, "title": p.Title, "body": p.Body, "state": p.State, "draft": p.Draft, "head": head,
		"base":     object{"ref": p.Base, "repo": object{"full_name": p.Repo}},
		"html_url": s.page(fmt.Sprintf("/%s/pull/%d", p.Repo, p.Number))}
}

func (s *Server) getPull(r *http.Request) (int, any) {
	for _, p := range s.pulls {
		if p.Repo == repoOf(r) && strconv.Itoa(p.Number) == r.PathValue("number") {
			return 200, s.pull(p)
		}
	}
	return notFound()
}

func (s *Server) listPulls(r *http.Request) (int, any) {
	q := r.URL.Query()
	list := []*Pull{}
	for _, p := range s.pulls {
		state := q.Get("state") == "all" || p.State == q.Get("state") || q.Get("state") == "" && p.State == "open"
		owner, _, _ := strings.Cut(p.HeadRepo, "/")
		head := q.Get("head") == "" || q.Get("head") == owner+":"+p.Branch
		base := q.Get("base") == "" || q.Get("base") == p.Base
		if p.Repo == repoOf(r) && state && head && base {
			list = append(list, p)
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Number > list[j].Number })
	out := []object{}
	for _, p := range list {
		out = append(out, s.pull(p))
	}
	return 200, out
}

func (s *Server) createPull(r *http.Request) (int, any) {
	var in struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.Title == "" || in.Head == "" || in.Base == "" {
		return 422, object{"message": "Validation Failed"}
	}
	if in.Draft && !s.drafts {
		return 422, object{"message": "Draft pull requests are not supported in this repository."}
	}
	for _, p := range s.pulls {
		if p.Repo == repoOf(r) && p.Branch == in.Head && p.Base == in.Base && p.State == "open" {
			return 422, object{"message": "Validation Failed", "errors": []object{{"resource": "PullRequest", "code": "custom",
				"message": "A pull request already exists for " + r.PathValue("owner") + ":" + in.Head + "."}}}
		}
	}
	p := &Pull{Repo: repoOf(r), Number: 100 + len(s.pulls), Title: in.Title, Body: in.Body, Branch: in.Head, Base: in.Base, Draft: in.Draft, HeadRepo: repoOf(r), State: "open"}
	s.pulls = append(s.pulls, p)
	return 201, s.pull(p)
}
