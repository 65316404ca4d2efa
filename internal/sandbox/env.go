package sandbox

import (
	"path/filepath"
	"strings"
)

// passed are the only host variables that a box may see; everything else, credentials under whatever name included, is absent.
var passed = []string{"LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "COLORTERM", "NO_COLOR"}

const defaultPath = "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// BoxEnv builds the whole environment of a box: a few host variables by name, and the task's own home, temp and caches.
// lookup is os.LookupEnv or a double; caches may be empty. Only absolute PATH entries are kept, and values that do not look like
// what the name promises are dropped, so that nobody can smuggle a secret in through an allowed name.
func BoxEnv(lookup func(string) (string, bool), home, temp, caches string) []string {
	env := []string{"PATH=" + cleanPath(lookup), "HOME=" + home, "TMPDIR=" + temp, "USER=task", "LOGNAME=task",
		"SHELL=/bin/bash", "GIT_TERMINAL_PROMPT=0", "PAGER=cat", "GIT_PAGER=cat", "GOTOOLCHAIN=local"}
	for _, name := range passed {
		if v, ok := lookup(name); ok && len(v) <= 64 && !strings.ContainsAny(v, "\x00\n=") {
			env = append(env, name+"="+v)
		}
	}
	if caches == "" {
		return env
	}
	for _, c := range cacheVars {
		env = append(env, c.name+"="+filepath.Join(caches, c.dir))
	}
	return env
}

var cacheVars = []struct{ name, dir string }{
	{"GOCACHE", "go-build"},
	{"GOMODCACHE", "go-mod"},
	{"npm_config_cache", "npm"},
	{"PIP_CACHE_DIR", "pip"},
	{"XDG_CACHE_HOME", "xdg"},
}

func cleanPath(lookup func(string) (string, bool)) string {
	value, _ := lookup("PATH")
	var kept []string
	for _, dir := range filepath.SplitList(value) {
		if filepath.IsAbs(dir) && !strings.ContainsAny(dir, "\x00\n=") {
			kept = append(kept, dir)
		}
	}
	if len(kept) == 0 {
		return defaultPath
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

// GoModules is what a policy needs so that go in the box takes modules from a host's module cache, read-only and without a
// network: the task's own cache stays its own, and go.sum is still checked. Whoever passes it on shows every module of that
// cache, private ones included, to the task.
func GoModules(modcache string) Policy {
	download := filepath.Join(modcache, "cache", "download")
	return Policy{Readable: []string{download}, Env: []string{"GOPROXY=file://" + filepath.ToSlash(download), "GOSUMDB=off"}}
}
