// Package config turns TOML files into values: what each key means, where it came from, and what is wrong with it.
package config

import (
	"fmt"
	"reasonix/internal/budget"
	"time"
)

// Config is the whole configuration after flag > project > user > defaults was applied to every key.
type Config struct {
	DefaultModel string       `toml:"default_model"`
	Language     string       `toml:"language"`
	Agent        Agent        `toml:"agent"`
	Tools        Tools        `toml:"tools"`
	Permissions  Permissions  `toml:"permissions"`
	Sandbox      Sandbox      `toml:"sandbox"`
	Hooks        []Hook       `toml:"hooks"`
	Providers    []Provider   `toml:"providers"`
	Bot          Bot          `toml:"bot"`
	Connections  []Connection `toml:"-"`
	Repos        []Repo       `toml:"repos"`
	People       []Person     `toml:"people"`
	Routes       []Route      `toml:"routes"`
	Schedules    []Schedule   `toml:"schedules"`

	Files    []string `toml:"-"` // what was read, in order
	Warnings []string `toml:"-"` // with file and line; nothing stops
}

// Agent is how the model is led.
type Agent struct {
	SystemPrompt       string  `toml:"system_prompt"`
	SystemPromptFile   string  `toml:"system_prompt_file"`
	Temperature        float64 `toml:"temperature"`
	GoalBlockedRepeats int     `toml:"goal_blocked_repeats"`
	GoalTokens         int64   `toml:"goal_token_budget"`        // of a goal at a terminal, 0 = no limit
	TaskMinutes        int     `toml:"task_time_budget_minutes"` // running time of a request at a terminal, 0 or less = no limit
	TaskCost           string  `toml:"task_cost_budget"`         // of a request at a terminal, "5 USD"
	MaxSteps           int     `toml:"max_steps"`                // retired: read and ignored
}

// Tools narrows and bounds the built-ins.
type Tools struct {
	Enabled            []string `toml:"enabled"`
	BashTimeoutSeconds int      `toml:"bash_timeout_seconds"`
	Shell              Shell    `toml:"shell"`
}

// Shell is the program that runs the lines of bash (Spec, section 5).
type Shell struct {
	Prefer string `toml:"prefer"` // auto, bash, powershell or pwsh
	Path   string `toml:"path"`   // absolute; empty: the usual place
}

// Permissions are rules and the fallback (Spec, section 3.7).
type Permissions struct {
	Mode             string   `toml:"mode"`
	Allow            []string `toml:"allow"`
	Ask              []string `toml:"ask"`
	Deny             []string `toml:"deny"`
	AllowDynamicBash bool     `toml:"allow_dynamic_bash"`

	Sources map[string]string `toml:"-"` // "list\x00rule" → file:line
}

// Sandbox is where allowed work may act (Spec, section 5).
type Sandbox struct {
	Bash          string   `toml:"bash"`
	Backend       string   `toml:"backend"`
	AllowReduced  bool     `toml:"allow_reduced_box"` // the host's own configuration alone; the reduced box may stand in for the full one
	WorkspaceRoot string   `toml:"workspace_root"`
	AllowWrite    []string `toml:"allow_write"`
	ForbidRead    []string `toml:"forbid_read"`
	DiskMB        int      `toml:"disk_mb"`     // that the folders of one task may hold together; 0 = no limit
	MemoryMB      int      `toml:"memory_mb"`   // of one command with all it starts; 0 = four fifths of what the host may use, where cgroups hold it
	Processes     int      `toml:"processes"`   // of one command; 0 = the box's default
	OpenFiles     int      `toml:"open_files"`  // of one process; 0 = the box's default
	FileMB        int      `toml:"file_mb"`     // of one file; 0 = the box's default
	CPUSeconds    int      `toml:"cpu_seconds"` // of one process; 0 = no limit
	CPUs          float64  `toml:"cpus"`        // processors that one command may keep busy; 0 = no limit
	Network       bool     `toml:"network"`     // of every box; false: of those routes that say network = true
	AllowHosts    []string `toml:"allow_hosts"` // narrows it; empty: every public host
}

// Hook is a user's command around calls.
type Hook struct {
	Event          string `toml:"event"`
	Matcher        string `toml:"matcher"` // tools, separated by |; empty: all
	Command        string `toml:"command"` // a line for sh
	TimeoutSeconds int    `toml:"timeout_seconds"`

	Source string `toml:"-"` // file:line
}

