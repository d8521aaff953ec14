package appserver

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/protocol/app"
)

// translator encodes a thread's events as frames, each from the thread's state
// before it. Two translators in the same state make the same frames, which is why
// subscribers can share them.
type translator struct {
	srv   *Server
	state *fold.State
	// replay: the events are older than the snapshot, so only what an event says
	// itself is certain. usage is then that of the snapshot.
	replay bool
	usage  thole.Usage
	held   map[thole.ItemID]bool // of a replay: items that began and are not announced
}

// frames encodes a batch.
func (t *translator) frames(batch []event.Event) []*frame {
	var out []*frame
	for i := range batch {
		e := &batch[i]
		had := len(out)
		out = t.event(out, e)
		t.state.Follow(*e)
		if e.Seq > 0 && len(out) > had {
			if last := out[len(out)-1]; last.seq == 0 {
				last.seq = e.Seq
			}
		}
	}
	return out
}

// open returns an item of the open turn that is not complete.
func (t *translator) open(id thole.ItemID) (event.Item, bool) {
	if i := t.state.Item(id); i >= 0 && t.state.Items[i].Open {
		return t.state.Items[i].Item, true
	}
	return event.Item{}, false
}

// lastMessage is the newest message that the open turn completed.
func (t *translator) lastMessage() *event.Item {
	for i := len(t.state.Items) - 1; i >= 0; i-- {
		if r := t.state.Items[i]; !r.Open && r.Item.Kind == event.ItemMessage {
			return &r.Item
		}
	}
	return nil
}

// diff is the open turn's whole diff with the changes of one more item.
func (t *translator) diff(more []event.FileChange) string {
	var all []event.FileChange
	for i := range t.state.Items {
		if r := &t.state.Items[i]; !r.Open {
			all = append(all, edits(&r.Item)...)
		}
	}
	return turnDiff(append(all, more...))
}

// edits are the changes of files that an item made.
func edits(i *event.Item) []event.FileChange {
	if i.Kind != event.ItemFileChange || i.State != event.StateCompleted {
		return nil
	}
	return i.Changes
}

