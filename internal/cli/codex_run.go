package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/provider/table"
)

func newCodex(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "codex",
		Aliases: []string{"cli"}, // its name in earlier versions
		Short:   "Manage Codex sessions that receive job results",
		Long: "A managed session is a Codex terminal on an app-server that thole holds. Results of jobs for its thread\n" +
			"(thole job submit --target cli) become turns in it when it is idle.",
	}
	cmd.AddCommand(newCodexRun(env), newCodexAttach(env), newCodexStatus(env), newCodexSessions(env))
	return cmd
}

// sessionFlags are what every way to open a session takes.
func sessionFlags(cmd *cobra.Command, p *wire.SessionOpenParams) {
	f := cmd.Flags()
	f.StringVar(&p.Trust, "auto-delivery-policy", strictSafe, "strict-safe: only results that need nothing, into a session that may do nothing; trusted-all: any (codex run asks in a terminal)")
	f.StringVar(&p.AllowApproval, "session-allows-approval", "auto", "whether delivered turns may ask you: auto, true or false")
	f.StringVar(&p.AllowNetwork, "session-allows-network", "auto", "whether delivered turns may use the network: auto, true or false")
	f.BoolVar(&p.PinPermissions, "pin-permissions", false, "tighten a session that allows more than its cap while a delivered turn runs, and put your settings back afterwards")
	f.StringVar(&p.AllowWrite, "session-allows-write-access", "auto", "whether delivered turns may write: auto, true or false")
}

func newCodexRun(env *Env) *cobra.Command {
	var p wire.SessionOpenParams
	var fresh bool
	var codex string
	cmd := &cobra.Command{
		Use:   "run (--bind-thread-id ID | --new-thread) [flags] [-- CODEX-ARGUMENTS]",
		Short: "Open a Codex session that receives job results",
		RunE: func(cmd *cobra.Command, args []string) error {
			if fresh == (p.ThreadID != "") {
				return thole.Errorf(thole.CodeInvalid, "say which thread: --bind-thread-id ID or --new-thread")
			}
			var err error
			if p.Program, err = findCodex(codex); err != nil {
				return err
			}
			if p.CodexHome, err = codexHome(); err != nil {
				return err
			}
			if err := makeCodexHome(p.CodexHome); err != nil {
				return err
			}
			if p.Dir, err = os.Getwd(); err != nil {
				return thole.Errorf(thole.CodeInvalid, "working directory: %w", err)
			}
			p.Kind, p.ClientPID, p.Env = "owned", os.Getpid(), os.Environ()
			if !cmd.Flags().Changed("auto-delivery-policy") {
				p.Trust = env.askTrust()
			}
			var s wire.CodexSession
			if err := env.ask(cmd.Context(), wire.SessionOpen, p, &s); err != nil {
				return err
			}
			if s.Drift != "" {
				warnDrift(env.Err, s)
			}
			watch, stop := context.WithCancel(cmd.Context())
			var watched sync.WaitGroup
			watched.Go(func() { env.watchDrift(watch, s) })
			code, err := foreground(env, p, s, args)
			stop()
			watched.Wait()
			env.leave(s)
			if err == nil && code != 0 {
				err = ExitError(code)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&p.ThreadID, "bind-thread-id", "", "an existing thread of this Codex home")
	cmd.Flags().BoolVar(&fresh, "new-thread", false, "the thread that the terminal makes")
	cmd.Flags().StringVar(&codex, "codex", "codex", "the codex program")
	sessionFlags(cmd, &p)
	return cmd
}

func findCodex(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "the codex program is not installed: %w", err).WithHint("%s", table.Of(table.Contract).Install)
	}
	return path, nil
}

// makeCodexHome makes the default home, as codex does when it first runs: an
// app-server with CODEX_HOME takes only a directory that exists.
func makeCodexHome(dir string) error {
	if os.Getenv("CODEX_HOME") != "" {
		if _, err := os.Stat(dir); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "the Codex home cannot be used: %w", err).WithHint("make that directory, or unset CODEX_HOME")
		}
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "make the Codex home: %w", err).WithHint("name another directory in CODEX_HOME")
	}
	return nil
}

// foreground runs the terminal. Keys that send signals go to it, not to us: it is
// in our process group.
func foreground(env *Env, p wire.SessionOpenParams, s wire.CodexSession, args []string) (int, error) {
	var argv []string
	if p.ThreadID != "" {
		argv = append(argv, "resume", p.ThreadID)
	}
	argv = append(append(argv, "--remote", s.Address), args...)
	child := exec.Command(p.Program, argv...)
	child.Stdin, child.Stdout, child.Stderr = env.In, env.rawOut, env.rawErr
	err := child.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 0, thole.Errorf(thole.CodeUnavailable, "run codex: %w", err)
	}
	return 0, nil
}

// leave reports to the daemon that the terminal has ended. If that fails the daemon
// finds out by itself.
func (e *Env) leave(s wire.CodexSession) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var after wire.CodexSession
	if err := e.ask(ctx, wire.SessionLeave, wire.SessionParams{SessionID: s.ID}, &after); err != nil {
		putln(e.Err, "thole: the session could not be closed now: "+err.Error())
		return
	}
	if after.Drift != "" {
		warnDrift(e.Err, after)
	}
	if after.ThreadID != "" {
		putf(e.Err, "thole: session of thread %s is %s\n", after.ThreadID, after.State)
	}
}
