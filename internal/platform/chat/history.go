package chat

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// page is how many events or items are read at once.
const page = 500

// Messages reads turns as messages: what the user said and what the agent
// answered. Turns whose events are no longer kept are rebuilt from their items.
func Messages(ctx context.Context, threads thread.Service, actor thole.Actor, th fold.Thread, turns []fold.Turn) ([]*Message, error) {
	out := make([]*Message, 0, 2*len(turns))
	for _, t := range turns {
		e, m := NewEncoder(t), NewMessage()
		h := &history{encoder: e, answer: m, turn: t}
		var err error
		if t.Seq > th.Floor {
			err = h.fromLog(ctx, threads, actor)
		} else {
			err = h.fromItems(ctx, threads, actor)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, h.question())
		if m.ID != "" {
			if m.Metadata != nil {
				m.Metadata.Time = view.OfTime(t.Spent)
			}
			out = append(out, m)
		}
	}
	return out, nil
}

type history struct {
	encoder *Encoder
	answer  *Message
	turn    fold.Turn
	user    *event.Item // the item of the turn's own input
}

func (h *history) take(ev event.Event) {
	if h.user == nil && ev.Turn == h.turn.ID && ev.Data.Item != nil && ev.Data.Item.Kind == event.ItemUserMessage {
		h.user = ev.Data.Item
	}
	h.encoder.Event(ev)
	h.answer.Fold(h.encoder.Take())
}

// fromLog reads the turn's events up to its end, or to the end of the log.
func (h *history) fromLog(ctx context.Context, threads thread.Service, actor thole.Actor) error {
	for after := h.turn.Seq - 1; !h.encoder.Ended(); {
		events, err := threads.Events(ctx, actor, h.turn.Thread, after, page)
		if err != nil {
			return err
		}
		for _, ev := range events {
			after = ev.Seq
			h.take(ev)
		}
		if len(events) < page {
			break
		}
	}
	if h.encoder.Ended() {
		return nil
	}
	return h.eachItem(ctx, threads, actor, func(r fold.ItemRecord) {
		if r.Open {
			h.inFlight(r)
		}
	})
}

// inFlight adds the text of an item that is not complete.
func (h *history) inFlight(r fold.ItemRecord) {
	for s, text := range map[event.Stream]string{event.StreamText: r.Item.Text, event.StreamSummary: r.Item.Summary} {
		if text != "" {
			h.take(event.Event{Turn: h.turn.ID, Kind: event.ItemDelta, Data: event.Data{ItemID: r.Item.ID, Stream: s, Delta: text}})
		}
	}
	if c := r.Item.Command; c != nil && c.Output != "" {
		h.take(event.Event{Turn: h.turn.ID, Kind: event.ItemDelta, Data: event.Data{ItemID: r.Item.ID, Stream: event.StreamOutput, Delta: c.Output}})
	}
}

// fromItems rebuilds a turn whose events were removed or belong to a parent's log:
// the same message without its steps, questions and todo lists.
func (h *history) fromItems(ctx context.Context, threads thread.Service, actor thole.Actor) error {
	t := h.turn
	h.take(event.Event{Turn: t.ID, Kind: event.TurnStarted, Time: t.Created})
	err := h.eachItem(ctx, threads, actor, func(r fold.ItemRecord) {
		kind := event.ItemCompleted
		if r.Open {
			kind = event.ItemStarted
		}
		h.take(event.Event{Turn: t.ID, Kind: kind, Time: r.Item.Stamp.Ended, Data: event.Data{Item: &r.Item}})
	})
	if err == nil && t.Outcome != "" {
		h.take(event.Event{Turn: t.ID, Seq: t.Seq, Kind: event.TurnEnded, Time: t.Stamp.Ended, Data: event.Data{Outcome: t.Outcome, Error: t.Error, Usage: &t.Usage}})
	}
	return err
}

func (h *history) eachItem(ctx context.Context, threads thread.Service, actor thole.Actor, f func(fold.ItemRecord)) error {
	cursor := ""
	for {
		items, err := threads.Items(ctx, actor, h.turn.Thread, h.turn.ID, thread.PageParams{Cursor: cursor, Limit: page})
		if err != nil {
			return err
		}
		for _, r := range items.Items {
			f(r)
		}
		if cursor = items.Next; cursor == "" {
			return nil
		}
	}
}

// question is what the user said.
func (h *history) question() *Message {
	m := &Message{ID: string(h.turn.ID) + "/input", Role: "user", Parts: []Part{}, Metadata: &Metadata{RunID: string(h.turn.ID), ClientID: h.turn.ClientID, CreatedAt: h.turn.Created}}
	if h.user != nil {
		m.ID = string(h.user.ID)
	}
	for _, in := range h.turn.Input {
		m.Parts = append(m.Parts, inputPart(in))
	}
	return m
}
