package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Sources say which files take part. An empty path takes no part; a path that does not exist is no error.
type Sources struct {
	User    string
	Project string
	// Tighten reads the project file for its deny and ask rules only (invariant 14); what else it holds is reported.
	Tighten bool
}

// Home is the folder of the user's configuration: REASONIX_HOME, else ~/.reasonix, on Windows %AppData%\reasonix.
func Home(getenv func(string) string) (string, error) {
	if h := getenv("REASONIX_HOME"); h != "" {
		return filepath.Abs(h)
	}
	if runtime.GOOS == "windows" {
		if d := getenv("AppData"); d != "" {
			return filepath.Join(d, "reasonix"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home folder: %w (set REASONIX_HOME)", err)
	}
	return filepath.Join(home, ".reasonix"), nil
}

// Load reads the files in rising precedence over the defaults and checks the result.
func Load(s Sources) (Config, error) {
	c := Defaults()
	c.Permissions.Sources = map[string]string{}
	if err := c.readUser(s.User); err != nil {
		return c, err
	}
	if err := c.readProject(s.Project, s.Tighten); err != nil {
		return c, err
	}
	return c, c.check()
}

func (c *Config) readUser(path string) error {
	data, ok, err := readFile(path)
	if err != nil || !ok {
		return err
	}
	return c.overlay(path, data, false)
}

func (c *Config) readProject(path string, tighten bool) error {
	data, ok, err := readFile(path)
	if err != nil || !ok {
		return err
	}
	if tighten {
		return c.tighten(path, data)
	}
	return c.overlay(path, data, true)
}

func readFile(path string) ([]byte, bool, error) {
	if path == "" {
		return nil, false, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read configuration: %w", err)
	}
	return data, true, nil
}

// overlay lets every key that the file sets win over what stood there. Rules and the folders of the sandbox add up, providers replace by name.
func (c *Config) overlay(path string, data []byte, project bool) error {
	before := *c
	c.Permissions.Allow, c.Permissions.Ask, c.Permissions.Deny = nil, nil, nil
	c.Sandbox.AllowWrite, c.Sandbox.ForbidRead = nil, nil
	c.Providers = nil
	md, err := toml.NewDecoder(bytes.NewReader(data)).Decode(c)
	if err != nil {
		return parseError(path, data, err)
	}
	c.Files = append(c.Files, path)
	if err := unknownKeys(path, data, md); err != nil {
		return err
	}
	if project {
		if err := hostOnly(path, data, md); err != nil {
			return err
		}
		if c.Sandbox.Backend == "landlock" && before.Sandbox.Backend != "landlock" {
			return fmt.Errorf("%s:%d: sandbox.backend = \"landlock\" belongs into the host's own configuration, not into a project's: a repository cannot settle for less",
				path, lineOf(data, "sandbox", "backend"))
		}
		markProject(c.Providers)
	}
	if md.IsDefined("agent", "max_steps") {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s:%d: agent.max_steps is retired and ignored; use --max-steps or [bot].max_steps", path, lineOf(data, "agent", "max_steps")))
	}
	c.noteSources(path, data)
	if md.IsDefined("hooks") {
		for i := range c.Hooks {
			c.Hooks[i].Source = fmt.Sprintf("%s:%d", path, nthTable(data, "hooks", i))
		}
	}
	c.Permissions.Allow = append(slices.Clone(before.Permissions.Allow), c.Permissions.Allow...)
	c.Permissions.Ask = append(slices.Clone(before.Permissions.Ask), c.Permissions.Ask...)
	c.Permissions.Deny = append(slices.Clone(before.Permissions.Deny), c.Permissions.Deny...)
	c.Sandbox.AllowWrite = append(slices.Clone(before.Sandbox.AllowWrite), c.Sandbox.AllowWrite...)
	c.Sandbox.ForbidRead = append(slices.Clone(before.Sandbox.ForbidRead), c.Sandbox.ForbidRead...)
	c.Providers = mergeProviders(before.Providers, c.Providers)
	return c.readConnections(path, data)
}

func markProject(ps []Provider) {
	for i := range ps {
		ps[i].FromProject = true
	}
}

func mergeProviders(base, over []Provider) []Provider {
	out := slices.Clone(base)
	for _, p := range over {
		if i := slices.IndexFunc(out, func(x Provider) bool { return x.Name == p.Name }); i >= 0 {
			out[i] = p
			continue
		}
		out = append(out, p)
	}
	return out
}

// hostOnly refuses host keys in a project file: a repository must not configure the host.
func hostOnly(path string, data []byte, md toml.MetaData) error {
	for _, k := range []string{"bot", "connections", "repos", "people", "routes", "schedules"} {
		if md.IsDefined(k) {
			return fmt.Errorf("%s:%d: [%s] belongs into the host's own configuration, not into a project's", path, lineOf(data, k), k)
		}
	}
	if md.IsDefined("sandbox", "allow_reduced_box") {
		return fmt.Errorf("%s:%d: sandbox.allow_reduced_box belongs into the host's own configuration, not into a project's: a repository cannot settle for less",
			path, lineOf(data, "sandbox", "allow_reduced_box"))
	}
	return nil
}

// Tighten returns the host's configuration with the deny and ask rules of a repository's own file added (invariant 14). A file
// (data, named for messages) that cannot be parsed is an error.
func Tighten(host Config, name string, data []byte) (Config, error) {
	c := host
	c.Permissions.Deny, c.Permissions.Ask = slices.Clone(host.Permissions.Deny), slices.Clone(host.Permissions.Ask)
	c.Permissions.Sources = maps.Clone(host.Permissions.Sources)
	return c, c.tighten(name, data)
}

// tighten takes only deny and ask rules of a repository's own file and reports the rest.
func (c *Config) tighten(path string, data []byte) error {
	var p Config
	md, err := toml.NewDecoder(bytes.NewReader(data)).Decode(&p)
	if err != nil {
		return parseError(path, data, err)
	}
	c.Files = append(c.Files, path)
	for _, k := range md.Keys() {
		key := k.String()
		if key == "permissions" || key == "permissions.deny" || key == "permissions.ask" {
			continue
		}
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s:%d: %s is ignored here: a repository can only tighten what the host allows", path, lineOf(data, k...), key))
	}
	p.Permissions.Sources = c.Permissions.Sources
	p.noteSources(path, data)
	c.Permissions.Deny = append(c.Permissions.Deny, p.Permissions.Deny...)
	c.Permissions.Ask = append(c.Permissions.Ask, p.Permissions.Ask...)
	return nil
}

func parseError(path string, data []byte, err error) error {
	var pe toml.ParseError
	if errors.As(err, &pe) {
		// The library's own line is one too far where the error is the end of a line.
		line := 1 + bytes.Count(data[:min(pe.Position.Start, len(data))], []byte("\n"))
		return fmt.Errorf("%s:%d: %s", path, line, pe.Message)
	}
	if m := typeError.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s:%s: %s: %s", path, m[1], m[2], m[3])
	}
	return fmt.Errorf("%s: %w", path, err)
}

// typeError is how the library words a value of the wrong type.
var typeError = regexp.MustCompile(`^toml: line (\d+) \(last key "([^"]*)"\): (.*)$`)

func unknownKeys(path string, data []byte, md toml.MetaData) error {
	var bad []string
	for _, k := range md.Undecoded() {
		if k[0] == "connections" {
			continue // the adapter's own block, decoded strictly by the adapter
		}
		bad = append(bad, fmt.Sprintf("%s:%d: unknown key %s", path, lineOf(data, k...), k))
	}
	if len(bad) == 0 {
		return nil
	}
	return errors.New(strings.Join(bad, "\n"))
}

// readConnections keeps each connection's block for its adapter.
func (c *Config) readConnections(path string, data []byte) error {
	var raw struct {
		Connections []map[string]any `toml:"connections"`
	}
	if _, err := toml.NewDecoder(bytes.NewReader(data)).Decode(&raw); err != nil {
		return parseError(path, data, err)
	}
	for i, block := range raw.Connections {
		name, _ := block["name"].(string)
		kind, _ := block["kind"].(string)
		at := fmt.Sprintf("%s:%d", path, nthTable(data, "connections", i))
		if name == "" || kind == "" {
			return fmt.Errorf("%s: a connection needs a name and a kind", at)
		}
		delete(block, "name")
		delete(block, "kind")
		c.Connections = append(c.Connections, Connection{Name: name, Kind: kind, Block: block, At: at})
	}
	return nil
}

// Decode reads the adapter's block strictly: an unknown key is an error that names it.
func (c Connection) Decode(into any) error {
	var buf bytes.Buffer
	if err := toml.NewEncoder(&buf).Encode(c.Block); err != nil {
		return fmt.Errorf("%s: connection %q: %w", c.At, c.Name, err)
	}
	md, err := toml.NewDecoder(&buf).Decode(into)
	if err != nil {
		return fmt.Errorf("%s: connection %q: %w", c.At, c.Name, err)
	}
	if bad := md.Undecoded(); len(bad) > 0 {
		return fmt.Errorf("%s: connection %q: unknown key %s for the kind %s", c.At, c.Name, bad[0], c.Kind)
	}
	return nil
}
