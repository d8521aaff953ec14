// Package shared is a thread as a stranger with its share link may see it: what was said,
// done and asked in it, and nothing of the server, its machine or its users. Each type is
// built from the fields that may be shown, so that a field that is added later is not.
// Paths below the server's home and the user's are masked in texts by as many dashes, which
// keeps the offsets of streams. It decides nothing about who may read.
package shared

import (
	"bytes"
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// View shows threads.
type View struct{ masks [][2]string }

// New makes a view that masks these paths.
func New(private ...string) View {
	var v View
	for _, p := range private {
		if p = strings.TrimRight(p, "/"); len(p) > 3 {
			v.masks = append(v.masks, [2]string{p, strings.Repeat("-", len(p))})
		}
	}
	return v
}

func (v View) text(s string) string {
	for _, m := range v.masks {
		s = strings.ReplaceAll(s, m[0], m[1])
	}
	return s
}

func (v View) raw(b json.RawMessage) json.RawMessage {
	for _, m := range v.masks {
		b = bytes.ReplaceAll(b, []byte(m[0]), []byte(m[1]))
	}
	return b
}

// Thread is what a page needs of a thread.
func (v View) Thread(t fold.Thread) fold.Thread {
	return fold.Thread{
		ID: t.ID, Name: v.text(t.Name), Preview: v.text(t.Preview), Settings: settings(t.Settings), Created: t.Created, Updated: t.Updated,
		Seq: t.Seq, Floor: t.Floor, Turns: t.Turns, Open: t.Open, Status: t.Status, Usage: t.Usage,
	}
}

func settings(s event.Settings) event.Settings {
	return event.Settings{Provider: s.Provider, Model: s.Model}
}

// Turn is a turn without who started it and where it ran.
func (v View) Turn(t fold.Turn) fold.Turn {
	return fold.Turn{
		ID: t.ID, Thread: t.Thread, Input: v.input(t.Input), Settings: settings(t.Settings), Phase: t.Phase, Outcome: t.Outcome, Error: failure(t.Error),
		Usage: t.Usage, Spent: t.Spent, Stamp: t.Stamp, Created: t.Created, Number: t.Number, Seq: t.Seq, Interrupted: t.Interrupted,
	}
}

// failure keeps the class of an error: its text is about the server.
func failure(e *thole.TurnError) *thole.TurnError {
	if e == nil {
		return nil
	}
	return &thole.TurnError{Code: e.Code, Message: strings.ReplaceAll(string(e.Code), "_", " "), Retrying: e.Retrying}
}

func (v View) input(in []thole.Input) []thole.Input {
	var out []thole.Input
	for _, i := range in {
		shown := thole.Input{Type: i.Type, Text: v.text(i.Text), Name: v.text(i.Name)}
		if strings.HasPrefix(i.URL, "data:") { // others are paths
			shown.URL = i.URL
		}
		out = append(out, shown)
	}
	return out
}

// Record is an item with its place.
func (v View) Record(r fold.ItemRecord) fold.ItemRecord {
	r.Item = v.Item(r.Item)
	return r
}

// Item is an item without the directories of commands and the ids of clients.
func (v View) Item(i event.Item) event.Item {
	out := event.Item{
		ID: i.ID, Kind: i.Kind, State: i.State, Text: v.text(i.Text), Summary: v.text(i.Summary), Content: v.input(i.Content),
		Changes: v.changes(i.Changes), Tool: v.tool(i.Tool), Review: i.Review, Parent: i.Parent, Stamp: i.Stamp,
	}
	if c := i.Command; c != nil {
		out.Command = &event.Command{Line: v.text(c.Line), Output: v.text(c.Output), OutputDropped: c.OutputDropped, ExitCode: c.ExitCode, DurationMS: c.DurationMS, User: c.User}
	}
	return out
}

func (v View) changes(cs []event.FileChange) []event.FileChange {
	var out []event.FileChange
	for _, c := range cs {
		out = append(out, event.FileChange{Path: v.text(c.Path), Kind: c.Kind, Move: v.text(c.Move), Diff: v.text(c.Diff)})
	}
	return out
}

func (v View) tool(t *event.ToolCall) *event.ToolCall {
	if t == nil {
		return nil
	}
	out := &event.ToolCall{Name: t.Name, Server: t.Server, Namespace: t.Namespace, Input: v.raw(t.Input), Output: v.raw(t.Output), Error: v.text(t.Error)}
	for _, c := range t.Content {
		c.Text = v.text(c.Text)
		out.Content = append(out.Content, c)
	}
	return out
}

// Ask is a question without what was typed in answer to it, and without who answered.
func (v View) Ask(r fold.AskRecord) fold.AskRecord {
	out := fold.AskRecord{Ask: v.question(r.Ask), Thread: r.Thread, Turn: r.Turn, State: r.State, Asked: r.Asked, Resolved: r.Resolved}
	if r.Answer != nil {
		out.Answer = &event.Answer{Decision: r.Answer.Decision}
	}
	return out
}

func (v View) question(a event.Ask) event.Ask {
	out := event.Ask{
		ID: a.ID, Kind: a.Kind, Item: a.Item, Title: v.text(a.Title), Reason: v.text(a.Reason), Command: v.text(a.Command), Changes: v.changes(a.Changes), Tool: v.tool(a.Tool),
	}
	for _, q := range a.Questions {
		shown := event.Question{ID: q.ID, Header: v.text(q.Header), Text: v.text(q.Text), Multi: q.Multi, Free: q.Free, Secret: q.Secret}
		for _, o := range q.Options {
			shown.Options = append(shown.Options, event.Option{Label: v.text(o.Label), Description: v.text(o.Description)})
		}
		out.Questions = append(out.Questions, shown)
	}
	return out
}

// Event is an event as it may be shown; false: nothing of it may.
func (v View) Event(e event.Event) (event.Event, bool) {
	out := event.Event{ID: e.ID, Kind: e.Kind, Turn: e.Turn, Time: e.Time, Thread: e.Thread, Seq: e.Seq}
	d := e.Data
	switch e.Kind {
	case event.ThreadUpdated:
		if d.Name == nil {
			return out, false
		}
		name := v.text(*d.Name)
		out.Name = &name
	case event.ThreadStatus:
		out.Status = d.Status
	case event.ThreadDeleted, event.TurnInterrupt, event.StepStarted, event.StepEnded, event.StepReset:
	case event.ThreadReverted:
		out.Cut = d.Cut
	case event.TurnStarted:
		out.Input = v.input(d.Input)
	case event.TurnPhase:
		out.Phase = d.Phase
	case event.TurnEnded:
		out.Outcome, out.Error, out.Usage = d.Outcome, failure(d.Error), d.Usage
	case event.ItemStarted, event.ItemUpdated, event.ItemCompleted:
		if d.Item == nil {
			return out, false
		}
		item := v.Item(*d.Item)
		out.Item, out.ItemID = &item, d.ItemID
	case event.ItemDelta:
		out.ItemID, out.Stream, out.Delta, out.Offset = d.ItemID, d.Stream, v.text(d.Delta), d.Offset
	case event.TodoSnapshot, event.TodoUpdate:
		for _, t := range d.Todos {
			t.Content = v.text(t.Content)
			out.Todos = append(out.Todos, t)
		}
	case event.AskRequested:
		if d.Ask == nil {
			return out, false
		}
		ask := v.question(*d.Ask)
		out.Ask, out.AskID = &ask, d.AskID
	case event.AskResolved:
		out.AskID, out.AskState = d.AskID, d.AskState
		if d.Answer != nil {
			out.Answer = &event.Answer{Decision: d.Answer.Decision}
		}
	case event.UsageUpdated:
		out.Usage = d.Usage
	default:
		return out, false
	}
	return out, true
}
