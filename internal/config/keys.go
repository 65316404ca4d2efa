package config

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Env is the global .env over the process environment: saved keys win, services without the file still work.
type Env struct {
	saved   map[string]string
	process func(string) string
}

// LoadEnv reads NAME=value lines; a missing file is an empty one.
func LoadEnv(path string, process func(string) string) (Env, error) {
	e := Env{saved: map[string]string{}, process: process}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("read saved keys: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok {
			return e, fmt.Errorf("%s:%d: expected NAME=value", path, n)
		}
		e.saved[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
	}
	return e, lines.Err()
}

// Get returns the saved value, else the process's.
func (e Env) Get(name string) string {
	if v := e.saved[name]; v != "" {
		return v
	}
	return e.process(name)
}

// Saved lists the names and values of the file, for redaction.
func (e Env) Saved() map[string]string { return e.saved }

// Key finds a provider's key: the global .env, then api_key_file, then the process environment. A provider that a project
// defines never receives a host key.
func (p Provider) Key(e Env) (string, error) {
	if p.FromProject {
		return "", nil
	}
	if v := e.saved[p.APIKeyEnv]; p.APIKeyEnv != "" && v != "" {
		return v, nil
	}
	if p.APIKeyFile != "" {
		b, err := os.ReadFile(ExpandHome(p.APIKeyFile))
		if err != nil {
			return "", fmt.Errorf("provider %q: read api_key_file: %w", p.Name, err)
		}
		return strings.TrimSpace(string(b)), nil
	}
	if p.APIKeyEnv == "" {
		return "", nil
	}
	return e.process(p.APIKeyEnv), nil
}

// ResolveModel finds a provider and model by a reference: a provider's name, a bare model name, or provider/model.
func (c Config) ResolveModel(ref string) (Provider, string, error) {
	if ref == "" {
		ref = c.DefaultModel
	}
	if i := slices.IndexFunc(c.Providers, func(p Provider) bool { return p.Name == ref }); i >= 0 {
		return c.Providers[i], c.Providers[i].defaultModel(), nil
	}
	if name, model, ok := strings.Cut(ref, "/"); ok {
		if i := slices.IndexFunc(c.Providers, func(p Provider) bool { return p.Name == name }); i >= 0 {
			return c.Providers[i], model, nil
		}
	}
	for _, p := range c.Providers {
		if p.Model == ref || slices.Contains(p.Models, ref) {
			return p, ref, nil
		}
	}
	names := make([]string, len(c.Providers))
	for i, p := range c.Providers {
		names[i] = p.Name
	}
	return Provider{}, "", fmt.Errorf("model %q is not configured: use one of the providers %s, or provider/model", ref, strings.Join(names, ", "))
}

func (p Provider) defaultModel() string {
	switch {
	case p.Default != "":
		return p.Default
	case p.Model != "":
		return p.Model
	case len(p.Models) > 0:
		return p.Models[0]
	}
	return p.Name
}

// ExpandHome replaces a leading ~ and ${HOME}.
func ExpandHome(path string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	path = strings.ReplaceAll(path, "${HOME}", home)
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(home, strings.TrimPrefix(path, "~"))
	}
	return path
}
