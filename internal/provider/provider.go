// Package provider is the port to agent CLIs: one small interface to run turns
// on a CLI, one event model, capabilities as data. Drivers (provider/codex,
// provider/claude, provider/opencode) import it, what they share (provider/base),
// and nothing of thole's beyond kernels and the public clients. They run only inside executord, next to the CLI.
// Nothing outside a driver branches on a provider's name: it reads Capabilities.
package provider

import (
	"context"
	"encoding/json"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/provider/table"
)

// Errors of the port. Everything a CLI or a model does wrong during a turn is an
// Event, not an error: errors mean that the call itself had no effect.
var (
	// ErrUnsupported: Capabilities says no; the caller applies the degradation.
	ErrUnsupported = errors.New("provider: not supported")
	// ErrNoTurn: there is no running turn to act on.
	ErrNoTurn = errors.New("provider: no running turn")
	// ErrSettled: that ask was answered, cancelled or never asked.
	ErrSettled = errors.New("provider: ask already settled")
	// ErrSessionLost: the session to resume does not exist in this home.
	ErrSessionLost = errors.New("provider: session not found")
	// ErrMissing: the CLI is not installed; the error text says the command that
	// installs it.
	ErrMissing = errors.New("agent not installed")
)

// Capability is unknown until probed. Only validated permits.
type Capability string

const (
	Unknown     Capability = "unknown"
	Validated   Capability = "validated"
	Unavailable Capability = "unavailable"
)

// OK reports whether the capability may be relied on.
func (c Capability) OK() bool { return c == Validated }

// Capabilities says what one CLI of one version can do. Notes hold the declared
// degradation of whatever is not validated, keyed by the field's JSON name.
type Capabilities struct {
	Resume        Capability        `json:"resume"`
	Fork          Capability        `json:"fork"`
	Steer         Capability        `json:"steer"`
	HumanLoop     Capability        `json:"human_loop"`
	AskSurvives   Capability        `json:"ask_survives_restart"`
	ToolApproval  Capability        `json:"tool_approval"`
	TodoStream    Capability        `json:"todo_stream"`
	PlanMode      Capability        `json:"plan_mode"`
	Usage         Capability        `json:"usage"`
	Cost          Capability        `json:"cost"`
	ToolInputFlow Capability        `json:"tool_input_stream"`
	Compact       Capability        `json:"compact"`
	Notes         map[string]string `json:"notes,omitempty"`
}

// Info is what a probe found on this machine.
type Info struct {
	Name         string       `json:"name"` // "codex", "claude", "opencode", "test"
	Title        string       `json:"title"`
	Binary       string       `json:"binary,omitempty"`
	Version      string       `json:"version,omitempty"`
	Pinned       string       `json:"pinned_version,omitempty"`
	Available    bool         `json:"available"`
	Problem      string       `json:"problem,omitempty"`
	Fix          string       `json:"fix,omitempty"` // the exact command that helps
	Models       []Model      `json:"models,omitempty"`
	Profiles     []ProfileMap `json:"profiles"`
	Modes        []table.Mode `json:"native_modes" doc:"what else it can be run as: values of execution_profile besides the neutral ones"`
	Capabilities Capabilities `json:"capabilities"`
}

// Model is one model a provider offers.
type Model struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Efforts []string `json:"efforts,omitempty"`
	Effort  string   `json:"default_effort,omitempty"` // what it takes when none is chosen, if known
	Default bool     `json:"default,omitempty"`
	// Inputs are the kinds of input that it reads, text and image; none when that is not known.
	Inputs []string `json:"inputs,omitempty"`
}

// ProfileMap is one row of a provider's profile table.
type ProfileMap struct {
	Profile thole.Profile `json:"profile"`
	Native  string        `json:"native"`
}

// Provider makes sessions on one agent CLI. Safe for concurrent use.
type Provider interface {
	Name() string
	// Probe inspects the installed CLI: cheap, no model call, no side effect in
	// the user's home. A missing CLI is an Info with Problem and Fix, not an error.
	Probe(ctx context.Context) Info
	// Open starts or resumes the CLI's side of a conversation. It returns when the
	// CLI is ready, or an error with a readable diagnosis (its last stderr lines)
	// when it is not ready by ctx's deadline.
	Open(ctx context.Context, cfg SessionConfig) (Session, error)
}

