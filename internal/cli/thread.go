package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/daemon/threads"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
)

func newThread(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "thread", Short: "Start, watch and steer agent threads"}
	cmd.AddCommand(newThreadList(env), newThreadStart(env), newThreadQueue(env))
	for _, of := range []func(*Env) *cobra.Command{
		newThreadShow, newThreadSend, newThreadTail, newThreadSetup, newThreadAnswer, newThreadInterrupt, newThreadArchive, newThreadUnarchive, newThreadTerminal,
		newThreadPort, newThreadNetwork, newThreadDiff, newThreadTranscript, newThreadShare, newThreadApply, newThreadPull, newThreadMerge, newThreadPush, newThreadPR, newThreadUndo, newThreadClose,
		newThreadDelete, newThreadFork, newThreadRename, newThreadWait, newThreadUsage,
	} {
		cmd.AddCommand(byThread(env, of(env)))
	}
	return cmd
}

// contract connects to the owner of the home, starting it if needed.
func (e *Env) contract(ctx context.Context, o appclient.Options) (*appclient.Client, error) {
	b, err := e.bridge(ctx)
	if err != nil {
		return nil, err
	}
	o.Name, o.Version, o.Experimental, o.Extended = "thole-cli", version.Version, true, true
	if b.server != nil {
		o.Token = b.server.Token
		return appclient.Dial(ctx, b.server.contract(), o)
	}
	return appclient.Dial(ctx, "unix://"+daemon.Socket(b.home), o)
}

// withContract runs f with a connection and gives errors their class back.
func (e *Env) withContract(cmd *cobra.Command, f func(ctx context.Context, c *appclient.Client) error) error {
	c, err := e.contract(cmd.Context(), appclient.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	return fromContract(f(cmd.Context(), c))
}

func fromContract(err error) error {
	var e *appclient.Error
	if !errors.As(err, &e) {
		return err
	}
	class := thole.Code(e.Class)
	if class == "" {
		class = thole.CodeInvalid
	}
	return &thole.Error{Code: class, Message: e.Message, Hint: e.Hint}
}

func newThreadList(env *Env) *cobra.Command {
	var p app.ThreadListParams
	var archived bool
	var search, dir string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List threads, the newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.Limit, p.Archived = &limit, &archived
			updated := "updated_at"
			p.SortKey = &updated
			if search != "" {
				p.SearchTerm = &search
			}
			if dir != "" {
				abs, err := filepath.Abs(dir)
				if err != nil {
					return thole.Errorf(thole.CodeInvalid, "--dir: %w", err)
				}
				p.Cwd, _ = json.Marshal(abs)
			}
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				r, err := c.ListThreads(ctx, p)
				if err != nil {
					return err
				}
				if err := env.nameStatus(ctx, r.Data, archived); err != nil {
					return err
				}
				return env.print(r.Data, func(w io.Writer) {
					switch {
					case len(r.Data) > 0:
						printThreads(w, r.Data)
					case archived || search != "" || dir != "":
						putln(w, "no such thread; thole thread list shows all")
					default:
						putln(w, `no thread yet; thole run "…" begins one`)
					}
				})
			})
		},
	}
	cmd.Flags().BoolVar(&archived, "archived", false, "list archived threads instead")
	cmd.Flags().StringVar(&search, "search", "", "only threads that hold this text")
	cmd.Flags().StringVar(&dir, "dir", "", "only threads whose agent works in this directory")
	cmd.Flags().IntVar(&limit, "limit", 25, "at most this many")
	return cmd
}

func printThreads(w io.Writer, list []app.Thread) {
	t := newTable(w)
	putf(t, "THREAD\tSTATUS\tAGENT\tUPDATED\tABOUT\n")
	for _, th := range list {
		about := th.Preview
		if th.Name != nil {
			about = *th.Name
		}
		putf(t, "%s\t%s\t%s\t%s\t%s\n", th.ID, statusText(th.Status), th.ModelProvider, time.Unix(th.UpdatedAt, 0).Format(time.DateTime), oneLine(about, 60))
	}
	_ = t.Flush()
}

