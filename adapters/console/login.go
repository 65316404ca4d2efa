package console

import (
	"net/http"
	"strings"
)

// loginView is the sign-in page. A link's code is sent on by a form: opening the link alone, as previews do, uses nothing up.
type loginView struct {
	Code     string
	Problem  string
	HasToken bool
}

func (d *Door) loginPage(w http.ResponseWriter, r *http.Request) {
	v := loginView{HasToken: d.settings.token != ""}
	status := http.StatusOK
	if _, in := d.cookieViewer(r); in && r.URL.Query().Get("code") == "" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if code := r.URL.Query().Get("code"); code != "" {
		if d.codes.valid(code, d.now()) {
			v.Code = code
		} else {
			status = http.StatusGone
			v.Problem = "This link was used or is too old. A link works once, within ten minutes: ask the host for a new one."
		}
	}
	d.render(w, r, status, "login", page{Title: "Sign in", Body: v})
}

func (d *Door) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		d.refuse(w, r, http.StatusRequestEntityTooLarge, "The form is broken or too large. Open the sign-in page again.")
		return
	}
	token, problem, status := d.enter(r, r.PostForm.Get("code"), r.PostForm.Get("token"))
	if problem != "" {
		if status == http.StatusTooManyRequests {
			tooMany(w, attemptEvery)
		}
		d.render(w, r, status, "login", page{Title: "Sign in", Body: loginView{Problem: problem, HasToken: d.settings.token != ""}})
		return
	}
	c := d.cookie(token)
	c.MaxAge = int(d.settings.session.Seconds())
	http.SetCookie(w, c)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// enter exchanges a login code or the access token for a session token, or says why not.
func (d *Door) enter(r *http.Request, code, token string) (session, problem string, status int) {
	now := d.now()
	if _, ok := d.limits.free(r, now); !ok {
		return "", "Too many failed attempts from here. Wait a minute and try again.", http.StatusTooManyRequests
	}
	id, ok := "", false
	switch {
	case code == "" && strings.TrimSpace(token) == "":
		problem = "A code from a login link is needed, or the access token where one is configured."
	case code != "":
		id, ok = d.codes.redeem(code, now)
		problem = "This link was used or is too old. A link works once, within ten minutes: ask the host for a new one."
	default:
		ok = d.isAccessToken(strings.TrimSpace(token))
		problem = "That is not the access token. It is configured as token_env or token_file of this console."
		if p, known := d.person(d.settings.TokenPerson); ok && known {
			id = p.Identities[Kind]
		}
	}
	if !ok {
		d.limits.failed(r, now)
		return "", problem, http.StatusUnauthorized
	}
	if _, known := d.identity(id); !known {
		return "", "The person of this token is not configured any more. Add their console identity to [[people]].", http.StatusForbidden
	}
	return d.signer.seal(pass{id, now.Add(d.settings.session).Unix()}), "", http.StatusOK
}

func (d *Door) logout(w http.ResponseWriter, r *http.Request) {
	c := d.cookie("")
	c.MaxAge = -1
	http.SetCookie(w, c)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (d *Door) cookie(value string) *http.Cookie {
	return &http.Cookie{
		Name: d.cookieName(), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: d.settings.public != nil && d.settings.public.Scheme == "https",
	}
}