// SessionConfig places one session.
type SessionConfig struct {
	Thread thole.ThreadID
	// Dir is the workspace as the CLI sees it. Providers tie resume to it, so it
	// must be the same path for the thread's life.
	Dir string
	// Data is the directory that holds all the CLI's durable state for this thread
	// (CODEX_HOME, CLAUDE_CONFIG_DIR, XDG_*). It is synced; Auth is not.
	Data string
	// Auth is a directory outside anything that is synced, for credential files.
	Auth string
	// Env is the whole environment besides what the driver sets. Nothing is
	// inherited from the host process.
	Env map[string]string
	// NoProject says that settings of the CLI in the workspace do not count: agents write
	// them, and they could permit more than the profile does.
	NoProject bool
	// Box is where the CLI runs, nil here. The paths are the same inside.
	Box *box.Box
	// Resume is the native session id to continue, "" for a new one.
	Resume string
	// Fork continues Resume in a new native session and leaves the original alone.
	Fork bool
	// Tools are the thread's client's own.
	Tools []event.ClientTool
	// Settings are the thread's, of which Provider and Dir are the caller's business:
	// Instructions are added to the system prompt, Options pass through unchanged.
	event.Settings
}

// Turn is one input to run.
type Turn struct {
	ID       thole.TurnID
	Input    []thole.Input
	ClientID string
	// Settings override the session's for this turn (model, effort, profile); empty
	// fields keep them.
	event.Settings
	// Schema is the JSON schema of an object that the turn's last message has to be, as JSON
	// text; nil for any text.
	Schema json.RawMessage `json:",omitempty"`
	// Reply answers an ask that a former process deferred (AskSurvives). Input is
	// then empty.
	Reply *Reply
}

// Compacts reports whether the turn is the command turn of that name: the CLI shortens
// its context by its own means, and EventItemCompleted of an ItemCompaction reports
// that it did. Shell command turns never reach a driver.
func (t Turn) Compacts() bool {
	command, _ := thole.TurnCommandOf(t.Input)
	return command == thole.TurnCommandCompact
}

// Reply pairs a deferred ask with its answer.
type Reply struct {
	Ask    event.Ask
	Answer event.Answer
}

// Session is one live CLI conversation. One turn runs at a time. All methods are
// safe for concurrent use; Steer, Answer, Stop and Close may be called while Run
// is running.
type Session interface {
	// Run takes one turn to its end and sends every event to emit, in order, from
	// one goroutine at a time. emit blocks as backpressure: nothing is dropped. The last
	// event is always EventEnded, also after a crash of the CLI. Run returns an
	// error only if the turn did not begin; cancelling ctx stops the turn like
	// Stop followed by a kill. emit must not wait for another method of the
	// session. A session whose CLI died starts it again for the next turn.
	Run(ctx context.Context, turn Turn, emit func(event.Event)) error
	// Steer adds input to the running turn.
	Steer(ctx context.Context, input []thole.Input, clientID string) error
	// Answer settles a pending ask.
	Answer(ctx context.Context, ask thole.AskID, answer event.Answer) error
	// Defer parks a pending ask on disk and ends the turn with Ended.Deferred set,
	// where AskSurvives is validated.
	Defer(ctx context.Context, ask thole.AskID) error
	// Stop interrupts the running turn gracefully; Run then ends as interrupted.
	Stop(ctx context.Context) error
	// NativeID is the CLI's own session id, for Resume. Known after Open or, for
	// CLIs that name it late, after the first EventSession.
	NativeID() string
	// Close ends the CLI and every process it left behind. Idempotent.
	Close() error
}

// Background is implemented by sessions whose agent leaves commands running, within a turn
// and after it. Nothing is started for either call, and both may come during a turn.
type Background interface {
	// Background lists them, oldest first.
	Background(ctx context.Context) ([]BackgroundCommand, error)
	// EndBackground ends one of them, or all for "", and reports whether it ran.
	EndBackground(ctx context.Context, id string) (bool, error)
}

// BackgroundCommand is a command that an agent left running.
type BackgroundCommand struct {
	ID   string       `json:"id"`
	Item thole.ItemID `json:"item,omitempty"` // that began it; "" when that is not known any more
	Line string       `json:"line"`
	Dir  string       `json:"dir"`
}
