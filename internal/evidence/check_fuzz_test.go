package evidence

import (
	"strings"
	"testing"
)

func FuzzChecksIn(f *testing.F) {
	for _, s := range []string{"go test ./... && make lint | tail", "time (cd x; npm t)", "timeout", "env -i", "{ go vet; }", "a=$(go test)", "go\x00test", "\"go\" test"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, c := range readLine(line).parts {
			if c.text == "" || c.alone && !c.proves {
				t.Fatalf("%q gives %+v", line, c)
			}
			if c.proves && strings.HasSuffix(strings.TrimSpace(line), "|| true") {
				t.Fatalf("%q proves nothing", line)
			}
		}
	})
}
