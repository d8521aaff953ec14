package testprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

type steer struct {
	input    []thole.Input
	clientID string
}

// run is one turn on its way. Everything but asks, steers and deferred belongs
// to Run's goroutine.
type run struct {
	session *session
	ctx     context.Context
	cancel  context.CancelFunc
	em      *provider.Emitter
	profile thole.Profile

	prompt string
	rest   string // the prompt without its directives
	ops    []op
	result string // of the newest tool
	usage  thole.Usage
	pause  time.Duration
	chunk  int
	items  int

	asks     map[thole.AskID]chan event.Answer // guarded by session.mu
	steers   chan steer
	heard    int // steers that have ended no wait yet
	deferred chan thole.AskID

	now   op              // which is being done
	reply *provider.Reply // allows what is asked for again, once

	schema json.RawMessage // of the turn's answer
}

// errStop ends the script early with an outcome that was set already.
type stopScript struct{ ended provider.Ended }

func (stopScript) Error() string { return "script stopped" }

func (r *run) begin(turn provider.Turn, rest []string) {
	r.em.Session(r.session.NativeID())
	r.ops, r.rest = r.session.parse(r.prompt)
	if turn.Reply != nil {
		r.ops, r.rest = nil, ""
		r.em.Ask(turn.Reply.Ask)
		r.em.Resolve(turn.Reply.Ask.ID, &turn.Reply.Answer)
		r.result = answerText(turn.Reply.Answer)
		for _, line := range rest {
			verb, arg, _ := strings.Cut(line, " ")
			r.ops = append(r.ops, op{verb, arg})
		}
		if turn.Reply.Ask.Kind.Approval() { // it forgot what it asked for, as CLIs do
			r.reply = turn.Reply
			if said, _ := directives(turn.Reply.Prose()); len(said) > 0 {
				r.ops = said
			} else if d := turn.Reply.Answer.Decision; len(r.ops) > 0 && (d == event.DecisionDeny || d == event.DecisionCancel) {
				r.ops = r.ops[1:]
			}
		}
	}
	r.em.StepStarted()
	if turn.Compacts() {
		r.ops = nil
		r.em.Complete(event.Item{ID: r.nextID("compaction"), Kind: event.ItemCompaction})
	}
	for {
		r.takeSteers()
		if len(r.ops) == 0 {
			break
		}
		next := r.ops[0]
		r.ops, r.now = r.ops[1:], next
		if err := r.do(next); err != nil {
			r.end(err)
			return
		}
	}
	r.report()
	r.em.End(provider.Ended{Outcome: thole.OutcomeCompleted})
}

func (r *run) end(err error) {
	var stop stopScript
	switch {
	case errors.As(err, &stop):
	case r.ctx.Err() != nil:
		stop.ended = provider.Ended{Outcome: thole.OutcomeInterrupted}
	default:
		stop.ended = provider.Ended{Outcome: thole.OutcomeFailed, Error: provider.Failure(thole.ErrBadRequest, err.Error(), 0)}
	}
	if stop.ended.Error != nil {
		r.em.Error(*stop.ended.Error)
	}
	r.report()
	r.em.End(stop.ended)
}

func (r *run) report() {
	cost := r.usage.Input + 2*r.usage.Output // one and two dollars per million
	r.usage.CostMicros, r.usage.Model, r.usage.ContextWindow = &cost, "script", 200_000
	r.em.Usage(r.usage)
}

func (r *run) takeSteers() {
	for {
		select {
		case s := <-r.steers:
			r.take(s)
		default:
			return
		}
	}
}

func (r *run) take(s steer) {
	var text string
	for _, in := range s.input {
		text += in.Text
	}
	r.em.Steered(event.Item{ID: r.nextID("steer"), Kind: event.ItemUserMessage, State: event.StateCompleted,
		Content: s.input, ClientID: s.clientID, Stamp: thole.Stamp{Started: time.Now().UTC(), Ended: time.Now().UTC()}})
	ops, rest := r.session.parse(text)
	r.ops, r.rest = append(r.ops, ops...), rest
	r.heard++
}

