package codex

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// execSession is the declared fallback: one `codex exec --json` process per
// turn. There is no way in while it runs, so nothing can be asked, steered or
// approved, and every message comes whole. What a profile would ask about is
// refused.
type execSession struct {
	base.Session[*base.Process]
	provider *Provider

	// Owned by one turn at a time.
	fork bool     // the next turn forks
	args []string // of the turn's process
}

// openExec checks what can be checked without a turn: the process starts with one.
func (p *Provider) openExec(ctx context.Context, binary string, cfg provider.SessionConfig) (provider.Session, error) {
	s := &execSession{provider: p, fork: cfg.Fork}
	s.Init(options(cfg), binary, cfg, s)
	s.SetNative(cfg.Resume)
	if _, err := s.modeOf(ctx, cfg.Profile); err != nil {
		return nil, err
	}
	if err := prepareHome(cfg); err != nil {
		return nil, err
	}
	if len(cfg.Tools) > 0 {
		return nil, thole.Errorf(thole.CodeUnsupported, "%w: codex exec has no tools of a client", provider.ErrUnsupported).WithHint("use the app-server transport")
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

// modeOf refuses profiles that only a sandbox could hold where there is none.
func (s *execSession) modeOf(ctx context.Context, p thole.Profile) (mode, error) {
	m, err := parseMode(p)
	if s.Cfg.Box != nil && err == nil { // which holds what a sandbox would, but asks nobody
		if m.boxed = true; m.approval == "untrusted" || m.sandbox == "read-only" && !m.plan {
			return m, thole.Errorf(thole.CodeUnsupported, "%w: codex exec asks nobody", provider.ErrUnsupported).WithHint("use the app-server transport, or another profile")
		}
		return m, nil
	}
	if err != nil || m.sandbox == "danger-full-access" || s.provider.sandboxWorks(ctx, s.Binary, environ(s.Cfg)) {
		return m, err
	}
	return m, thole.Errorf(thole.CodeUnsupported, "%w: codex exec cannot hold this profile without user namespaces", provider.ErrUnsupported).
		WithHint("use the app-server transport, or the profile full in an isolated executor")
}

// args of one turn. The prompt goes through stdin: it may be long and may begin
// with a dash.
func (s *execSession) turnArgs(m mode, t *base.Turn) ([]string, error) {
	args := append([]string{"exec", "--json", "--skip-git-repo-check"}, serverArgs(s.Cfg)...)
	sandbox := m.sandbox
	if m.approval == "untrusted" {
		sandbox = "read-only" // nobody can be asked
	}
	if m.boxed {
		sandbox = "danger-full-access"
	}
	args = append(args, "-c", "sandbox_mode="+sandbox)
	if t.Model != "" {
		args = append(args, "-m", t.Model)
	}
	if t.Effort != "" {
		args = append(args, "-c", "model_reasoning_effort="+t.Effort)
	}
	if s.Cfg.Instructions != "" {
		args = append(args, "-c", "developer_instructions="+tomlText(s.Cfg.Instructions))
	}
	if t.Schema != nil {
		path, err := s.putSchema(t.Schema)
		if err != nil {
			return nil, err
		}
		args = append(args, "--output-schema", path)
	}
	switch native := s.NativeID(); {
	case native != "" && s.fork:
		args = append(args, "fork", native)
	case native != "":
		args = append(args, "resume", native)
	}
	return append(args, "-"), nil
}

// schemaFile is where codex reads the schema of a turn's answer.
const schemaFile = ".thole-output-schema.json"

func (s *execSession) putSchema(schema []byte) (string, error) {
	files, err := base.OpenFiles(s.Cfg, s.Cfg.Data)
	if err != nil {
		return "", err
	}
	defer files.Close()
	return filepath.Join(s.Cfg.Data, schemaFile), files.Write(schemaFile, schema)
}

// execRun is one turn.
type execRun struct {
	*base.Turn
	s    *execSession
	d    *execDecoder
	proc *base.Process
	gone chan struct{} // closed when the process says no more
}

// Start brings the process of a turn.
func (s *execSession) Start(context.Context) (*base.Process, error) {
	proc, err := s.Launch(environ(s.Cfg), s.args)
	if err != nil {
		return nil, err
	}
	return &base.Process{Process: proc}, nil
}

// Prepare implements base.Driver.
func (s *execSession) Prepare(ctx context.Context, t *base.Turn) (base.Running, error) {
	if t.Compacts() {
		return nil, thole.Errorf(thole.CodeUnsupported, "%w: codex exec compacts by itself only", provider.ErrUnsupported)
	}
	if t.Reply != nil {
		return nil, thole.Errorf(thole.CodeUnsupported, "%w: codex exec asks nothing", provider.ErrUnsupported)
	}
	m, err := s.modeOf(ctx, t.Profile)
	if err != nil {
		return nil, err
	}
	if s.args, err = s.turnArgs(m, t); err != nil {
		return nil, err
	}
	r := &execRun{Turn: t, s: s, d: &execDecoder{decoder: newDecoder(t.Em, "", s.Cfg.Dir), before: s.totals()}, gone: make(chan struct{})}
	r.d.model = t.Model
	r.proc, err = s.Alive(ctx)
	return r, err
}

// Begin gives the process its prompt and reads what it says.
func (r *execRun) Begin(context.Context) error {
	go func() { // ends when the process reads it or dies
		for _, in := range r.Input {
			_, _ = r.proc.Stdin.Write([]byte(in.Text))
		}
		r.proc.Stdin.Close()
	}()
	go func() {
		defer close(r.gone)
		defer r.proc.Stdout.Close()
		for lines := process.NewLines(r.proc.Stdout); ; {
			line, err := lines.Next()
			if err != nil {
				return
			}
			r.Lock.Act(func() {
				r.d.line(line)
				if r.d.thread != "" {
					r.s.SetNative(r.d.thread)
					r.s.fork = false
				}
			})
		}
	}()
	return nil
}

// Interrupt implements base.Running: codex exec takes the signal for the user's.
func (r *execRun) Interrupt(time.Duration) { _ = r.proc.Signal(syscall.SIGINT) }

// Kill implements base.Running.
func (r *execRun) Kill() { r.proc.Kill() }

// Gone implements base.Running.
func (r *execRun) Gone() <-chan struct{} { return r.gone }

// Lost is the end of every turn: the process ends with it.
func (r *execRun) Lost() string {
	r.proc.Finish(closeGrace)
	if r.d.done != nil {
		r.Lock.End(*r.d.done)
	}
	return r.proc.Diagnosis()
}

// Finish implements base.Running.
func (r *execRun) Finish(provider.Ended) {
	if r.d.total != nil {
		r.s.keep(r.d.thread, *r.d.total)
	}
}

// Steer implements base.Running.
func (r *execRun) Steer(context.Context, []thole.Input, string) error { return provider.ErrUnsupported }

// Answer implements base.Running.
func (r *execRun) Answer(context.Context, thole.AskID, event.Answer) error {
	return provider.ErrSettled
}

// totals are what the conversation had used before: codex exec reports running
// totals, over resumes and forks too.
func (s *execSession) totals() (t app.TokenUsage) {
	files, err := base.OpenFiles(s.Cfg, s.Cfg.Data)
	if err != nil {
		return t
	}
	defer files.Close()
	native := s.NativeID()
	if data, err := files.Read(usageFile(native)); native != "" && err == nil {
		_ = strictjson.Unmarshal(data, &t)
	}
	return t
}

func (s *execSession) keep(native string, t app.TokenUsage) {
	data, err := json.Marshal(t)
	if err != nil {
		return
	}
	if files, err := base.OpenFiles(s.Cfg, s.Cfg.Data); err == nil {
		_ = files.Write(usageFile(native), data) // without it the next turn counts too much, no worse
		files.Close()
	}
}

func usageFile(native string) string {
	return ".thole-usage-" + strings.ReplaceAll(native, string(filepath.Separator), "_")
}
