package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

func newProviderTry(env *Env) *cobra.Command {
	var name, profile, dir, data string
	var cfg provider.SessionConfig
	cmd := &cobra.Command{
		Use:   "try --provider NAME PROMPT",
		Short: "Run one turn on an agent CLI and show it, answering its questions here",
		Long: "Run one turn on an agent CLI in this terminal, without a thread and without isolation.\n" +
			"What the agent says is streamed; approvals and questions are answered at the prompt.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := env.provider(name)
			if err != nil {
				return err
			}
			cfg.Profile = thole.Profile(profile)
			return env.try(cmd.Context(), p, cfg, dir, data, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "provider", table.Contract, "the agent CLI: see thole provider list")
	f.StringVar(&cfg.Model, "model", "", "the model (default: the CLI's own)")
	f.StringVar(&cfg.Effort, "effort", "", "the reasoning effort (default: the model's own)")
	f.StringVar(&profile, "profile", string(thole.ProfileAsk), "plan, ask, edit, full, or one of the CLI's own modes")
	f.StringVar(&dir, "dir", ".", "the workspace")
	f.StringVar(&data, "data", "", "keep the CLI's data in this directory (default: a temporary one)")
	f.StringVar(&cfg.Resume, "resume", "", "continue this session of the CLI; needs --data")
	f.StringToStringVar(&cfg.Options, "option", nil, "settings of this provider alone, as key=value")
	return cmd
}

// try runs one turn with the user's own login.
func (e *Env) try(ctx context.Context, p provider.Provider, cfg provider.SessionConfig, dir, data, prompt string) error {
	var err error
	if cfg.Dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(cacheDir(), "thole-try-")
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	cfg.Data, cfg.Auth = filepath.Join(scratch, "data"), filepath.Join(scratch, "auth")
	if data != "" {
		if cfg.Data, err = filepath.Abs(data); err != nil {
			return err
		}
	}
	userHome, _ := os.UserHomeDir()
	set, err := e.providersConfig()
	if err != nil {
		return err
	}
	grant, err := provider.Login{Home: userHome, Getenv: os.Getenv, HandIn: set.HandInLogins}.For(ctx, provider.For{Provider: p.Name()})
	if err != nil {
		return err
	}
	if err := grant.Place(cfg.Auth); err != nil {
		return err
	}
	cfg.Env = map[string]string{"HOME": userHome, "PATH": os.Getenv("PATH"), "LANG": "C.UTF-8", "TERM": "dumb"}
	for k, v := range grant.Env {
		cfg.Env[k] = v
	}
	session, err := p.Open(ctx, cfg)
	if err != nil {
		return err
	}
	ended, err := e.play(ctx, session, prompt)
	err = joinFirst(err, session.Close())
	if err != nil {
		return err
	}
	switch {
	case ended.Outcome == thole.OutcomeInterrupted:
		return context.Canceled
	case ended.Error != nil:
		return (&thole.Error{Code: thole.CodeUnavailable, Message: "the turn failed: " + ended.Error.Message}).WithHint("%s", ended.Error.Hint)
	}
	return nil
}

// cacheDir is where scratch data may hold programs: codex refuses to link its
// helpers below /tmp.
func cacheDir() string {
	if dir, err := os.UserCacheDir(); err == nil && os.MkdirAll(dir, 0o700) == nil {
		return dir
	}
	return ""
}

func joinFirst(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// play shows the turn. The first interrupt of the user stops it gracefully.
func (e *Env) play(ctx context.Context, s provider.Session, prompt string) (provider.Ended, error) {
	show := &turnPrinter{out: e.Out, in: bufio.NewReader(e.In), fresh: true}
	var ended provider.Ended
	asks := make(chan event.Ask, 16)
	// Answering reads the terminal and must not hold up the stream. A question that
	// the CLI withdrew leaves the reader waiting for a line; it ends with the program.
	go func() {
		for ask := range asks {
			if err := s.Answer(ctx, ask.ID, show.answer(ask)); err != nil {
				putln(e.Err, "answer:", err)
			}
		}
	}()
	enc := json.NewEncoder(e.Out)
	err := s.Run(ctx, provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Text(prompt)}, func(ev event.Event) {
		if ev.Kind == event.TurnEnded {
			ended = provider.EndedOf(ev)
		}
		if e.JSON {
			_ = enc.Encode(ev)
		} else {
			show.event(ev)
		}
		if ev.Kind == event.AskRequested {
			asks <- *ev.Ask
		}
	})
	close(asks)
	return ended, err
}
