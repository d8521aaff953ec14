package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// execFlags are those of codex exec. What thole cannot do is refused, never ignored.
type execFlags struct {
	config, images                                   []string
	model, sandbox, dir, schema, last, color, origin string
	bypass, anywhere, ephemeral, events              bool
	newest, all                                      bool
}

func newExec(env *Env) *cobra.Command {
	f := &execFlags{}
	cmd := &cobra.Command{
		Use: "exec [PROMPT]", Short: "Run one turn as the exec command of Codex does, for scripts and the Codex SDK", Args: cobra.MaximumNArgs(1),
		Long: "Starts a thread that works in this directory, runs one turn to its end and prints the answer; with --json every event\n" +
			"in the form of that command. Nobody is asked: what the sandbox does not allow is declined. A PROMPT of - and none at all\n" +
			"read standard input. thole run is the command for people.",
		Example: "  thole exec --sandbox workspace-write \"mend the failing test\"\n  thole exec --json resume THREAD \"and now the docs\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.exec(cmd, f, "", args)
		},
	}
	f.flags(cmd)
	resume := &cobra.Command{
		Use: "resume [THREAD] [PROMPT]", Short: "Run the next turn of a thread", Args: cobra.MaximumNArgs(2),
		Long: "Runs one turn of a thread that is there already. --last takes the newest one of this directory.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.newest {
				id, err := env.newest(cmd, f)
				if err != nil {
					return err
				}
				return env.exec(cmd, f, id, args)
			}
			if len(args) == 0 {
				return thole.Errorf(thole.CodeInvalid, "which thread?").WithHint("name it, or say --last")
			}
			id, err := env.thread(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return env.exec(cmd, f, id, args[1:])
		},
	}
	f.flags(resume)
	resume.Flags().BoolVar(&f.newest, "last", false, "the newest thread of this directory")
	resume.Flags().BoolVar(&f.all, "all", false, "with --last: of all directories")
	cmd.AddCommand(resume)
	for _, name := range []string{"fork", "review"} {
		cmd.AddCommand(&cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true, Short: "Not supported",
			RunE: func(*cobra.Command, []string) error {
				return thole.Errorf(thole.CodeUnsupported, "thole exec has no %s", name).WithHint("the thread contract has it: thole app-server, thole tui")
			},
		})
	}
	return cmd
}

func (f *execFlags) flags(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringArrayVarP(&f.config, "config", "c", nil, "a `KEY=VALUE` of Codex's configuration, VALUE as TOML")
	s.StringSliceVarP(&f.images, "image", "i", nil, "image `FILE`s that go with the prompt")
	s.StringVarP(&f.model, "model", "m", "", "model, as thole provider list names it")
	s.StringVarP(&f.sandbox, "sandbox", "s", "", "read-only, workspace-write or danger-full-access (default read-only)")
	s.BoolVar(&f.bypass, "dangerously-bypass-approvals-and-sandbox", false, "full access without questions, inside of the executor as ever")
	s.StringVarP(&f.dir, "cd", "C", "", "work in this `DIR`ectory")
	s.BoolVar(&f.anywhere, "skip-git-repo-check", false, "work outside of a git repository too")
	s.BoolVar(&f.ephemeral, "ephemeral", false, "do not list the thread")
	s.StringVar(&f.schema, "output-schema", "", "`FILE` with a JSON schema that the answer must satisfy")
	s.StringVarP(&f.last, "output-last-message", "o", "", "`FILE` for the last message")
	s.StringVar(&f.color, "color", "auto", "always, never or auto")
	s.StringVar(&f.origin, "thread-source", "", "what the thread is recorded as")
	s.BoolVar(&f.events, "experimental-json", false, "the same as --json")
	for _, hidden := range []string{"color", "thread-source", "experimental-json"} {
		_ = s.MarkHidden(hidden)
	}
	for name, why := range map[string]string{
		"add-dir": "a thread works in one directory", "oss": "name a model with --model", "local-provider": "name a model with --model",
		"profile": "set it in your Codex configuration, which reaches the agent", "enable": "set it in your Codex configuration, which reaches the agent",
		"disable": "set it in your Codex configuration, which reaches the agent", "cyber-access-program": "it is a programme of Codex's own service",
	} {
		s.Var(&unsupported{why: why}, name, "")
		_ = s.MarkHidden(name)
	}
	for name, why := range map[string]string{
		"approve-for-me": "a person reviews what an agent asks for", "worktree": "thole run --repo . works on a branch of its own",
		"dangerously-bypass-hook-trust": "hooks of your configuration run only if thole's configuration says so", "strict-config": "unknown keys are always refused",
	} {
		s.Var(&unsupported{why: why, boolean: true}, name, "")
		s.Lookup(name).NoOptDefVal = "true"
		_ = s.MarkHidden(name)
	}
}