// nameStatus gives threads their status in words. The contract does not say of a thread that
// rests whether it failed.
func (e *Env) nameStatus(ctx context.Context, list []app.Thread, archived bool) error {
	known := map[string]string{}
	if slices.ContainsFunc(list, func(t app.Thread) bool { return t.Status.Type == app.StatusNotLoaded }) {
		found, err := e.find(ctx, threads.FindParams{Archived: archived})
		if err != nil {
			return err
		}
		for _, t := range found {
			known[string(t.ID)] = t.Status
		}
	}
	for i, t := range list {
		list[i].Status.Type = plainStatus(t.Status.Type)
		if t.Status.Type == app.StatusNotLoaded {
			list[i].Status.Type = cmp.Or(known[t.ID], list[i].Status.Type)
		}
	}
	return nil
}

// plainStatus is a status of the contract in words.
func plainStatus(s string) string {
	switch s {
	case app.StatusSystemError:
		return threads.StatusFailed
	case app.TurnInProgress, app.StatusActive:
		return threads.StatusRunning
	case app.StatusNotLoaded:
		return threads.StatusIdle
	}
	return s
}

func statusText(s app.ThreadStatus) string {
	text := plainStatus(s.Type)
	for _, f := range s.ActiveFlags {
		switch f {
		case app.FlagWaitingOnApproval:
			text += ", waits for approval"
		case app.FlagWaitingOnInput:
			text += ", waits for an answer"
		}
	}
	return text
}

// oneLine is the beginning of a text, on one line.
func oneLine(s string, n int) string {
	out := make([]rune, 0, n)
	for _, r := range s {
		if len(out) == n {
			return string(out) + "…"
		}
		if r == '\n' || r == '\r' || r == '\t' {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}

func newThreadStart(env *Env) *cobra.Command {
	var start startFlags
	var asks askFlags
	var label string
	cmd := &cobra.Command{
		Use: "start [MESSAGE]", Short: "Start a thread, and send it a message", Args: cobra.MaximumNArgs(1),
		Long: "Makes a thread and prints its id. With a message it follows the turn to its end as thole thread send does. Inside a git\n" +
			"repository the agent gets a copy of it on a new branch; see thole run.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if label != "" {
				return thole.Errorf(thole.CodeInvalid, "--dir named a directory in which the agent did not work; it is gone").
					WithHint("--here -C %s works in that directory, --repo %s on a copy, --empty without files", label, label)
			}
			text := ""
			if len(args) == 1 {
				var err error
				if text, err = env.message(args[0]); err != nil {
					return err
				}
			}
			p, err := start.params(env, text)
			if err != nil {
				return err
			}
			return env.follow(cmd, asks, func(ctx context.Context, f *follower) (string, error) {
				v, err := start.begin(ctx, env, f, p)
				if err != nil || text == "" {
					return "", err
				}
				return f.send(ctx, v.Thread.ID, text, false)
			})
		},
	}
	start.flags(cmd)
	asks.flags(cmd)
	cmd.Flags().StringVar(&start.id, "id", "", "the thread's id, a UUID of your choice")
	cmd.Flags().StringVar(&label, "dir", "", "")
	_ = cmd.Flags().MarkHidden("dir")
	return cmd
}

// startFlags are how a thread is made.
type startFlags struct {
	source                   sourceFlags
	network                  reach
	id, name, model, profile string
}

func (s *startFlags) flags(cmd *cobra.Command) {
	s.source.flags(cmd)
	s.network.flags(cmd, "network")
	cmd.Flags().StringVar(&s.name, "name", "", "the thread's name (default: from the message)")
	cmd.Flags().Var((*modelName)(&s.model), "model", "agent or its model: AGENT, AGENT/MODEL, or a bare model of Codex (thole provider list shows them)")
	cmd.Flags().StringVar(&s.profile, "profile", "", "plan, ask, edit or full")
}

// params is the request that the flags make.
func (s *startFlags) params(env *Env, message string) (p app.ThreadStartParams, err error) {
	set := func(dst **string, v string) {
		if v != "" {
			*dst = &v
		}
	}
	set(&p.ThreadID, s.id)
	set(&p.Name, s.name)
	set(&p.Model, s.model)
	if err := env.chooseAway(&s.source); err != nil {
		return p, err
	}
	if p.Source, err = s.source.choose(cmp.Or(s.name, message)); err != nil {
		return p, err
	}
	return p, permissions(&p, s.profile)
}

// begin makes the thread and says which it is.
func (s *startFlags) begin(ctx context.Context, env *Env, f *follower, p app.ThreadStartParams) (app.ThreadView, error) {
	v, err := f.c.StartThread(ctx, p)
	if err != nil {
		return v, err
	}
	f.started(v)
	f.agent = v.Thread.ModelProvider
	if err := env.handKeys(ctx, v.Thread.ID, v.Thread.ModelProvider); err != nil {
		return v, err
	}
	if set := s.network.policy(); set != nil { // before anything runs
		err = env.ask(ctx, executors.MethodNetwork, executors.NetworkParams{Thread: thole.ThreadID(v.Thread.ID), Set: set}, nil)
	}
	return v, err
}

