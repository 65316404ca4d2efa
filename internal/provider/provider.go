// Package provider is the model that does the thinking: one request in, one streamed turn out, whatever the vendor.
package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"
)

// Role says who wrote a message.
type Role string

// The roles of a conversation (Spec, section 4).
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of the conversation as every vendor understands it.
type Message struct {
	Role       Role       `json:"role"`
	Content    string     `json:"content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Name       string     `json:"name,omitempty"`
}

// ToolCall is a complete call; Arguments is the raw JSON object that the model wrote.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ToolSchema offers a tool to the model; Parameters is a canonical JSON Schema.
type ToolSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Request is one model call. Between two maintenance points the bytes of a request are a prefix of the next one's.
type Request struct {
	Messages    []Message
	Tools       []ToolSchema
	Temperature float64
	MaxTokens   int // 0 leaves the vendor's default
}

// Usage counts tokens of one or more calls. Input includes the cached part.
type Usage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
}

// Add returns the sum of both.
func (u Usage) Add(o Usage) Usage {
	return Usage{u.Input + o.Input, u.Output + o.Output, u.CacheRead + o.CacheRead, u.CacheCreation + o.CacheCreation}
}

// Plausible keeps what a server reported within what one call can use: a negative number would give a budget back, and sums must not turn over.
func (u Usage) Plausible() Usage {
	const most = 1 << 40
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheCreation} {
		*n = min(max(*n, 0), most)
	}
	return u
}

// Total is the number of tokens that a token budget counts.
func (u Usage) Total() int64 { return u.Input + u.Output }

// ChunkType says what a Chunk carries.
type ChunkType int

// The kinds of Chunk. A stream ends with exactly one ChunkDone or ChunkError, then the channel closes.
const (
	ChunkText ChunkType = iota
	ChunkToolCall
	ChunkDone
	ChunkError
)

// Chunk is one piece of a streamed turn. Tool calls arrive complete, never as deltas.
type Chunk struct {
	Type         ChunkType
	Text         string    // ChunkText
	ToolCall     *ToolCall // ChunkToolCall
	Usage        Usage     // ChunkDone
	FinishReason string    // ChunkDone: stop, tool_calls, length, content_filter
	Err          error     // ChunkError
}

// Provider talks to one model. Stream must honour ctx, retry by itself only while nothing of the turn was emitted,
// and close the channel when done.
type Provider interface {
	Name() string
	Stream(ctx context.Context, req Request) (<-chan Chunk, error)
}

// Config is one resolved provider instance.
type Config struct {
	Name       string // instance name, e.g. "deepseek"
	BaseURL    string
	RequestURL string // exact request target; empty derives it from BaseURL
	Model      string
	APIKey     string
	Extra      map[string]any // kind-specific options
	Client     HTTPDoer       // nil: the kind's default client
}

// Error is a failure that the vendor or the wire reported.
type Error struct {
	Provider   string
	Status     int           // HTTP status, 0 when no answer came
	Code       string        // vendor's machine-readable code, may be empty
	Message    string        // redacted, bounded text
	RetryAfter time.Duration // 0 when unknown
	Temporary  bool          // a later identical call may work
	Cut        bool          // the stream ended early after something was emitted
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model %s answered %d: %s", e.Provider, e.Status, e.Message)
	}
	return fmt.Sprintf("model %s: %s", e.Provider, e.Message)
}

// ErrUnknownKind is returned by New for a kind that nothing registered.
var ErrUnknownKind = errors.New("unknown provider kind")

// Factory builds a Provider from a resolved instance.
type Factory func(Config) (Provider, error)

var (
	mu        sync.RWMutex
	factories = map[string]Factory{}
)

// Register adds a kind; called from init. A second registration of the same kind panics.
func Register(kind string, f Factory) {
	mu.Lock()
	defer mu.Unlock()
	if _, dup := factories[kind]; dup {
		panic("provider kind registered twice: " + kind)
	}
	factories[kind] = f
}

// New builds the instance of the given kind.
func New(kind string, cfg Config) (Provider, error) {
	mu.RLock()
	f, ok := factories[kind]
	mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("provider %q: kind %q: %w (known: %v)", cfg.Name, kind, ErrUnknownKind, Kinds())
	}
	return f(cfg)
}

// Kinds lists what is registered, sorted.
func Kinds() []string {
	mu.RLock()
	defer mu.RUnlock()
	names := make([]string, 0, len(factories))
	for k := range factories {
		names = append(names, k)
	}
	sort.Strings(names)
	return names
}
