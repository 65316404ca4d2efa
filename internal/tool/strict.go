package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parseStrict reads one JSON value into maps, slices, strings, json.Number, bool and nil, refusing everything that two JSON
// readers could understand differently.
func parseStrict(raw string) (any, error) {
	if len(raw) > MaxArgs {
		return nil, fmt.Errorf("%d bytes are more than the limit of %d", len(raw), MaxArgs)
	}
	if !utf8.ValidString(raw) {
		return nil, errors.New("the text is not valid UTF-8")
	}
	if err := boundDepth(raw); err != nil {
		return nil, err
	}
	if err := syntax(raw); err != nil {
		return nil, err
	}
	if err := pairedSurrogates(raw); err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	v, err := value(d, "")
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is text after the JSON value")
	}
	return v, nil
}

// syntax gives the place of a syntax error in words; encoding/json also refuses NaN, comments and trailing data here.
func syntax(raw string) error {
	var probe json.RawMessage
	err := json.Unmarshal([]byte(raw), &probe)
	if err == nil {
		return nil
	}
	var se *json.SyntaxError
	if errors.As(err, &se) {
		return fmt.Errorf("not valid JSON at byte %d: %w", se.Offset, err)
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

// boundDepth runs before any recursive reader sees the text.
func boundDepth(raw string) error {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("nested deeper than %d levels", MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// pairedSurrogates refuses \ud800-style escapes without their partner: readers replace or keep them at will. raw is valid JSON.
func pairedSurrogates(raw string) error {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		unit := hexUnit(raw, i)
		i += 5
		if unit < 0xD800 || unit > 0xDFFF {
			continue
		}
		next := hexUnit(raw, i+1)
		if unit >= 0xDC00 || next < 0xDC00 || next > 0xDFFF {
			return fmt.Errorf(`the escape \u%04x is half of a character`, unit)
		}
		i += 6
	}
	return nil
}

// hexUnit reads the \uXXXX at i, or returns -1.
func hexUnit(raw string, i int) int {
	if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(raw[i+2:i+6], 16, 32)
	if err != nil {
		return -1
	}
	return int(n)
}

func value(d *json.Decoder, at string) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return object(d, at)
		}
		return array(d, at)
	case json.Number:
		return number(t, at)
	default:
		return t, nil
	}
}

func object(d *json.Decoder, at string) (any, error) {
	out := map[string]any{}
	folded := map[string]string{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key := t.(string) // the syntax is already proven
		if _, dup := out[key]; dup {
			return nil, fmt.Errorf("key %q appears twice%s: send it once", key, inside("/"+strings.TrimPrefix(at, "/")))
		}
		fold := foldKey(key)
		if other, dup := folded[fold]; dup {
			return nil, fmt.Errorf("keys %q and %q differ only in case%s: send one of them", other, key, inside("/"+strings.TrimPrefix(at, "/")))
		}
		folded[fold] = key
		if out[key], err = value(d, at+"/"+key); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return out, err
}

func array(d *json.Decoder, at string) (any, error) {
	out := []any{}
	for d.More() {
		v, err := value(d, fmt.Sprintf("%s/%d", at, len(out)))
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := d.Token()
	return out, err
}

// foldKey maps keys that a case-insensitive reader would take for one (k and the Kelvin sign included) to the same text.
func foldKey(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// number gives a whole number one spelling (2, 2.0 and 2e0 are the same call) and refuses what a float64 cannot hold.
func number(n json.Number, at string) (any, error) {
	const longest = 64
	if len(n) > longest {
		return nil, fmt.Errorf("the number at %s is too long", place(at))
	}
	if _, err := strconv.ParseFloat(string(n), 64); err != nil {
		return nil, fmt.Errorf("the number at %s is out of range", place(at))
	}
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		if exp, err := strconv.Atoi(string(n[i+1:])); err != nil || exp > 308 || exp < -400 {
			return nil, fmt.Errorf("the number at %s is out of range", place(at))
		}
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil, fmt.Errorf("the number at %s is out of range", place(at))
	}
	if r.IsInt() {
		return json.Number(r.Num().String()), nil
	}
	return n, nil
}

// encodeCanonical writes sorted keys without white space; json.Marshal sorts maps.
func encodeCanonical(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
