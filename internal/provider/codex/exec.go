package codex

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// execSession is the declared fallback: one `codex exec --json` process per
// turn. There is no way in while it runs, so nothing can be asked, steered or
// approved, and every message comes whole. What a profile would ask about is
// refused.
type execSession struct {
	provider *Provider
	base     session // for environment and home only
	cfg      provider.SessionConfig
	mode     mode

	runMu sync.Mutex // held by Run

	mu     sync.Mutex // guards what follows
	native string
	fork   bool // the next turn forks
	proc   *process.Process
	stop   bool
	closed bool
}

// openExec checks what can be checked without a turn: the process starts with one.
func (p *Provider) openExec(ctx context.Context, binary string, cfg provider.SessionConfig, m mode) (provider.Session, error) {
	s := &execSession{provider: p, cfg: cfg, mode: m, native: cfg.Resume, fork: cfg.Fork}
	s.base.cfg, s.base.binary, s.base.provider = cfg, binary, p
	if err := s.allowed(ctx, m); err != nil {
		return nil, err
	}
	if err := s.base.prepareHome(); err != nil {
		return nil, err
	}
	if cfg.Resume != "" {
		// Codex takes an unknown name for a new conversation, so the file must exist.
		files, _ := filepath.Glob(filepath.Join(cfg.Data, "sessions", "*", "*", "*", "rollout-*-"+cfg.Resume+".jsonl"))
		if !thole.ValidUUID(cfg.Resume) || len(files) == 0 {
			return nil, thole.Errorf(thole.CodeNotFound, "%w: %s", provider.ErrSessionLost, cfg.Resume)
		}
	}
	return s, nil
}

// allowed refuses profiles that only a sandbox could hold where there is none.
func (s *execSession) allowed(ctx context.Context, m mode) error {
	if m.sandbox == "danger-full-access" || s.provider.sandboxWorks(ctx, s.base.binary, s.base.environ()) {
		return nil
	}
	return thole.Errorf(thole.CodeUnsupported, "%w: codex exec cannot hold this profile without user namespaces", provider.ErrUnsupported).
		WithHint("use the app-server transport, or the profile full in an isolated executor")
}

// args of one turn. The prompt goes through stdin: it may be long and may begin
// with a dash.
func (s *execSession) args(m mode, model, effort, native string, fork bool) []string {
	args := append([]string{"exec", "--json", "--skip-git-repo-check"}, serverArgs()...)
	sandbox := m.sandbox
	if m.approval == "untrusted" {
		sandbox = "read-only" // nobody can be asked
	}
	args = append(args, "-c", "sandbox_mode="+sandbox)
	if model != "" {
		args = append(args, "-m", model)
	}
	if effort != "" {
		args = append(args, "-c", "model_reasoning_effort="+effort)
	}
	if s.cfg.Instructions != "" {
		quoted, _ := json.Marshal(s.cfg.Instructions)
		args = append(args, "-c", "developer_instructions="+string(quoted))
	}
	switch {
	case native != "" && fork:
		args = append(args, "fork", native)
	case native != "":
		args = append(args, "resume", native)
	}
	return append(args, "-")
}