// unsupported is a flag of codex exec that thole refuses.
type unsupported struct {
	why     string
	boolean bool
}

func (u *unsupported) String() string { return "" }
func (u *unsupported) Type() string {
	if u.boolean {
		return "bool"
	}
	return "string"
}

func (u *unsupported) Set(v string) error {
	if u.boolean && v == "false" {
		return nil
	}
	return thole.Errorf(thole.CodeUnsupported, "thole exec does not support this: %s", u.why)
}

// exec runs one turn.
func (e *Env) exec(cmd *cobra.Command, f *execFlags, thread string, args []string) error {
	prompt := "-"
	if len(args) > 0 {
		prompt = args[0]
	}
	text, err := e.message(prompt)
	if err != nil {
		return err
	}
	turn, config, err := e.execTurn(f, text)
	if err != nil {
		return err
	}
	at, err := standing(f.dir)
	if err != nil {
		return err
	}
	if thread == "" && !f.anywhere && !inRepository(at) {
		return thole.Errorf(thole.CodeInvalid, "%s is in no git repository", at).WithHint("go to one, or say --skip-git-repo-check")
	}
	x := &execution{env: e, flags: f, json: e.JSON || f.events}
	ctx := cmd.Context()
	c, events, done, err := e.listen(ctx, func(r *appclient.Request, _ func(appclient.Notification)) { x.decide(r) })
	if err != nil {
		return x.broken(err)
	}
	defer done()
	x.c, x.events = c, events
	if err := x.open(ctx, thread, at, config, &turn); err != nil {
		return x.broken(fromContract(err))
	}
	x.say(map[string]any{"type": "thread.started", "thread_id": turn.ThreadID})
	if err := e.handKeys(ctx, turn.ThreadID, x.provider); err != nil {
		return x.broken(err)
	}
	if err := x.start(ctx, turn); err != nil {
		return x.broken(err)
	}
	x.say(map[string]any{"type": "turn.started"})
	return x.follow(ctx, *x.turn.Load())
}

// execTurn is the request that the flags make, and the configuration that goes with a thread.
func (e *Env) execTurn(f *execFlags, text string) (p app.TurnStartParams, config map[string]any, err error) {
	p.Input = appclient.Text(text)
	for _, file := range f.images {
		path, err := filepath.Abs(file)
		if err != nil {
			return p, nil, thole.Errorf(thole.CodeInvalid, "--image %s: %w", file, err)
		}
		p.Input = append(p.Input, app.UserInput{Type: "localImage", Path: path})
	}
	if p.OutputSchema, err = e.outputSchema(f.schema); err != nil {
		return p, nil, err
	}
	config = map[string]any{}
	for _, pair := range f.config {
		key, raw, ok := strings.Cut(pair, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return p, nil, thole.Errorf(thole.CodeInvalid, "--config %s is not KEY=VALUE", pair)
		}
		config[key] = tomlValue(raw)
	}
	sandbox := f.sandbox
	if sandbox == "" {
		sandbox, _ = config["sandbox_mode"].(string)
	}
	if f.bypass {
		sandbox = "danger-full-access"
	}
	f.sandbox = cmp.Or(sandbox, "read-only")
	policy := map[string]string{"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess"}[f.sandbox]
	if policy == "" {
		return p, nil, thole.Errorf(thole.CodeInvalid, "unknown sandbox %q", f.sandbox).WithHint("use read-only, workspace-write or danger-full-access")
	}
	// As in codex exec nobody is asked, whatever the configuration says.
	delete(config, "approval_policy")
	delete(config, "sandbox_mode")
	p.ApprovalPolicy = json.RawMessage(`"never"`)
	p.SandboxPolicy = &app.SandboxPolicy{Type: policy}
	if f.sandbox == "workspace-write" {
		network, _ := config["sandbox_workspace_write.network_access"].(bool)
		p.SandboxPolicy.NetworkAccess, _ = json.Marshal(network)
	}
	delete(config, "sandbox_workspace_write.network_access")
	set := func(dst **string, v string) {
		if v != "" {
			*dst = &v
		}
	}
	effort, _ := config["model_reasoning_effort"].(string)
	set(&p.Effort, effort)
	set(&p.Model, f.model)
	return p, config, nil
}