// event appends the frames of one event.
func (t *translator) event(out []*frame, e *event.Event) []*frame {
	at := thole.Millis(e.Time)
	id, turnID := string(e.Thread), string(e.Turn)
	d := &e.Data
	dir := t.state.Row.Thread.WorkDir()
	put := func(f *frame) *frame {
		if f != nil {
			out = append(out, f)
		}
		return f
	}
	add := func(method string, params any) *frame { return put(note(method, at, params)) }
	switch e.Kind {
	case event.ThreadStatus, event.ThreadUpdated, event.ThreadDeleted:
		out = t.srv.coarse(out, e, dir)
	case event.TurnStarted:
		add("turn/started", app.TurnNotification{ThreadID: id, Turn: turn(fold.Turn{ID: e.Turn, Created: e.Time})})
	case event.TurnPhase:
		add("thole/turn/phase", app.TurnPhase{ThreadID: id, TurnID: turnID, Phase: string(d.Phase), Error: d.Text}).extension = true
		if d.Phase.Terminal() && d.Text != "" {
			add("warning", app.Warning{ThreadID: &id, Message: d.Text})
		}
	case event.TurnEnded:
		var ended fold.Turn
		told := false
		if t.state.OpenID() == e.Turn {
			ended = *t.state.Open
			told = ended.Error != nil
		}
		ended.ID, ended.Outcome, ended.Error, ended.Stamp.Ended = e.Turn, d.Outcome, d.Error, e.Time
		if d.Outcome == thole.OutcomeFailed && !told {
			put(errorNote(at, app.ErrorNotification{Error: *turnError(d.Error), ThreadID: id, TurnID: turnID}))
		}
		w := turn(ended)
		if last := t.lastMessage(); last != nil {
			w.Items, w.ItemsView = []app.Item{item(*last, dir)}, app.ItemsSummary
		}
		full := app.TurnNotification{ThreadID: id, Turn: w}
		if f := add("turn/completed", app.TurnNotification{ThreadID: id, Turn: bareTurn(w)}); f != nil {
			f.extra = full
		}
	case event.StepReset:
		add("thole/step/reset", app.StepReset{ThreadID: id, TurnID: turnID}).extension = true
	case event.ItemStarted:
		switch {
		case !shows(*d.Item) && t.replay:
			t.held[d.Item.ID] = true
		case shows(*d.Item) && (t.replay || !t.announced(d.Item.ID)):
			put(t.announce(e, *d.Item))
		}
	case event.ItemUpdated:
		if shows(*d.Item) && !t.announced(d.Item.ID) {
			put(t.announce(e, unfinished(*d.Item)))
			break
		}
		if before, open := t.open(d.Item.ID); open && d.Item.Kind == event.ItemFileChange && len(d.Item.Changes) > 0 && !slices.Equal(before.Changes, d.Item.Changes) {
			add("item/fileChange/patchUpdated", app.PatchUpdated{ThreadID: id, TurnID: turnID, ItemID: string(d.Item.ID), Changes: changes(d.Item.Changes, dir)})
		}
		add("thole/item/updated", app.ItemUpdated{ThreadID: id, TurnID: turnID, Item: item(*d.Item, dir)}).extension = true
	case event.ItemCompleted:
		if !t.announced(d.Item.ID) || t.replay && d.Item.Kind == event.ItemUserMessage {
			put(t.announce(e, unfinished(*d.Item)))
		}
		put(itemNote("item/completed", at, item(*d.Item, dir), func(w app.Item) any {
			return app.ItemDone{Item: w, ThreadID: id, TurnID: turnID, CompletedAtMs: at}
		}))
		if more := edits(d.Item); len(more) > 0 && !t.replay {
			if diff := t.diff(more); diff != "" {
				add("turn/diff/updated", app.DiffUpdated{ThreadID: id, TurnID: turnID, Diff: diff})
			}
		}
	case event.ItemDelta:
		out = t.delta(out, e, at)
	case event.TodoSnapshot:
		add("turn/plan/updated", app.PlanUpdated{ThreadID: id, TurnID: turnID, Plan: plan(d.Todos)})
	case event.TodoUpdate:
		add("turn/plan/updated", app.PlanUpdated{ThreadID: id, TurnID: turnID, Plan: plan(event.MergeTodos(t.state.Todos, d.Todos))})
	case event.AskRequested:
		if i, ok := about(*d.Ask, t.item(d.Ask.Item)); ok && !t.announced(i.ID) {
			put(t.announce(e, i))
		}
		if f := request(e.Thread, e.Turn, *d.Ask, at, dir); f != nil {
			f.client = t.srv.toolOwner(*d.Ask, t.state.Row.Thread)
			put(f)
		}
	case event.AskResolved:
		rid, _ := json.Marshal(requestID(e.Thread, d.AskID))
		add("serverRequest/resolved", app.Resolved{ThreadID: id, RequestID: rid})
	case event.UsageUpdated:
		sum := t.usage
		if !t.replay {
			sum = t.state.Row.Thread.Usage.Plus(*d.Usage)
		}
		w := app.ThreadUsage{Total: usage(sum.Tokens()), Last: usage(lastCall(*d.Usage))}
		if sum.ContextWindow > 0 {
			w.ModelContextWindow = &sum.ContextWindow
		}
		add("thread/tokenUsage/updated", app.UsageUpdated{ThreadID: id, TurnID: turnID, TokenUsage: w})
	case event.ErrorReported:
		put(errorNote(at, app.ErrorNotification{Error: *turnError(d.Error), WillRetry: d.Error.Retrying, ThreadID: id, TurnID: turnID}))
	case event.NoteReported:
		add("warning", app.Warning{ThreadID: &id, Message: d.Text})
	case event.ThreadReverted:
		add("thread/reverted", app.ThreadRef{ThreadID: id})
	case event.GoalUpdated:
		out = append(out, goalNote(at, e.Thread, e.Turn, d.Goal))
	case event.LimitsUpdated:
		add("account/rateLimits/updated", app.RateLimitsUpdated{RateLimits: rateLimits(d.Limits)})
	case event.QueueAdded, event.QueueEdited, event.QueueRemoved, event.QueueReordered:
		add("thread/queue/changed", app.ThreadRef{ThreadID: id}).experimental = true
	}
	return out
}

func started(id, turnID string, i event.Item, at int64, dir string) *frame {
	w := item(i, dir)
	w.CompletedAtMs = nil
	var began int64
	if w.StartedAtMs != nil {
		began = *w.StartedAtMs
	}
	return itemNote("item/started", at, w, func(w app.Item) any {
		return app.ItemStarted{Item: w, ThreadID: id, TurnID: turnID, StartedAtMs: began}
	})
}

// unfinished is an item as its start would have shown it.
func unfinished(i event.Item) event.Item {
	switch i.Kind {
	case event.ItemCommand, event.ItemFileChange, event.ItemTool:
		i.State = event.StateRunning
		if i.Command != nil {
			c := *i.Command
			c.Output, c.ExitCode, c.DurationMS = "", nil, 0
			i.Command = &c
		}
	case event.ItemMessage, event.ItemReasoning, event.ItemPlan, event.ItemSystem:
		if i.Review == "" { // whose text is known from the beginning
			i.Text, i.Summary = "", ""
		}
	}
	return i
}