// Provider is a vendor endpoint with one or more models.
type Provider struct {
	Name       string           `toml:"name"`
	Kind       string           `toml:"kind"`
	BaseURL    string           `toml:"base_url"`
	RequestURL string           `toml:"request_url"`
	Model      string           `toml:"model"`
	Models     []string         `toml:"models"`
	Default    string           `toml:"default"`
	APIKeyEnv  string           `toml:"api_key_env"`
	APIKeyFile string           `toml:"api_key_file"`
	Scenario   string           `toml:"scenario"` // kind script: the written scenario
	MaxTokens  int              `toml:"max_output_tokens"`
	Prices     map[string]Price `toml:"prices"`

	FromProject bool `toml:"-"` // such a provider never receives a host key
}

// Price is per million tokens.
type Price struct {
	Input     float64 `toml:"input"`
	Output    float64 `toml:"output"`
	CacheRead float64 `toml:"cache_read"`
	Currency  string  `toml:"currency"`
}

// Bot is the host itself.
type Bot struct {
	State      string   `toml:"state"`               // sqlite:PATH
	Listen     string   `toml:"listen"`              // webhooks; empty when no connection needs them
	Console    string   `toml:"console"`             // the console page; "off" closes it
	Data       string   `toml:"data"`                // workspaces and mirrors
	MaxTasks   int      `toml:"max_tasks"`           // running at once
	MaxSteps   int      `toml:"max_steps"`           // model calls per task, 0 = continuous
	TaskTime   Duration `toml:"task_time"`           // running time per task, 0 = no limit
	TaskTokens int64    `toml:"task_tokens"`         // tokens per task, 0 = no limit
	Lease      Duration `toml:"lease"`               // how long a silent worker keeps a task
	KeepFor    Duration `toml:"keep_workspaces_for"` // after the last task on it ended; 0 = for ever
	Keep       int      `toml:"keep_workspaces"`     // of ended tasks, newest first; 0 = all
	// MaxWorkspaces and MaxWorkspacesMB bound all workspaces on this host together, those that tasks need included; 0 = no limit.
	MaxWorkspaces   int `toml:"max_workspaces"`
	MaxWorkspacesMB int `toml:"max_workspaces_mb"`
	// SetupCacheMB bounds the results of setup commands that are kept for other tasks; 0 = none.
	SetupCacheMB int `toml:"setup_cache_mb"`
	// SnapshotEvery is the least time between two snapshots at turn boundaries; 0: at every boundary that changed something.
	SnapshotEvery Duration  `toml:"snapshot_every"`
	PublicURL     string    `toml:"public_url"` // where people reach the console
	Suggest       string    `toml:"suggest"`    // request that the console suggests
	BudgetDay     BudgetDay `toml:"budget_day"` // of all tasks together
}

// Connection is one door; Block is the adapter's own part.
type Connection struct {
	Name  string
	Kind  string
	Block map[string]any
	At    string // file:line
}

// Repo is a repository that routes may name.
type Repo struct {
	Name  string   `toml:"name"`
	URL   string   `toml:"url"`
	Base  string   `toml:"base"`
	Setup []string `toml:"setup"`
	// SetupFiles are what the setup commands depend on; empty: the whole base commit.
	SetupFiles []string `toml:"setup_files"`
	Slug       string   `toml:"slug"`       // the platform's name, "acme/api"; derived from url when empty
	Via        string   `toml:"connection"` // connection whose credentials clone and push; empty: none
}

// Person is one human. Every key besides name and role is a platform kind with that person's id there.
type Person struct {
	Name      string    `toml:"name"`
	Role      string    `toml:"role"`
	Slack     string    `toml:"slack"`
	GitHub    string    `toml:"github"`
	Console   string    `toml:"console"`
	CLI       string    `toml:"cli"`
	BudgetDay BudgetDay `toml:"budget_day"` // of all tasks that the person asks for
}

// Route is a rule from events to tasks (design, section 7).
type Route struct {
	Name      string    `toml:"name"`
	On        string    `toml:"on"`
	Match     Match     `toml:"match"`
	Mode      string    `toml:"mode"`
	Posture   string    `toml:"posture"`
	Model     string    `toml:"model"`
	Repo      string    `toml:"repo"`
	Headless  bool      `toml:"headless"`
	Asks      Asks      `toml:"asks"`
	Budget    Budget    `toml:"budget"`
	BudgetDay BudgetDay `toml:"budget_day"` // of all tasks of the route together
	Publish   *Publish  `toml:"publish"`
	// MaxWorkspaces and MaxWorkspacesMB bound the workspaces of the route's tasks on this host; 0 = no limit.
	MaxWorkspaces   int  `toml:"max_workspaces"`
	MaxWorkspacesMB int  `toml:"max_workspaces_mb"`
	Network         bool `toml:"network"`
}