// tomlValue reads a value as TOML, or takes it as it is.
func tomlValue(raw string) any {
	var doc map[string]any
	if _, err := toml.Decode("v = "+raw, &doc); err == nil {
		return doc["v"]
	}
	return raw
}

// execution is one turn on its way.
type execution struct {
	env      *Env
	flags    *execFlags
	c        *appclient.Client
	events   <-chan appclient.Notification
	json     bool
	thread   string
	provider string
	items    map[string]string // ids of items as they are printed
	usage    app.TokenUsage
	todos    string // the id of the list, once there is one
	steps    []app.PlanStep
	last     string
	// turn is the one that this program started, nil before. It is written before anything is
	// handled that the server sends of that turn.
	turn atomic.Pointer[string]
}

// start begins the turn. A thread that is at work keeps the turn that it has, and who
// started that one answers what it asks.
func (x *execution) start(ctx context.Context, p app.TurnStartParams) error {
	done := make(chan error, 1)
	err := x.c.Go(ctx, "thole/turn/startIfIdle", p, func(raw json.RawMessage, err error) {
		var got app.TurnResult
		if err == nil {
			err = strictjson.Unmarshal(raw, &got)
		}
		if err == nil {
			x.turn.Store(&got.Turn.ID)
		}
		done <- err
	})
	if err != nil {
		return fromContract(err)
	}
	select {
	case err = <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err = fromContract(err); thole.CodeOf(err) == thole.CodeBusy {
		return thole.Errorf(thole.CodeBusy, "%w", err).WithHint("thole thread wait %s waits for its end, thole thread send gives the running turn a message", p.ThreadID)
	}
	return err
}

// open makes the thread, or subscribes to the one that is there.
func (x *execution) open(ctx context.Context, thread, dir string, config map[string]any, turn *app.TurnStartParams) error {
	raw, err := json.Marshal(config)
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "--config: %w", err)
	}
	settings := app.Settings{Model: turn.Model, ApprovalPolicy: turn.ApprovalPolicy}
	var v app.ThreadView
	if thread == "" {
		p := app.ThreadStartParams{Settings: settings, Sandbox: &x.flags.sandbox, Config: raw, Ephemeral: &x.flags.ephemeral,
			Source: &app.SourceChoice{Kind: string(thole.SourceHere), Dir: dir}}
		if x.flags.origin != "" {
			p.ThreadSource = &x.flags.origin
		}
		v, err = x.c.StartThread(ctx, p)
	} else {
		var out app.ThreadResumeResult
		err = x.c.Call(ctx, "thread/resume", app.ThreadResumeParams{ThreadID: thread, Settings: settings, Sandbox: &x.flags.sandbox, Config: raw, ExcludeTurns: true}, &out)
		v = out.ThreadView
	}
	if err != nil {
		return err
	}
	turn.ThreadID, x.thread, x.provider, x.items = v.Thread.ID, v.Thread.ID, v.ModelProvider, map[string]string{}
	return nil
}