// permissions says a neutral profile in the contract's words.
func permissions(p *app.ThreadStartParams, profile string) error {
	pair, ok := profileWords(profile)
	if !ok {
		return errProfile(profile)
	}
	if profile != "" {
		p.ApprovalPolicy, _ = json.Marshal(pair[0])
		p.Sandbox = &pair[1]
	}
	return nil
}

// profileWords is a neutral profile in the contract's words, none for "".
func profileWords(profile string) (pair [2]string, ok bool) {
	pairs := map[string][2]string{
		"": {}, string(thole.ProfilePlan): {"never", "read-only"}, string(thole.ProfileAsk): {"untrusted", "workspace-write"},
		string(thole.ProfileEdit): {"on-request", "workspace-write"}, string(thole.ProfileFull): {"never", "danger-full-access"},
	}
	pair, ok = pairs[profile]
	return pair, ok
}

func errProfile(profile string) error {
	return thole.Errorf(thole.CodeInvalid, "unknown profile %q", profile).WithHint("use plan, ask, edit or full")
}

// newThreadClose saves and stops what a thread runs in. The thread stays; the
// next message wakes it.
func newThreadClose(env *Env) *cobra.Command {
	var p executors.CloseParams
	var wait, noWait bool
	cmd := &cobra.Command{
		Use: "close THREAD | --all", Short: "Save a thread's files and stop its executor; the next message wakes it", Args: cobra.MaximumNArgs(1),
		Long: "Asks for the thread's files to be saved and its executor to be stopped, after the turn that runs, and waits until that is done.\n" +
			"Then it says what happened. If the files cannot be saved it says why and exits with an error; the executor then keeps running. Ctrl-C ends the waiting, not what was asked for.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.All == (len(args) == 1) {
				return thole.Errorf(thole.CodeInvalid, "name one thread, or say --all").WithHint("thole thread list shows them")
			}
			if len(args) == 1 {
				p.Thread = thole.ThreadID(args[0])
			}
			ctx := cmd.Context()
			var asked executors.CloseResult
			if err := env.ask(ctx, executors.MethodCloseThread, p, &asked); err != nil {
				return err
			}
			if err := env.print(asked, func(w io.Writer) {
				for _, id := range asked.Threads {
					putln(w, "closing", id)
				}
				if len(asked.Threads) == 0 {
					putln(w, "no executor runs")
				}
			}); err != nil || noWait || !wait {
				return err
			}
			var failed error
			for _, id := range asked.Threads {
				err := env.awaitStop(ctx, id, asked.Asked)
				if failed = errors.Join(failed, err); err == nil {
					putln(env.Err, "thole: the files of thread", id, "are saved and its executor has stopped")
				}
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&p.All, "all", false, "all threads whose executors run")
	cmd.Flags().BoolVar(&p.Interrupt, "interrupt", false, "interrupt a turn that is under way instead of waiting for its end")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "ask for it and do not wait until it is done")
	cmd.Flags().BoolVar(&wait, "wait", true, "wait until it is done and say what happened")
	exclude(cmd, "wait", "no-wait")
	return cmd
}

// awaitStop waits until a thread's executor has stopped with its files saved.
func (e *Env) awaitStop(ctx context.Context, id thole.ThreadID, asked time.Time) error {
	var now executors.Saved
	if err := e.ask(ctx, executors.MethodSaved, executors.SavedParams{Thread: id}, &now); err != nil {
		return err
	}
	if now.Running != "" {
		putln(e.Err, "thole: a turn runs; the executor stops after it")
	}
	return e.ask(ctx, executors.MethodStopped, executors.StoppedParams{Thread: id, Asked: asked}, nil)
}

func newThreadDelete(env *Env) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete THREAD", Short: "Delete a thread with its history", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return thole.Errorf(thole.CodeInvalid, "a deleted thread is gone for good").WithHint("add --yes, or keep it with: thole thread archive %s", args[0])
			}
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				if err := c.Call(ctx, "thread/delete", app.ThreadParams{ThreadID: args[0]}, nil); err != nil {
					return err
				}
				return env.did(map[string]string{"deleted": args[0]}, "thread %s is deleted", args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "really delete it")
	return cmd
}
