// Package testprovider is the built-in provider "test": a deterministic agent
// that does what the prompt's directives say (those of internal/modelsim, plus
// crash), with no CLI, no model and no network. Tests of everything above the
// port and `thole up --demo` run on it.
//
// It is a real provider: commands run, files change, profiles decide, asks wait,
// sessions resume from their data directory, and it passes the conformance
// suite. It refuses nothing but what its profile forbids.
package testprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// Name is the provider's name.
const Name = "test"

// Provider makes scripted sessions.
type Provider struct{ demo bool }

// New returns the provider.
func New() *Provider { return &Provider{} }

// Demo returns the provider that a person tries thole with: a prompt without directives is
// taken as a wish, as the scripted model takes it in the sample repository.
func Demo() *Provider { return &Provider{demo: true} }

// Name implements provider.Provider.
func (*Provider) Name() string { return Name }

// Probe implements provider.Provider.
func (*Provider) Probe(context.Context) provider.Info {
	yes := provider.Validated
	return provider.Info{
		Name: Name, Title: "Scripted agent", Version: "1", Available: true,
		Models:   []provider.Model{{ID: "script", Title: "Scripted", Default: true}},
		Profiles: provider.Profiles(Name), Modes: provider.Modes(Name),
		Capabilities: provider.Capabilities{
			Resume: yes, Fork: yes, Steer: yes, HumanLoop: yes, AskSurvives: yes, ToolApproval: yes,
			TodoStream: yes, PlanMode: yes, Usage: yes, Cost: yes, ToolInputFlow: yes, Compact: yes,
		},
	}
}

// Open implements provider.Provider.
func (p *Provider) Open(_ context.Context, cfg provider.SessionConfig) (provider.Session, error) {
	s := &session{cfg: cfg, demo: p.demo, profile: provider.Neutral(Name, cfg.Profile), always: map[string]bool{}}
	switch {
	case cfg.Resume == "":
		s.state.ID = thole.NewID[string](time.Now())
	default:
		data, err := os.ReadFile(s.file(cfg.Resume))
		if err != nil {
			return nil, thole.Errorf(thole.CodeNotFound, "%w: %s", provider.ErrSessionLost, cfg.Resume)
		}
		if err := json.Unmarshal(data, &s.state); err != nil {
			return nil, thole.Errorf(thole.CodeInternal, "read session %s: %w", cfg.Resume, err)
		}
		if cfg.Fork {
			s.state.ID = thole.NewID[string](time.Now())
		}
	}
	if s.profile == "" {
		return nil, thole.Errorf(thole.CodeInvalid, "open test session: unknown profile %q", cfg.Profile)
	}
	if cfg.Data == "" {
		return nil, thole.Errorf(thole.CodeInvalid, "open test session: no data directory")
	}
	return s, s.save()
}

// state is what survives the process.
type state struct {
	ID      string   `json:"id"`
	Prompts []string `json:"prompts"`
	// Rest are the directives after a deferred ask.
	Rest []string `json:"rest,omitempty"`
}

// session is one scripted conversation.
type session struct {
	cfg     provider.SessionConfig
	profile thole.Profile
	demo    bool

	mu     sync.Mutex // guards what follows
	state  state
	always map[string]bool
	run    *run // the running turn
	closed bool
}

func (s *session) file(id string) string { return filepath.Join(s.cfg.Data, "test", id+".json") }

func (s *session) save() error {
	data, err := json.Marshal(s.state)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.file(s.state.ID)), 0o700)
	}
	if err == nil {
		err = os.WriteFile(s.file(s.state.ID), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("save test session: %w", err)
	}
	return nil
}

// NativeID implements provider.Session.
func (s *session) NativeID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.ID
}

// Run implements provider.Session.
func (s *session) Run(ctx context.Context, turn provider.Turn, emit func(event.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{session: s, ctx: ctx, cancel: cancel, em: provider.NewEmitter(turn.ID, emit), profile: s.profile, schema: turn.Schema,
		asks: map[thole.AskID]chan event.Answer{}, steers: make(chan steer, 64), deferred: make(chan thole.AskID, 1)}
	if turn.Profile != "" {
		if r.profile = provider.Neutral(Name, turn.Profile); r.profile == "" {
			return thole.Errorf(thole.CodeInvalid, "run turn: unknown profile %q", turn.Profile)
		}
	}
	for _, in := range turn.Input {
		r.prompt += in.Text
	}
	s.mu.Lock()
	if s.closed || s.run != nil {
		s.mu.Unlock()
		return thole.Errorf(thole.CodeConflict, "run turn: the session is closed or busy")
	}
	s.run = r
	s.state.Prompts = append(s.state.Prompts, r.prompt)
	rest := s.state.Rest
	s.state.Rest = nil
	err := s.save()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.run = nil
		s.mu.Unlock()
	}()
	if err != nil {
		return err
	}
	r.begin(turn, rest)
	return nil
}

func (s *session) running() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// Steer implements provider.Session.
func (s *session) Steer(ctx context.Context, input []thole.Input, clientID string) error {
	r := s.running()
	if r == nil {
		return provider.ErrNoTurn
	}
	select {
	case r.steers <- steer{input, clientID}:
		return nil
	case <-r.ctx.Done():
		return provider.ErrNoTurn
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Answer implements provider.Session.
func (s *session) Answer(_ context.Context, ask thole.AskID, answer event.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return provider.ErrNoTurn
	}
	ch, ok := s.run.asks[ask]
	if !ok {
		return provider.ErrSettled
	}
	delete(s.run.asks, ask)
	ch <- answer // holds one
	return nil
}

// Defer implements provider.Session.
func (s *session) Defer(_ context.Context, ask thole.AskID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return provider.ErrNoTurn
	}
	if _, ok := s.run.asks[ask]; !ok {
		return provider.ErrSettled
	}
	delete(s.run.asks, ask)
	s.run.deferred <- ask // holds one, and there is one ask at a time
	return nil
}

// Stop implements provider.Session.
func (s *session) Stop(context.Context) error {
	r := s.running()
	if r == nil {
		return provider.ErrNoTurn
	}
	r.cancel()
	return nil
}

// Close implements provider.Session.
func (s *session) Close() error {
	s.mu.Lock()
	s.closed = true
	r := s.run
	s.mu.Unlock()
	if r != nil {
		r.cancel()
	}
	return nil
}