// Run implements provider.Session.
func (s *execSession) Run(ctx context.Context, turn provider.Turn, emit func(event.Event)) error {
	if turn.Compacts() {
		return thole.Errorf(thole.CodeUnsupported, "%w: codex exec compacts by itself only", provider.ErrUnsupported)
	}
	if turn.Reply != nil {
		return thole.Errorf(thole.CodeUnsupported, "%w: codex exec asks nothing", provider.ErrUnsupported)
	}
	if !s.runMu.TryLock() {
		return thole.Errorf(thole.CodeBusy, "a turn is running in this session")
	}
	defer s.runMu.Unlock()
	m := s.mode
	if turn.Profile != "" {
		var err error
		if m, err = parseMode(turn.Profile); err == nil {
			err = s.allowed(ctx, m)
		}
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return thole.Errorf(thole.CodeConflict, "codex session is closed")
	}
	env := s.base.environ()
	model := first(turn.Model, s.cfg.Model)
	proc, err := process.Start(process.Spec{Path: s.base.binary, Dir: s.cfg.Dir, Env: env, Secrets: provider.Secrets(env), Box: s.cfg.Box,
		Args: s.args(m, model, first(turn.Effort, s.cfg.Effort), s.native, s.fork)})
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.proc, s.stop = proc, false
	s.mu.Unlock()
	defer proc.Stdout.Close()

	undo := context.AfterFunc(ctx, func() { _ = s.Stop(context.Background()) })
	defer undo()
	go func() { // ends when the process reads it or dies
		for _, in := range turn.Input {
			_, _ = proc.Stdin.Write([]byte(in.Text))
		}
		proc.Stdin.Close()
	}()
	d := &execDecoder{decoder: newDecoder(provider.NewEmitter(turn.ID, emit), "", s.cfg.Dir), before: s.totals()}
	d.model = model
	for lines := process.NewLines(proc.Stdout); ; {
		line, err := lines.Next()
		if err != nil {
			break
		}
		d.line(line)
		if d.thread != "" {
			s.began(d.thread)
		}
	}
	proc.Finish(closeGrace)
	s.ended(d, proc)
	return nil
}

func (s *execSession) began(native string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.native, s.fork = native, false
}

func (s *execSession) ended(d *execDecoder, proc *process.Process) {
	s.mu.Lock()
	stopped := s.stop || s.closed
	s.proc = nil
	s.mu.Unlock()
	if d.total != nil {
		s.keep(d.thread, *d.total)
	}
	if stopped {
		d.em.Interrupt()
	}
	switch {
	case d.done != nil:
		d.em.End(*d.done)
	case stopped:
		d.em.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
	default:
		te := provider.Failure(thole.ErrProviderCrashed, "codex ended in the middle of the turn: "+proc.Diagnosis(), 0)
		d.em.Error(*te)
		d.em.End(provider.Ended{Outcome: thole.OutcomeFailed, Error: te})
	}
}

// totals are what the conversation had used before: codex exec reports running
// totals, over resumes and forks too.
func (s *execSession) totals() (t wireTokens) {
	s.mu.Lock()
	native := s.native
	s.mu.Unlock()
	if data, err := os.ReadFile(s.usageFile(native)); native != "" && err == nil {
		_ = strictjson.Unmarshal(data, &t)
	}
	return t
}

func (s *execSession) keep(native string, t wireTokens) {
	if data, err := json.Marshal(t); err == nil {
		_ = os.WriteFile(s.usageFile(native), data, 0o600) // without it the next turn counts too much, no worse
	}
}

func (s *execSession) usageFile(native string) string {
	return filepath.Join(s.cfg.Data, ".thole-usage-"+strings.ReplaceAll(native, string(filepath.Separator), "_"))
}

// Steer implements provider.Session.
func (s *execSession) Steer(context.Context, []thole.Input, string) error {
	return provider.ErrUnsupported
}

// Answer implements provider.Session.
func (s *execSession) Answer(context.Context, thole.AskID, event.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return provider.ErrNoTurn
	}
	return provider.ErrSettled
}

// Defer implements provider.Session.
func (s *execSession) Defer(context.Context, thole.AskID) error { return provider.ErrUnsupported }

// Stop implements provider.Session: codex exec takes an interrupt for the user's.
func (s *execSession) Stop(context.Context) error {
	s.mu.Lock()
	proc := s.proc
	if proc == nil {
		s.mu.Unlock()
		return provider.ErrNoTurn
	}
	s.stop = true
	s.mu.Unlock()
	_ = proc.Signal(syscall.SIGINT)
	go func() {
		grace := time.NewTimer(stopGrace)
		defer grace.Stop()
		select {
		case <-proc.Done():
		case <-grace.C:
			proc.Kill()
		}
	}()
	return nil
}

// NativeID implements provider.Session.
func (s *execSession) NativeID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.native
}

// PID is the process id of the running turn's CLI.
func (s *execSession) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.Pid()
}

// Close implements provider.Session.
func (s *execSession) Close() error {
	s.mu.Lock()
	s.closed = true
	proc := s.proc
	s.mu.Unlock()
	if proc != nil {
		proc.Kill()
	}
	return s.base.linkAuth()
}
