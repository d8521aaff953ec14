package appserver

import (
	"encoding/json"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// translator turns a thread's events into frames. It is a fold: two of them that
// begin with the same snapshot and see the same events make the same frames and
// have the same state, which is why subscribers can share frames.
type translator struct {
	srv   *Server
	turn  thread.Turn // the open one; ID "" when idle
	last  *thole.Item // the newest message of the open turn
	told  bool        // the open turn's error was told
	usage thole.Usage // of the turns that ended
	items map[thole.ItemID]thole.ItemKind
	todos []thole.Todo
	edits []thole.FileChange // of the open turn
	// replay: the events are older than the snapshot, so only what an event says
	// itself is certain.
	replay bool
}

func newTranslator(s *Server, snap thread.Snapshot) *translator {
	t := &translator{srv: s, usage: snap.Thread.Usage, todos: snap.Todos, items: map[thole.ItemID]thole.ItemKind{}}
	if snap.Open != nil {
		t.turn = *snap.Open
		t.told = t.turn.Error != nil
		for i := range snap.Open.Items {
			it := snap.Open.Items[i]
			t.items[it.ID] = it.Kind
			if it.Kind == thole.ItemMessage && !it.Stamp.Ended.IsZero() {
				t.last = &it
			}
			t.edits = append(t.edits, edits(&it)...)
		}
	}
	return t
}

// frames encodes a batch and folds it.
func (t *translator) frames(batch []thread.Event) []*frame {
	var out []*frame
	for i := range batch {
		e := &batch[i]
		had := len(out)
		out = t.event(out, e)
		t.fold(e)
		if e.Seq > 0 && len(out) > had {
			if last := out[len(out)-1]; last.seq == 0 {
				last.seq = e.Seq
			}
		}
	}
	return out
}

// fold keeps what later events need of this one.
func (t *translator) fold(e *thread.Event) {
	d := &e.Data
	switch e.Kind {
	case thread.TurnStarted:
		t.turn = thread.Turn{ID: e.Turn, Created: e.Time}
		t.last, t.told, t.edits = nil, false, nil
		clear(t.items)
	case thread.ItemStarted, thread.ItemUpdated:
		t.items[d.Item.ID] = d.Item.Kind
	case thread.ItemCompleted:
		delete(t.items, d.Item.ID)
		if d.Item.Kind == thole.ItemMessage {
			t.last = d.Item
		}
		t.edits = append(t.edits, edits(d.Item)...)
	case thread.UsageUpdated:
		t.turn.Usage = *d.Usage
	case thread.ErrorReported:
		t.told = t.told || !d.Error.Retrying
	case thread.TodoSnapshot:
		t.todos = d.Todos
	case thread.TodoUpdate:
		t.todos = thole.MergeTodos(t.todos, d.Todos)
	case thread.TurnEnded:
		if !t.replay {
			t.usage = t.usage.Plus(t.turn.Usage)
		}
		t.turn, t.last, t.edits = thread.Turn{}, nil, nil
		clear(t.items)
	}
}

// edits are the changes of files that an item made.
func edits(i *thole.Item) []thole.FileChange {
	if i.Kind != thole.ItemFileChange || i.State != thole.ItemCompleted {
		return nil
	}
	return i.Changes
}

// event appends the frames of one event.
func (t *translator) event(out []*frame, e *thread.Event) []*frame {
	at := thole.Millis(e.Time)
	id, turnID := string(e.Thread), string(e.Turn)
	d := &e.Data
	add := func(method string, params any) *frame {
		f := note(method, at, params)
		if f != nil {
			out = append(out, f)
		}
		return f
	}
	switch e.Kind {
	case thread.ThreadStatus, thread.ThreadUpdated, thread.ThreadDeleted:
		out = t.srv.coarse(out, e, true)
	case thread.TurnStarted:
		add("turn/started", app.TurnNotification{ThreadID: id, Turn: turn(thread.Turn{ID: e.Turn, Created: e.Time})})
	case thread.TurnPhase:
		add("thole/turn/phase", app.TurnPhase{ThreadID: id, TurnID: turnID, Phase: string(d.Phase), Error: d.Text}).extension = true
		if d.Phase.Terminal() && d.Text != "" {
			add("warning", app.Warning{ThreadID: &id, Message: d.Text})
		}
	case thread.TurnEnded:
		ended := t.turn
		if t.turn.ID != e.Turn {
			ended = thread.Turn{}
		}
		ended.ID, ended.Outcome, ended.Error, ended.Stamp.Ended = e.Turn, d.Outcome, d.Error, e.Time
		if d.Outcome == thole.OutcomeFailed && !t.told {
			add("error", app.ErrorNotification{Error: *turnError(d.Error), ThreadID: id, TurnID: turnID})
		}
		w := turn(ended)
		if t.last != nil {
			w.Items, w.ItemsView = []app.Item{item(*t.last)}, app.ItemsSummary
		}
		add("turn/completed", app.TurnNotification{ThreadID: id, Turn: w})
	case thread.StepReset:
		add("thole/step/reset", app.StepReset{ThreadID: id, TurnID: turnID}).extension = true
	case thread.ItemStarted:
		add("item/started", started(id, turnID, *d.Item))
	case thread.ItemUpdated:
		add("thole/item/updated", app.ItemUpdated{ThreadID: id, TurnID: turnID, Item: item(*d.Item)}).extension = true
	case thread.ItemCompleted:
		if _, open := t.items[d.Item.ID]; !open && (!t.replay || d.Item.Kind == thole.ItemUserMessage) { // nobody has heard of it yet
			fresh := *d.Item
			fresh.Stamp.Ended = fresh.Stamp.Started
			add("item/started", started(id, turnID, unfinished(fresh)))
		}
		add("item/completed", app.ItemDone{Item: item(*d.Item), ThreadID: id, TurnID: turnID, CompletedAtMs: at})
		if more := edits(d.Item); len(more) > 0 && !t.replay {
			if diff := turnDiff(append(slices.Clip(t.edits), more...)); diff != "" {
				add("turn/diff/updated", app.DiffUpdated{ThreadID: id, TurnID: turnID, Diff: diff})
			}
		}
	case thread.ItemDelta:
		out = t.delta(out, e, at)
	case thread.TodoSnapshot:
		add("turn/plan/updated", app.PlanUpdated{ThreadID: id, TurnID: turnID, Plan: plan(d.Todos)})
	case thread.TodoUpdate:
		add("turn/plan/updated", app.PlanUpdated{ThreadID: id, TurnID: turnID, Plan: plan(thole.MergeTodos(t.todos, d.Todos))})
	case thread.AskRequested:
		if f := request(e.Thread, e.Turn, *d.Ask, at, t.srv.cfg.Dir); f != nil {
			out = append(out, f)
		}
	case thread.AskResolved:
		rid, _ := json.Marshal(requestID(e.Thread, d.AskID))
		add("serverRequest/resolved", app.Resolved{ThreadID: id, RequestID: rid})
	case thread.UsageUpdated:
		sum := t.usage
		if !t.replay {
			sum = sum.Plus(*d.Usage)
		}
		w := app.ThreadUsage{Total: usage(sum), Last: usage(*d.Usage)}
		if sum.ContextWindow > 0 {
			w.ModelContextWindow = &sum.ContextWindow
		}
		add("thread/tokenUsage/updated", app.UsageUpdated{ThreadID: id, TurnID: turnID, TokenUsage: w})
	case thread.ErrorReported:
		add("error", app.ErrorNotification{Error: *turnError(d.Error), WillRetry: d.Error.Retrying, ThreadID: id, TurnID: turnID})
	case thread.NoteReported:
		add("warning", app.Warning{ThreadID: &id, Message: d.Text})
	case thread.QueueAdded, thread.QueueEdited, thread.QueueRemoved, thread.QueueReordered:
		add("thread/queue/changed", app.ThreadRef{ThreadID: id}).experimental = true
	}
	return out
}

func started(id, turnID string, i thole.Item) app.ItemStarted {
	w := item(i)
	w.CompletedAtMs = nil
	var at int64
	if w.StartedAtMs != nil {
		at = *w.StartedAtMs
	}
	return app.ItemStarted{Item: w, ThreadID: id, TurnID: turnID, StartedAtMs: at}
}

// unfinished is an item as its start would have told it.
func unfinished(i thole.Item) thole.Item {
	switch i.Kind {
	case thole.ItemCommand, thole.ItemFileChange, thole.ItemTool:
		i.State = thole.ItemRunning
		if i.Command != nil {
			c := *i.Command
			c.Output, c.ExitCode, c.DurationMS = "", nil, 0
			i.Command = &c
		}
	case thole.ItemMessage, thole.ItemReasoning, thole.ItemPlan, thole.ItemSystem:
		i.Text, i.Summary = "", ""
	}
	return i
}

// delta tells growing text. What the item is decides the notification's name.
func (t *translator) delta(out []*frame, e *thread.Event, at int64) []*frame {
	kind, open := t.items[e.Data.ItemID]
	if !open {
		return out
	}
	zero := 0
	p := app.Delta{ThreadID: string(e.Thread), TurnID: string(e.Turn), ItemID: string(e.Data.ItemID), Delta: e.Data.Delta}
	method := ""
	switch e.Data.Stream {
	case provider.StreamText:
		switch kind {
		case thole.ItemMessage, thole.ItemSystem:
			method = "item/agentMessage/delta"
		case thole.ItemReasoning:
			method, p.ContentIndex = "item/reasoning/textDelta", &zero
		case thole.ItemPlan:
			method = "item/plan/delta"
		}
	case provider.StreamSummary:
		method, p.SummaryIndex = "item/reasoning/summaryTextDelta", &zero
		if e.Data.Offset == 0 {
			out = append(out, note("item/reasoning/summaryPartAdded", at, app.SummaryPart{ThreadID: p.ThreadID, TurnID: p.TurnID, ItemID: p.ItemID}))
		}
	case provider.StreamOutput:
		if kind == thole.ItemCommand {
			method = "item/commandExecution/outputDelta"
		}
	case provider.StreamInput:
		f := note("thole/item/inputDelta", at, app.InputDelta{ThreadID: p.ThreadID, TurnID: p.TurnID, ItemID: p.ItemID, Delta: p.Delta})
		f.extension = true
		return append(out, f)
	}
	if method == "" {
		return out
	}
	return append(out, note(method, at, p))
}

// coarse tells what every connection hears of a thread. Settings are for
// subscribers only.
func (s *Server) coarse(out []*frame, e *thread.Event, subscriber bool) []*frame {
	at, id, d := thole.Millis(e.Time), string(e.Thread), &e.Data
	switch e.Kind {
	case thread.ThreadStatus:
		out = append(out, note("thread/status/changed", at, app.StatusChanged{ThreadID: id, Status: status(*d.Status)}))
		if !d.Status.Loaded && !d.Status.Active && e.Actor == thole.SystemActor { // nobody's doing: the server let go of it
			out = append(out, note("thread/closed", at, app.ThreadRef{ThreadID: id}))
		}
	case thread.ThreadDeleted:
		out = append(out, note("thread/deleted", at, app.ThreadRef{ThreadID: id}))
	case thread.ThreadUpdated:
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
		if d.Settings != nil && subscriber {
			out = append(out, note("thread/settings/updated", at, app.SettingsUpdated{ThreadID: id, ThreadSettings: s.threadSettings(*d.Settings)}))
		}
	}
	return out
}

// soFar is the text that an item in flight has, as one delta.
func (t *translator) soFar(turn *thread.Turn, it thole.Item, now time.Time) []*frame {
	var out []*frame
	tell := func(stream provider.Stream, text string) {
		if text != "" {
			e := thread.Event{Thread: turn.Thread, Turn: turn.ID, Kind: thread.ItemDelta, Data: thread.Data{ItemID: it.ID, Stream: stream, Delta: text}}
			out = t.delta(out, &e, thole.Millis(now))
		}
	}
	tell(provider.StreamSummary, it.Summary)
	tell(provider.StreamText, it.Text)
	if it.Command != nil {
		tell(provider.StreamOutput, it.Command.Output)
	}
	return out
}
