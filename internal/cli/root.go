// Package cli is the command line: one file per command. Commands parse, call
// one thing, print, and return errors; Main alone maps errors to exit codes and
// prints one line and one hint. Client commands talk to the home's owner process
// and open no store.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/plain"
)

// Env is what every command gets: the standard streams and the global flags.
type Env struct {
	In       io.Reader
	Out, Err io.Writer // show what a terminal would obey or hide
	JSON     bool      // --json
	Home     string    // --home, THOLE_HOME, ~/.thole

	rawOut, rawErr io.Writer // for other programs, protocols and terminals alone
}

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env, flush := newEnv(in, out, errw)
	defer flush()
	log.SetOutput(env.Err) // of libraries
	if i := nameAt(args); i < len(args) && args[i] == "--version" {
		args = slices.Replace(slices.Clone(args), i, i+1, "version") // the command, with its --json
	}
	root := newRoot(env)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	err := root.ExecuteContext(ctx)
	var quiet ExitError
	if err != nil && !errors.As(err, &quiet) {
		printError(env, err)
	}
	return exitCode(err)
}

func newEnv(in io.Reader, out, errw io.Writer) (env *Env, flush func()) {
	o, e := &plain.Writer{W: out}, &plain.Writer{W: errw}
	return &Env{In: in, Out: o, Err: e, rawOut: out, rawErr: errw}, func() { _, _ = o.Flush(), e.Flush() }
}

// commands are all commands by name.
func commands() map[string]func(*Env) *cobra.Command {
	return map[string]func(*Env) *cobra.Command{
		"version": newVersion,
		"job":     newJob, "batch": newBatch, "artifact": newArtifact, "audit": newAudit, "check": newCheck, "daemon": newDaemon,
		"app-server": newAppServer, "thread": newThread, "tui": newTUI, "run": newRun,
		"codex":       newCodex,
		"exec-server": newExecServer, "exec-as": newExecAs,
		"executor": newExecutor,
		"box":      newInBox,
		"up":       newUp,
		"service":  newService,
		"login":    newLogin, "token": newToken, "secret": newSecret,
		"usage": newUsage, "budget": newBudget,
		"sweep":      newSweep,
		"doctor":     newDoctor,
		"config":     newConfig,
		"db":         newDB,
		"demo-model": newDemoModel,
		"provider":   newProvider,
		"manifest":   newManifest, "workspace": newWorkspace,
	}
}

// nameAt is where arguments name a command, after global flags; their number if
// they do not.
func nameAt(args []string) int {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--home":
			i++
		case a == "--json", strings.HasPrefix(a, "--json="), strings.HasPrefix(a, "--home="):
		default:
			return i
		}
	}
	return len(args)
}

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "thole",
		Short:         "Owns agent threads, runs them in isolated executors, delivers background results into them",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().BoolVar(&env.JSON, "json", false, "print JSON")
	root.PersistentFlags().StringVar(&env.Home, "home", "", "home directory (default $THOLE_HOME or ~/.thole)")
	root.Flags().Bool("version", false, "print the version")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return (&thole.Error{Code: thole.CodeInvalid, Err: err}).WithHint("run the command with --help to see its flags")
	})
	for _, make := range commands() {
		root.AddCommand(make(env))
	}
	root.SetHelpCommand(newHelp(root))
	refuseUnknown(root)
	return root
}

// print writes v as one JSON line with --json, otherwise what human writes. What
// could not be written is an error.
func (e *Env) print(v any, human func(w io.Writer)) error {
	out := &checked{w: e.Out}
	if e.JSON {
		if err := json.NewEncoder(out).Encode(v); out.err == nil {
			return err
		}
	} else {
		human(out)
	}
	if out.err != nil {
		return thole.Errorf(thole.CodeUnavailable, "write output: %w", out.err)
	}
	return nil
}

// checked remembers the first error of its writer.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

func printError(e *Env, err error) {
	code, message := string(thole.CodeOf(err)), err.Error()
	if errors.Is(err, context.Canceled) {
		code, message = "interrupted", "interrupted"
	}
	if e.JSON {
		_ = json.NewEncoder(e.Err).Encode(map[string]any{"error": map[string]string{"code": code, "message": message, "hint": thole.HintOf(err)}})
		return
	}
	putln(e.Err, "thole:", hang(message))
	if hint := thole.HintOf(err); hint != "" {
		putln(e.Err, "  try:", hang(hint))
	}
}

// ExitError ends the program with a code of its own, for commands that pass on
// another program's exit status. It prints nothing.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exitCode is the documented table (docs/operate/exit-codes.md).
func exitCode(err error) int {
	var exit ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.Is(err, context.Canceled):
		return 130
	}
	switch thole.CodeOf(err) {
	case thole.CodeInvalid:
		return 2
	case thole.CodeNotFound, thole.CodeGone:
		return 3
	case thole.CodeConflict, thole.CodeBudgetExceeded:
		return 4
	case thole.CodeBusy, thole.CodeOverloaded:
		return 5
	case thole.CodeForbidden, thole.CodeUnauthorized:
		return 6
	case thole.CodeUnavailable, thole.CodeUnsupported:
		return 7
	case thole.CodeHeld:
		return 8
	default:
		return 1
	}
}