func (r *run) nextID(kind string) thole.ItemID {
	r.items++
	return r.em.ItemID(kind + strconv.Itoa(r.items))
}

// wait pauses unless the turn is stopped.
func (r *run) wait(d time.Duration) error {
	if d <= 0 {
		return context.Cause(r.ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// idle waits for the user, at the longest for d. Each thing that was said ends one
// wait, also what was said before it.
func (r *run) idle(d time.Duration) error {
	if r.heard > 0 {
		r.heard--
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case s := <-r.steers:
		r.take(s)
		r.heard--
		return nil
	case <-t.C:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

func fail(code thole.ErrorCode, message string, status int) error {
	return stopScript{provider.Ended{Outcome: thole.OutcomeFailed, Error: provider.Failure(code, message, status)}}
}

func (r *run) do(o op) error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	switch o.verb {
	case "say", "give":
		return r.stream(event.ItemMessage, r.expand(o.arg))
	case "think":
		return r.stream(event.ItemReasoning, r.expand(o.arg))
	case "todo":
		r.em.Todos(todos(o.arg))
		return nil
	case "usage":
		return addUsage(&r.usage, o.arg)
	case "slow":
		var err error
		r.pause, r.chunk, err = slow(o.arg)
		return err
	case "wait":
		d, err := time.ParseDuration(o.arg)
		if err != nil {
			return err
		}
		return r.idle(d)
	case "step":
		r.em.StepStarted()
		return nil
	case "reset":
		r.em.StepReset()
		return nil
	case "note":
		r.em.Note(r.expand(o.arg))
		return nil
	case "ask":
		return r.question(o.arg)
	case "run", "escalate":
		return r.command(o.arg, o.verb == "escalate")
	case "write", "edit", "read":
		return r.file(o)
	case "call":
		return r.tool(o.arg)
	case "http", "fail", "cut", "crash", "stop":
		return r.fault(o)
	case "hang":
		<-r.ctx.Done()
		return context.Cause(r.ctx)
	}
	return fmt.Errorf("unknown directive %q", o.verb)
}

func (r *run) expand(s string) string {
	return strings.NewReplacer("%tool%", r.result, "%user%", r.rest, "%turns%", strconv.Itoa(len(r.session.state.Prompts)),
		"%dir%", r.session.cfg.Dir, "%schema%", string(r.schema)).Replace(unescape(s))
}

// stream shows text in chunks of words, or of the size that slow set.
func (r *run) stream(kind event.ItemKind, text string) error {
	item := event.Item{ID: r.nextID(string(kind)), Kind: kind}
	r.em.Start(item)
	for len(text) > 0 {
		n := strings.IndexByte(text, ' ') + 1
		if r.chunk > 0 {
			n = min(r.chunk, len(text))
		}
		if n == 0 {
			n = len(text)
		}
		r.em.Delta(item.ID, event.StreamText, text[:n])
		text = text[n:]
		if err := r.wait(r.pause); err != nil {
			return err
		}
	}
	r.em.Complete(item)
	return nil
}

func (r *run) tool(arg string) error {
	name, input, _ := strings.Cut(arg, " ")
	if input == "" {
		input = "{}"
	}
	if !json.Valid([]byte(input)) {
		return fmt.Errorf("call %s: the input is not JSON", name)
	}
	if own, ok := provider.ClientTools(r.session.cfg.Tools)[name]; ok {
		return r.clientTool(own, json.RawMessage(input))
	}
	item := event.Item{ID: r.nextID("tool"), Kind: event.ItemTool, Tool: &event.ToolCall{Name: name}}
	r.em.Start(item)
	r.em.Delta(item.ID, event.StreamInput, input)
	item.Tool = &event.ToolCall{Name: name, Input: json.RawMessage(input)}
	r.em.Update(item)
	item.Tool = &event.ToolCall{Name: name, Input: json.RawMessage(input), Output: json.RawMessage(input)}
	r.em.Complete(item)
	r.result = input
	return nil
}

// clientTool calls a tool of the thread's client.
func (r *run) clientTool(t provider.ClientTool, input json.RawMessage) error {
	item := event.Item{ID: r.nextID("tool"), Kind: event.ItemTool, Tool: &event.ToolCall{Name: t.Name, Namespace: t.Namespace, Input: input}}
	r.em.Start(item)
	answer, err := r.wants(event.Ask{Kind: event.AskTool, Item: item.ID, Title: "Call " + t.Name, Tool: item.Tool})
	if err != nil {
		return err
	}
	said := provider.ReadToolAnswer(answer)
	call := *item.Tool
	call.Content, r.result = said.Content, ""
	for _, c := range said.Content {
		r.result += c.Text + c.URL
	}
	if item.Tool = &call; !said.OK {
		item.State = event.StateFailed
	}
	r.em.Complete(item)
	return nil
}

// fault ends the turn as the real CLIs do when the model service misbehaves.
func (r *run) fault(o op) error {
	switch o.verb {
	case "crash":
		return fail(thole.ErrProviderCrashed, "the scripted agent crashed", 0)
	case "cut":
		return fail(thole.ErrNetwork, "the model's stream was cut", 0)
	case "stop":
		if o.arg == "refusal" {
			return fail(thole.ErrModelRefused, "the model refused", 0)
		}
		return nil
	case "fail":
		return fail(thole.ErrOverloaded, o.arg, 0)
	}
	words := strings.Fields(o.arg)
	if len(words) == 0 {
		return fmt.Errorf("http needs a status")
	}
	status, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	message := strings.Join(words[1:], " ")
	code := provider.CodeForStatus(status)
	if c, ok := provider.CodeForText(message); ok && status == 400 {
		code = c
	}
	return fail(code, message, status)
}

// file reads, writes or edits one file of the workspace.
func (r *run) file(o op) error {
	path, rest, _ := strings.Cut(o.arg, " ")
	full, err := filepath.Abs(filepath.Join(r.session.cfg.Dir, path))
	if err != nil || !strings.HasPrefix(full, filepath.Clean(r.session.cfg.Dir)+string(filepath.Separator)) {
		return fmt.Errorf("%s %s: outside the workspace", o.verb, path)
	}
	old, readErr := os.ReadFile(full)
	if o.verb == "read" {
		r.result = string(old)
		if readErr != nil {
			r.result = readErr.Error()
		}
		return nil
	}
	text := unescape(rest)
	change := event.FileChange{Path: path, Kind: "add"}
	if readErr == nil {
		change.Kind = "update"
	}
	if o.verb == "edit" {
		before, after, ok := strings.Cut(text, " => ")
		if !ok {
			return fmt.Errorf("edit wants PATH OLD => NEW")
		}
		text = strings.Replace(string(old), before, after, 1)
	}
	change.Diff = diff(string(old), text)
	item := event.Item{ID: r.nextID("file"), Kind: event.ItemFileChange, Changes: []event.FileChange{change}}
	r.em.Start(item)
	verdict, err := r.permit(event.Ask{Kind: event.AskFileChange, Item: item.ID, Title: "Change " + path, Changes: item.Changes}, r.profile == thole.ProfileAsk, "write")
	if err != nil {
		return err
	}
	if verdict != "" {
		item.State, r.result = event.StateDeclined, verdict
		r.em.Complete(item)
		return nil
	}
	if err = os.MkdirAll(filepath.Dir(full), 0o755); err == nil {
		err = os.WriteFile(full, []byte(text), 0o644)
	}
	if err != nil {
		item.State, r.result = event.StateFailed, err.Error()
	} else {
		r.result = "wrote " + path
	}
	r.em.Complete(item)
	return nil
}

// diff is a unified diff of one hunk that replaces everything.
func diff(old, text string) string {
	lines := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	}
	a, b := lines(old), lines(text)
	var out strings.Builder
	fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", min(1, len(a)), len(a), min(1, len(b)), len(b))
	for _, l := range a {
		out.WriteString("-" + l + "\n")
	}
	for _, l := range b {
		out.WriteString("+" + l + "\n")
	}
	return out.String()
}
