package codex

import (
	"slices"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// decoder turns one turn's notifications into events. It does no input or
// output, so transcripts and fuzzing exercise it without the CLI.
type decoder struct {
	em     *provider.Emitter
	thread string
	turn   string // the CLI's turn id, "" until it is known
	model  string
	dir    string // paths below it are emitted relative to it

	totals   *app.TokenUsage // the thread's, as last reported; shared with its other turns
	baseline *app.TokenUsage // the thread's totals before this turn
	users    int             // user messages seen; the first is the turn's own
	tools    bool            // the step in progress called a tool
	models   map[thole.ItemID]bool
	// commandBegan is called with each command that begins; nil: nobody needs to know.
	commandBegan func(native string, item thole.ItemID)
	summary      map[string]int // reasoning summary part in progress, by native item id
	failure      *thole.TurnError
	limits       []event.Limit // as last emitted
}

func newDecoder(em *provider.Emitter, thread, dir string) *decoder {
	return &decoder{em: em, thread: thread, dir: dir, totals: &app.TokenUsage{}, models: map[thole.ItemID]bool{}, summary: map[string]int{}}
}

// wants reports whether a notification can matter to a turn; the rest is not
// even parsed.
func wants(method string) bool {
	return strings.HasPrefix(method, "item/") || strings.HasPrefix(method, "turn/") ||
		method == "error" || method == "warning" || method == "thread/tokenUsage/updated" || method == "account/rateLimits/updated" || method == "serverRequest/resolved"
}

// quiet begins the client id of input that is ours, not a user's.
const quiet = "thole-denial-" // as older threads have it

// growing says what a notification extends, "" when it brings no more text.
func growing(method string) event.Stream {
	switch method {
	case "item/agentMessage/delta", "item/plan/delta", "item/reasoning/textDelta":
		return event.StreamText
	case "item/commandExecution/outputDelta":
		return event.StreamOutput
	}
	return ""
}

// notification applies one; it returns how the turn ended, nil while it goes on.
func (d *decoder) notification(method string, params []byte) *provider.Ended {
	var n note
	if err := strictjson.Unmarshal(params, &n); err != nil {
		return nil
	}
	if n.ThreadID != d.thread && n.ThreadID != "" {
		return nil // a sub-agent's thread, emitted as items of thole's
	}
	turn := n.TurnID
	if n.Turn != nil {
		turn = n.Turn.ID
	}
	if method == "turn/started" && d.turn == "" {
		d.turn = turn
	}
	if turn != "" && turn != d.turn {
		return nil // late news of an earlier turn
	}
	if stream := growing(method); stream != "" {
		d.em.Delta(d.em.ItemID(n.ItemID), stream, n.Delta)
	}
	switch method {
	case "item/started":
		d.started(n.Item)
	case "item/completed":
		d.completed(n.Item)
	case "item/mcpToolCall/progress":
		d.em.Delta(d.em.ItemID(n.ItemID), event.StreamOutput, n.Message+"\n")
	case "item/fileChange/patchUpdated":
		d.patched(n.ItemID, n.Changes)
	case "item/reasoning/summaryTextDelta":
		id := d.em.ItemID(n.ItemID)
		if last, ok := d.summary[n.ItemID]; ok && last != n.Index {
			d.em.Delta(id, event.StreamSummary, "\n\n")
		}
		d.summary[n.ItemID] = n.Index
		d.em.Delta(id, event.StreamSummary, n.Delta)
	case "turn/plan/updated":
		d.em.Todos(todos(n.Plan))
	case "thread/tokenUsage/updated":
		d.usage(n.Usage)
	case "warning":
		d.em.Note(n.Message)
	case "account/rateLimits/updated":
		if l := n.limits(); len(l) > 0 && !slices.Equal(l, d.limits) {
			d.limits = l
			d.em.Limits(l)
		}
	case "error":
		d.error(n.Error, n.WillRetry)
	case "turn/completed":
		return d.end(n.Turn)
	}
	return nil
}

// step begins a model call when the model makes something outside of one. A step
// ends with the token count, which comes after its tools have run.
func (d *decoder) step() {
	if !d.em.InStep() {
		d.tools = false
		d.em.StepStarted()
	}
}

func (d *decoder) started(w *wireItem) {
	if w == nil || w.Type == "userMessage" {
		return
	}
	item, ok := d.item(w)
	if !ok {
		return
	}
	d.step()
	switch item.Kind {
	case event.ItemMessage, event.ItemReasoning, event.ItemPlan:
		d.models[item.ID] = true
	default:
		d.tools = true
	}
	if item.Kind == event.ItemCommand && d.commandBegan != nil {
		d.commandBegan(w.ID, item.ID)
	}
	item.State = event.StateRunning
	d.em.Start(item)
}

func (d *decoder) completed(w *wireItem) {
	if w == nil {
		return
	}
	if w.Type == "userMessage" {
		d.userMessage(w)
		return
	}
	item, ok := d.item(w)
	if !ok {
		return
	}
	d.step()
	delete(d.models, item.ID)
	if open, was := d.em.Opened(item.ID); was && item.Kind == event.ItemFileChange && len(item.Changes) == 0 {
		item.Changes = open.Changes
	}
	d.em.Complete(item)
}

// patched takes in edits that codex works out while the model writes them.
func (d *decoder) patched(id string, changes []app.FileChange) {
	item, open := d.em.Opened(d.em.ItemID(id))
	if !open || item.Kind != event.ItemFileChange {
		return
	}
	item.Changes = nil
	for _, c := range changes {
		item.Changes = append(item.Changes, d.change(c))
	}
	d.em.Update(item)
}

// userMessage reports input that the running turn took in. Codex drops the
// answer it was streaming then and never completes it.
func (d *decoder) userMessage(w *wireItem) {
	d.users++
	if d.users == 1 {
		return
	}
	d.cutModel(event.StateCompleted)
	if strings.HasPrefix(val(w.ClientID), quiet) {
		return
	}
	item := event.Item{ID: d.em.ItemID(w.ID), Kind: event.ItemUserMessage, State: event.StateCompleted, ClientID: val(w.ClientID)}
	for _, p := range w.UserContent() {
		item.Content = append(item.Content, thole.Input{Type: inputType(p.Type), Text: p.Text, URL: p.URL + p.Path})
	}
	d.em.Steered(item)
}

func inputType(t string) string {
	if t == "text" {
		return "text"
	}
	return "image"
}

func (d *decoder) cutModel(state event.ItemState) {
	for id := range d.models {
		d.em.Cut(id, state)
		delete(d.models, id)
	}
}

func todos(plan []app.PlanStep) []event.Todo {
	out := make([]event.Todo, 0, len(plan))
	for i, p := range plan {
		state := event.TodoPending
		switch p.Status {
		case "inProgress":
			state = event.TodoDoing
		case "completed":
			state = event.TodoDone
		}
		out = append(out, event.Todo{ID: thole.TodoID(strconv.Itoa(i + 1)), Content: p.Step, State: state, Order: i})
	}
	return out
}

// usage reports the turn's share of the thread's running totals. The first
// report of a turn also reports the last call, and so where the turn began. When a
// call fails codex reports the totals of the call before once more: no step ended.
func (d *decoder) usage(u *app.ThreadUsage) {
	if u == nil || u.Total == *d.totals && u.Last != (app.TokenUsage{}) {
		return
	}
	*d.totals = u.Total
	if d.baseline == nil {
		b := minus(u.Total, u.Last)
		d.baseline = &b
	}
	t := tokens(minus(u.Total, *d.baseline))
	used := thole.Usage{
		Input: t.Input, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite, Output: t.Output, Reasoning: t.Reasoning,
		ContextWindow: val(u.ModelContextWindow), Model: d.model,
	}
	if u.Last != (app.TokenUsage{}) { // codex exec does not say
		used.Last = new(tokens(u.Last))
	}
	d.em.Usage(used)
	d.em.StepEnded()
}

// tokens counts as thole does, without what is counted elsewhere.
func tokens(t app.TokenUsage) thole.Tokens {
	return thole.Tokens{
		Input: t.InputTokens - t.CachedInputTokens - t.CacheWriteInputTokens, CacheRead: t.CachedInputTokens, CacheWrite: t.CacheWriteInputTokens,
		Output: t.OutputTokens - t.ReasoningOutputTokens, Reasoning: t.ReasoningOutputTokens,
	}
}

func minus(t, o app.TokenUsage) app.TokenUsage {
	return app.TokenUsage{TotalTokens: t.TotalTokens - o.TotalTokens, InputTokens: t.InputTokens - o.InputTokens, CachedInputTokens: t.CachedInputTokens - o.CachedInputTokens,
		CacheWriteInputTokens: t.CacheWriteInputTokens - o.CacheWriteInputTokens, OutputTokens: t.OutputTokens - o.OutputTokens, ReasoningOutputTokens: t.ReasoningOutputTokens - o.ReasoningOutputTokens}
}

// error reports a failed model call. When codex repeats it, what the call has
// shown so far is void: it will be sent again.
func (d *decoder) error(w *app.TurnError, retry bool) {
	if w == nil {
		return
	}
	te := failure(w)
	te.Retrying = retry
	if retry && len(d.models) > 0 {
		if d.tools {
			d.cutModel(event.StateFailed) // a reset would also drop the tools that did run
		} else {
			clear(d.models)
			d.em.StepReset()
		}
	}
	if !retry {
		d.failure = te
	}
	d.em.Error(*te)
}

func (d *decoder) end(t *app.Turn) *provider.Ended {
	if t == nil {
		return nil
	}
	switch t.Status {
	case "completed":
		return &provider.Ended{Outcome: thole.OutcomeCompleted}
	case "failed":
		te := d.failure
		if t.Error != nil {
			te = failure(t.Error)
		}
		if te == nil {
			te = provider.Failure(thole.ErrProviderCrashed, "codex reported a failure without a reason", 0)
		}
		return &provider.Ended{Outcome: thole.OutcomeFailed, Error: te}
	}
	return &provider.Ended{Outcome: thole.OutcomeInterrupted}
}
