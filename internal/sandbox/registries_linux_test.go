package sandbox

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The three package managers really fetch, through the proxy of the box, from registries that the test serves.

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarball(t *testing.T, name, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoFetchesAModuleThroughTheProxy(t *testing.T) {
	mustLook(t, "go")
	const at = "/example.test/greet/@v/"
	mod := "module example.test/greet\n\ngo 1.20\n"
	files := map[string][]byte{
		at + "list": []byte("v1.0.0\n"), at + "v1.0.0.info": []byte(`{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}`), at + "v1.0.0.mod": []byte(mod),
		at + "v1.0.0.zip": zipped(t, map[string]string{"example.test/greet@v1.0.0/go.mod": mod, "example.test/greet@v1.0.0/greet.go": "package greet\n\nconst Word = \"hello\"\n"}),
	}
	r, origin := online(t, serveFiles(files))
	if root := runtimeRoot(t); root != "" {
		r.policy.Readable = append(r.policy.Readable, root)
	}
	r.policy.Limits.Wall = 2 * time.Minute
	write(t, filepath.Join(r.policy.Workspace, "go.mod"), "module m\n\ngo 1.20\n")
	r.own()
	out := r.must("export GOPROXY=http://" + origin + " GOSUMDB=off GOFLAGS=-mod=mod; go get example.test/greet@v1.0.0 && go list -m all && cat $GOMODCACHE/example.test/greet@v1.0.0/greet.go")
	if !strings.Contains(out, "example.test/greet v1.0.0") || !strings.Contains(out, `Word = "hello"`) {
		t.Errorf("%s", out)
	}
}

// runtimeRoot is the Go tree when it is no part of the base system.
func runtimeRoot(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	if root := strings.TrimSpace(string(out)); !strings.HasPrefix(root, "/usr/") {
		return root
	}
	return ""
}

func serveFiles(files map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, ok := files[q.URL.Path]
		if !ok {
			http.NotFound(w, q)
			return
		}
		if strings.HasSuffix(q.URL.Path, "/") {
			w.Header().Set("Content-Type", "text/html")
		}
		_, _ = w.Write(b)
	})
}

func TestNpmFetchesAPackageThroughTheProxy(t *testing.T) {
	if _, err := os.Stat("/usr/bin/npm"); err != nil {
		t.Skip("npm is missing: apt-get install npm")
	}
	pack := tarball(t, "package/package.json", `{"name":"greet","version":"1.0.0"}`)
	sum := sha512.Sum512(pack)
	files := map[string][]byte{"/greet/-/greet-1.0.0.tgz": pack}
	r, origin := online(t, serveFiles(files))
	files["/greet"] = fmt.Appendf(nil, `{"name":"greet","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"greet","version":"1.0.0","dist":{"tarball":"http://%s/greet/-/greet-1.0.0.tgz","integrity":"sha512-%s"}}}}`,
		origin, base64.StdEncoding.EncodeToString(sum[:]))
	r.policy.Limits.Wall = 2 * time.Minute
	write(t, filepath.Join(r.policy.Workspace, "package.json"), `{"name":"m","version":"1.0.0"}`)
	r.own()
	out := r.must("npm install --no-audit --no-fund --registry http://" + origin + "/ greet && cat node_modules/greet/package.json")
	if !strings.Contains(out, `"name":"greet"`) {
		t.Errorf("%s", out)
	}
}

func TestPipFetchesAPackageThroughTheProxy(t *testing.T) {
	python, root := pipPython(t)
	wheel := zipped(t, map[string]string{
		"greet.py":                       "word = 'hello'\n",
		"greet-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greet\nVersion: 1.0.0\n",
		"greet-1.0.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"greet-1.0.0.dist-info/RECORD":   "greet.py,,\ngreet-1.0.0.dist-info/METADATA,,\ngreet-1.0.0.dist-info/WHEEL,,\ngreet-1.0.0.dist-info/RECORD,,\n",
	})
	r, origin := online(t, serveFiles(map[string][]byte{
		"/simple/greet/":                  []byte(`<html><body><a href="/f/greet-1.0.0-py3-none-any.whl">greet-1.0.0-py3-none-any.whl</a></body></html>`),
		"/f/greet-1.0.0-py3-none-any.whl": wheel,
	}))
	r.policy.Readable = append(r.policy.Readable, root)
	r.policy.Limits.Wall = 2 * time.Minute
	out := r.must(python + " -m pip install --disable-pip-version-check --no-input --target lib --trusted-host registry.test --index-url http://" + origin + "/simple greet && cat lib/greet.py")
	if !strings.Contains(out, "word = 'hello'") {
		t.Errorf("%s", out)
	}
}

// pipPython is a python that has pip, and the folder it lives in.
func pipPython(t *testing.T) (program, root string) {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		out, err := exec.Command(name, "-c", "import pip, sys, os; print(os.path.realpath(sys.executable)); print(sys.base_prefix)").Output()
		if lines := strings.Fields(string(out)); err == nil && len(lines) == 2 {
			return lines[0], lines[1]
		}
	}
	t.Skip("pip is missing: apt-get install python3-pip")
	return "", ""
}
