// Package cli is the command line: one file per command. Commands parse, call
// one thing, print, and return errors; Main alone maps errors to exit codes and
// prints one line and one hint. Client commands talk to the home's owner process
// and open no store.
package cli

//go:generate go run github.com/tholehq/thole/scripts/gen/reference ../../docs commands configuration errors exit-codes manifest

import (
	"context"
	"encoding/json"
	"errors"
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
	Quiet    bool      // -q: ids alone
	Home     string    // --home, THOLE_HOME, ~/.thole
	Config   string    // --config of the commands that have it
	Server   string    // --server, THOLE_SERVER, the one that thole login chose

	saidOlder      bool
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
	completion(root)
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
		"acp": newACP, "app-server": newAppServer, "thread": newThread, "ps": newPS, "inbox": newInbox, "tui": newTUI, "run": newRun, "exec": newExec,
		"codex": newCodex, "desktop": newDesktop,
		"exec-server": newExecServer, "exec-as": newExecAs, "relay": newRelay,
		"executor": newExecutor,
		"box":      newInBox,
		"up":       newUp,
		"serve":    newServe,
		"service":  newService,
		"login":    newLogin, "logout": newLogout, "token": newToken, "secret": newSecret,
		"user": newUser, "department": newDepartment, "role": newRole, "grant": newGrant,
		"usage": newUsage, "budget": newBudget,
		"sweep":      newSweep,
		"doctor":     newDoctor,
		"config":     newConfig,
		"backup":     newBackup,
		"restore":    newRestore,
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
		case a == "--home", a == "--server":
			i++
		case a == "--json", a == "-q", a == "--quiet", strings.HasPrefix(a, "--json="), strings.HasPrefix(a, "--quiet="), strings.HasPrefix(a, "--home="), strings.HasPrefix(a, "--server="):
		default:
			return i
		}
	}
	return len(args)
}

// Tree is every command, for what describes them. It runs nothing.
func Tree() *cobra.Command { return newRoot(&Env{}) }

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "thole",
		Short:         "Owns agent threads, runs them in isolated executors, delivers background results into them",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().BoolVar(&env.JSON, "json", false, "print JSON")
	root.PersistentFlags().BoolVarP(&env.Quiet, "quiet", "q", false, "print only ids")
	root.PersistentFlags().StringVar(&env.Home, "home", "", "home directory (default $THOLE_HOME or ~/.thole)")
	root.PersistentFlags().StringVar(&env.Server, "server", "", "team server in place of the home: URL, or local for the home (default $THOLE_SERVER or the one of thole login)")
	root.Flags().Bool("version", false, "print the version")
	root.SetFlagErrorFunc(badFlag)
	for _, make := range commands() {
		root.AddCommand(make(env))
	}
	root.SetHelpCommand(newHelp(root))
	guardFirstRun(env, root)
	arrange(root)
	explain(root)
	refuseUnknown(root)
	showThreads(env, root)
	completeFlags(env, root)
	return root
}

// print writes v as one JSON line with --json, its ids with -q, otherwise what human
// writes. What could not be written is an error.
func (e *Env) print(v any, human func(w io.Writer)) error {
	out := &checked{w: e.Out}
	out.width, _ = ttyWidth(e.rawOut)
	switch {
	case e.JSON:
		if err := writeJSON(out, v); out.err == nil {
			return err
		}
	case e.Quiet:
		for _, id := range ids(v) {
			putln(out, id)
		}
	default:
		human(out)
	}
	if out.err != nil {
		return thole.Errorf(thole.CodeUnavailable, "write output: %w", out.err)
	}
	return nil
}

// printValue writes v with --json, else the one text that the command is for, with -q too.
func (e *Env) printValue(v any, text string) error {
	loud := *e
	loud.Quiet = false
	return loud.print(v, func(w io.Writer) { putln(w, text) })
}

// checked remembers the first error of its writer.
type checked struct {
	w     io.Writer
	err   error
	width int // of the terminal; 0: none
}

func (c *checked) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

func printError(e *Env, err error) {
	code, message := string(codeOf(err)), err.Error()
	if code == string(codeInterrupted) {
		message = code
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