// decide answers what the agent asks for in this program's turn, because nobody else will.
// What another turn asks, which a thread that is resumed sends too, is left to its people.
// An agent that has no sandbox of its own asks before it runs a command or edits a file as
// the executor's sandbox allows: that is granted. Everything else is declined.
func (x *execution) decide(r *appclient.Request) {
	var p struct {
		TurnID string       `json:"turnId"`
		Thole  app.AskExtra `json:"thole"`
	}
	if strictjson.Unmarshal(r.Params, &p) != nil {
		return
	}
	if mine := x.turn.Load(); mine == nil || *mine != p.TurnID {
		return
	}
	switch r.Method {
	case "item/commandExecution/requestApproval", "item/fileChange/requestApproval":
		verdict := `"decline"`
		kind := event.AskKind(p.Thole.Kind) // other tools are asked for in this form too
		if x.flags.sandbox != "read-only" && (kind == event.AskCommand || kind == event.AskFileChange) {
			verdict = `"accept"`
		}
		_ = r.Reply(app.ApprovalAnswer{Decision: json.RawMessage(verdict)})
	case "item/permissions/requestApproval":
		_ = r.Reply(app.PermissionsAnswer{Permissions: json.RawMessage("{}")})
	case "item/tool/requestUserInput":
		_ = r.Reply(app.UserInputAnswer{Answers: map[string]app.AnswerList{}})
	case "mcpServer/elicitation/request":
		_ = r.Reply(app.ElicitationAnswer{Action: "decline"})
	case "item/tool/call":
		_ = r.Reply(app.ToolCallAnswer{ContentItems: []app.ToolContent{{Type: app.ToolText, Text: "nobody serves this tool"}}})
	}
}

// goodbye is how long an interrupted turn may take to end.
const goodbye = 10 * time.Second

// follow prints events until the turn is over.
func (x *execution) follow(ctx context.Context, turn string) error {
	done := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case n := <-x.events:
			over, err := x.show(n, turn)
			if over {
				return errors.Join(err, x.keep())
			}
		case <-done: // a caller that ends this program ends the turn
			done, late = nil, time.After(goodbye)
			_ = x.c.Interrupt(context.WithoutCancel(ctx), x.thread, turn)
		case <-late:
			return ctx.Err()
		case <-x.c.Done():
			return x.broken(thole.Errorf(thole.CodeUnavailable, "the connection ended: %w", orClosed(x.c.Err())).
				WithHint("the turn goes on: thole thread tail %s follows it", x.thread))
		}
	}
}

// keep writes the last message where it was asked for.
func (x *execution) keep() error {
	if !x.json && x.last != "" {
		putln(x.env.Out, x.last)
	}
	if x.flags.last == "" {
		return nil
	}
	if err := os.WriteFile(x.flags.last, []byte(x.last), 0o644); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "--output-last-message: %w", err)
	}
	return nil
}

// broken reports an error that comes before or instead of a turn's end.
func (x *execution) broken(err error) error {
	if err != nil {
		x.say(map[string]any{"type": "error", "message": err.Error()})
	}
	return err
}

// say prints an event for programs.
func (x *execution) say(e map[string]any) {
	if x.json {
		_ = json.NewEncoder(x.env.Out).Encode(e)
	}
}

// note prints a line for people.
func (x *execution) note(parts ...any) {
	if !x.json {
		putln(x.env.Err, parts...)
	}
}

// newest is the newest thread of the directory.
func (e *Env) newest(cmd *cobra.Command, f *execFlags) (id string, err error) {
	at, err := standing(f.dir)
	if err != nil {
		return "", err
	}
	one, order := 1, "updated_at"
	p := app.ThreadListParams{PageParams: app.PageParams{Limit: &one}, SortKey: &order}
	if !f.all {
		p.Cwd, _ = json.Marshal(at)
	}
	return id, e.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
		var page app.ThreadListResult
		if err := c.Call(ctx, "thread/list", p, &page); err != nil {
			return err
		}
		if len(page.Data) == 0 {
			return thole.Errorf(thole.CodeNotFound, "no thread works in %s", at).WithHint("--all looks at every directory, thole thread list shows the threads")
		}
		id = page.Data[0].ID
		return nil
	})
}