// delta sends growing text. What the item is decides the notification's name.
func (t *translator) delta(out []*frame, e *event.Event, at int64) []*frame {
	it, open := t.open(e.Data.ItemID)
	if !open || !t.replay && !t.announced(it.ID) && e.Data.Stream != event.StreamInput {
		return out
	}
	kind := it.Kind
	zero := 0
	p := app.Delta{ThreadID: string(e.Thread), TurnID: string(e.Turn), ItemID: string(e.Data.ItemID), Delta: e.Data.Delta}
	method := ""
	switch e.Data.Stream {
	case event.StreamText:
		switch kind {
		case event.ItemMessage, event.ItemSystem:
			method = "item/agentMessage/delta"
		case event.ItemReasoning:
			method, p.ContentIndex = "item/reasoning/textDelta", &zero
		case event.ItemPlan:
			method = "item/plan/delta"
		}
	case event.StreamSummary:
		method, p.SummaryIndex = "item/reasoning/summaryTextDelta", &zero
		if e.Data.Offset == 0 {
			out = append(out, note("item/reasoning/summaryPartAdded", at, app.SummaryPart{ThreadID: p.ThreadID, TurnID: p.TurnID, ItemID: p.ItemID}))
		}
	case event.StreamOutput:
		switch {
		case kind == event.ItemCommand:
			method = "item/commandExecution/outputDelta"
		case kind == event.ItemTool && it.Tool != nil && it.Tool.Server != "":
			return append(out, note("item/mcpToolCall/progress", at, app.ToolProgress{
				ThreadID: p.ThreadID, TurnID: p.TurnID, ItemID: p.ItemID, Message: strings.TrimSuffix(p.Delta, "\n"),
			}))
		}
	case event.StreamInput:
		f := note("thole/item/inputDelta", at, app.InputDelta{ThreadID: p.ThreadID, TurnID: p.TurnID, ItemID: p.ItemID, Delta: p.Delta})
		f.extension = true
		return append(out, f)
	}
	if method == "" {
		return out
	}
	return append(out, note(method, at, p))
}

// coarse is what every connection receives about a thread. Settings are for
// subscribers only, who know dir, where its agent works.
func (s *Server) coarse(out []*frame, e *event.Event, dir string) []*frame {
	at, id, d := thole.Millis(e.Time), string(e.Thread), &e.Data
	switch e.Kind {
	case event.ThreadStatus:
		out = append(out, note("thread/status/changed", at, app.StatusChanged{ThreadID: id, Status: status(*d.Status)}))
		if !d.Status.Loaded && !d.Status.Active && e.Actor.Via == thole.SystemActor.Via { // nobody's doing: the server let go of it
			out = append(out, note("thread/closed", at, app.ThreadRef{ThreadID: id}))
		}
	case event.ThreadDeleted:
		out = append(out, note("thread/deleted", at, app.ThreadRef{ThreadID: id}))
	case event.ThreadUpdated:
		if d.Name != nil {
			out = append(out, note("thread/name/updated", at, app.NameUpdated{ThreadID: id, ThreadName: *d.Name}))
		}
		if d.Archived != nil {
			method := "thread/unarchived"
			if *d.Archived {
				method = "thread/archived"
			}
			out = append(out, note(method, at, app.ThreadRef{ThreadID: id}))
		}
		if d.Settings != nil && dir != "" {
			out = append(out, note("thread/settings/updated", at, app.SettingsUpdated{ThreadID: id, ThreadSettings: s.threadSettings(*d.Settings, dir)}))
		}
	}
	return out
}

// soFar is the text that an item in flight has, as one delta.
func (t *translator) soFar(turn *fold.Turn, it event.Item, now time.Time) []*frame {
	var out []*frame
	add := func(stream event.Stream, text string) {
		if text != "" {
			e := event.Event{Thread: turn.Thread, Turn: turn.ID, Kind: event.ItemDelta, Data: event.Data{ItemID: it.ID, Stream: stream, Delta: text}}
			out = t.delta(out, &e, thole.Millis(now))
		}
	}
	add(event.StreamSummary, it.Summary)
	add(event.StreamText, it.Text)
	if it.Command != nil {
		add(event.StreamOutput, it.Command.Output)
	}
	return out
}

// rateLimits has the first two limits; the contract knows no more.
func rateLimits(all []event.Limit) (out app.RateLimits) {
	for i, to := range []**app.RateLimitWindow{&out.Primary, &out.Secondary} {
		if i == len(all) {
			break
		}
		w := app.RateLimitWindow{UsedPercent: all[i].Used}
		if all[i].Window > 0 {
			w.WindowDurationMins = &all[i].Window
		}
		if !all[i].Resets.IsZero() {
			w.ResetsAt = new(all[i].Resets.Unix())
		}
		*to = &w
	}
	return out
}