// Match narrows a route.
type Match struct {
	Command string `toml:"command"`
	Repo    string `toml:"repo"`
	Channel string `toml:"channel"`
	Role    string `toml:"role"`
}

// Asks says where questions go and who may answer.
type Asks struct {
	To                  string   `toml:"to"` // "connection:channel"
	Approvers           []string `toml:"approvers"`
	Quorum              int      `toml:"quorum"`
	RequesterMayApprove bool     `toml:"requester_may_approve"`
	Expire              Duration `toml:"expire"`
	Then                string   `toml:"then"`
}

// Budget limits one task; every limit is opt-in.
type Budget struct {
	Tokens int64    `toml:"tokens"`
	Cost   string   `toml:"cost"` // "5 USD"
	Time   Duration `toml:"time"`
	Steps  int      `toml:"steps"`
}

// BudgetDay limits what is spent on one day (UTC); every limit is opt-in.
type BudgetDay struct {
	Tokens int64  `toml:"tokens"`
	Cost   string `toml:"cost"` // "20 USD"
}

// Limits of a day, in budget's units.
func (b BudgetDay) Limits() (budget.Limits, error) {
	if b.Tokens < 0 {
		return budget.Limits{}, fmt.Errorf("tokens = %d: a limit is not negative; 0 is none", b.Tokens)
	}
	l, err := Budget{Tokens: b.Tokens, Cost: b.Cost}.Limits()
	if err == nil && l.Cost < 0 {
		err = fmt.Errorf("cost = %q: a limit is not negative", b.Cost)
	}
	return l, err
}

// Publish says what the host publishes.
type Publish struct {
	Connection string   `toml:"connection"`
	PR         bool     `toml:"pr"`
	Draft      bool     `toml:"draft"`
	Protect    []string `toml:"protect"`
}

// Schedule is a clock that asks for work.
type Schedule struct {
	Name     string `toml:"name"`
	Cron     string `toml:"cron"`
	Timezone string `toml:"timezone"`
	Route    string `toml:"route"`
	Prompt   string `toml:"prompt"`
	Overlap  string `toml:"overlap"`
	CatchUp  string `toml:"catch_up"`
}

// Duration is a Go duration in text: "90s", "24h".
type Duration time.Duration

// UnmarshalText parses the text form.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// MarshalText writes the text form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Limits are those of a request at a terminal; goal adds those of a goal.
func (a Agent) Limits(goal bool) (budget.Limits, error) {
	l := budget.Limits{Time: max(0, time.Duration(a.TaskMinutes)*time.Minute)}
	if goal {
		l.Tokens = a.GoalTokens
	}
	if a.TaskCost == "" {
		return l, nil
	}
	var err error
	l.Cost, _, err = budget.ParseMoney(a.TaskCost)
	return l, err
}

// Limits of a route, in budget's units.
func (b Budget) Limits() (budget.Limits, error) {
	l := budget.Limits{Tokens: b.Tokens, Steps: b.Steps, Time: time.Duration(b.Time)}
	if b.Cost != "" {
		cost, _, err := budget.ParseMoney(b.Cost)
		if err != nil {
			return l, err
		}
		l.Cost = cost
	}
	return l, nil
}

// Defaults are the built-in values, before any file.
func Defaults() Config {
	return Config{
		DefaultModel: "deepseek",
		Agent:        Agent{GoalBlockedRepeats: 1},
		Tools:        Tools{BashTimeoutSeconds: 120, Shell: Shell{Prefer: "auto"}},
		Permissions:  Permissions{Mode: "ask"},
		Sandbox:      Sandbox{Bash: "enforce", Backend: "auto"},
		Bot: Bot{
			State: "sqlite:~/.reasonix/bot/state.db", Data: "~/.reasonix/bot", Listen: "127.0.0.1:8790", Console: "127.0.0.1:8787",
			SetupCacheMB: 4096, MaxTasks: 4, Lease: Duration(30 * time.Second), KeepFor: Duration(14 * 24 * time.Hour), Keep: 200,
		},
		Providers: []Provider{
			{Name: "deepseek", Kind: "openai", BaseURL: "https://api.deepseek.com/v1", Models: []string{"deepseek-v4-flash", "deepseek-v4-pro"}, APIKeyEnv: "DEEPSEEK_API_KEY"},
			{Name: "openai", Kind: "openai", BaseURL: "https://api.openai.com/v1", Models: []string{"gpt-5-mini", "gpt-5"}, APIKeyEnv: "OPENAI_API_KEY"},
		},
	}
}
