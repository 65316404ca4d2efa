package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The readers below disagree about doubled keys and about case. A call that Decode accepts reads the same through all of them,
// so rules, digest, hooks and Execute cannot be shown different calls.
func firstWins(raw string) map[string]any { return flat(raw, true) }
func lastWins(raw string) map[string]any  { return flat(raw, false) }

func flat(raw string, first bool) map[string]any {
	out := map[string]any{}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return out
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return out
		}
		var v any
		if d.Decode(&v) != nil {
			return out
		}
		key := strings.ToLower(k.(string))
		if _, seen := out[key]; seen && first {
			continue
		}
		out[key] = v
	}
	return out
}

// goReader is encoding/json with its case-insensitive match.
type goReader struct {
	Path string `json:"path"`
	All  bool   `json:"all"`
}

func sameForEveryReader(raw string, canonical json.RawMessage) error {
	a, b := firstWins(raw), lastWins(raw)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		return fmt.Errorf("first-wins reads %v, last-wins reads %v", a, b)
	}
	var x, y goReader
	if err := json.Unmarshal([]byte(raw), &x); err != nil {
		return err
	}
	if err := json.Unmarshal(canonical, &y); err != nil {
		return err
	}
	if x != y {
		return fmt.Errorf("encoding/json reads %+v from the raw and %+v from the canonical text", x, y)
	}
	return nil
}

func TestDecodedArgumentsReadTheSameForEveryReader(t *testing.T) {
	r, err := NewRegistry(&fake{name: "move_file", schema: moveSchema})
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var fields []string
		for range rapid.IntRange(1, 4).Draw(t, "fields") {
			k := rapid.SampledFrom([]string{"path", "Path", "PATH", "all", "ALL", "limit", `p\u0061th`}).Draw(t, "key")
			v := rapid.SampledFrom([]string{`"a"`, `"b"`, `true`, `false`, `1`, `2.0`, `null`}).Draw(t, "value")
			fields = append(fields, fmt.Sprintf(`"%s":%s`, k, v))
		}
		raw := "{" + strings.Join(fields, ",") + "}"
		got, err := r.Decode("move_file", raw)
		if err != nil {
			refused++
			return
		}
		accepted++
		if err := sameForEveryReader(raw, got); err != nil {
			t.Fatalf("%s was accepted, but %v", raw, err)
		}
	})
	if accepted == 0 || refused == 0 {
		t.Fatalf("the generator proves nothing: %d accepted, %d refused", accepted, refused)
	}
}

// One decoding feeds every reader: what a tool executes is byte for byte what the judge and the digest saw.
func TestExecuteGetsTheDecodedBytes(t *testing.T) {
	f := &fake{name: "move_file", schema: moveSchema}
	r, err := NewRegistry(f)
	if err != nil {
		t.Fatal(err)
	}
	judged, err := r.Decode("move_file", `{ "path": "a", "limit": 3.0 }`)
	if err != nil {
		t.Fatal(err)
	}
	tl, _ := r.Get("move_file")
	if _, err := tl.Execute(t.Context(), judged); err != nil {
		t.Fatal(err)
	}
	again, err := r.Decode("move_file", string(f.got))
	if err != nil || !bytes.Equal(again, judged) || !bytes.Equal(f.got, judged) {
		t.Fatalf("judged %s, executed %s, decoded again %s (%v)", judged, f.got, again, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"path":"a"}`, `{"path":"a","path":"b"}`, `{"path":"\ud83d\ude00","limit":2e0}`, `{"path":"a","edits":[{"old":"x"}]}`,
		`{"path":"a","ratio":-0.0}`, `{"path":"a","ratio":1e-400}`, "{\"path\":\"\xff\"}", `{"path":"\\ud800"}`, `[[[[`, ``,
	} {
		f.Add(s)
	}
	r, err := NewRegistry(&fake{name: "move_file", schema: moveSchema})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := r.Decode("move_file", raw)
		if err != nil {
			return
		}
		again, err := r.Decode("move_file", string(got))
		if err != nil || !bytes.Equal(got, again) {
			t.Fatalf("%q decoded to %s, that to %s (%v)", raw, got, again, err)
		}
		if strings.TrimSpace(raw) == "" {
			return
		}
		if err := sameForEveryReader(raw, got); err != nil {
			t.Fatalf("%q was accepted, but %v", raw, err)
		}
	})
}
