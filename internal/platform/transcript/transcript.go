// Package transcript writes a whole thread for people and programs to keep: every
// message, reasoning, command with its output, diff, tool call, question with its
// answer, and what was used, as Markdown or JSON. It reads page by page and holds no
// more than one page; it changes nothing, and shows no answer to a secret question.
package transcript

import (
	"context"
	"io"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// Format is how a transcript is written.
type Format string

// The formats there are.
const (
	Markdown Format = "markdown"
	JSON     Format = "json"
)

// ParseFormat reads a format's name; "" is Markdown.
func ParseFormat(name string) (Format, error) {
	switch name {
	case "", "md", "markdown":
		return Markdown, nil
	case "json":
		return JSON, nil
	}
	return "", thole.Errorf(thole.CodeInvalid, "unknown format %q", name).WithHint("use markdown or json")
}

// Media is the media type of the format.
func (f Format) Media() string {
	if f == JSON {
		return "application/json"
	}
	return "text/markdown; charset=utf-8"
}

// writer writes the parts of a transcript in their order: begin, then of each turn
// turn, its items and questions and turnEnd, then end.
type writer interface {
	begin(th fold.Thread, todos []view.Todo, now time.Time)
	turn(t fold.Turn)
	item(it view.Item)
	question(q view.Question)
	turnEnd(t fold.Turn)
	end()
}

// page is how many turns or items are read at once.
const page = 100

// Write writes a thread as the actor may see it. An error after the first byte leaves
// half a transcript: its reader must not take it for a whole one.
func Write(ctx context.Context, threads thread.Service, actor thole.Actor, id thole.ThreadID, format Format, now time.Time, to io.Writer) error {
	th, err := threads.Get(ctx, actor, id)
	if err != nil {
		return err
	}
	asks, err := threads.Asks(ctx, actor, id, false)
	if err != nil {
		return err
	}
	todos, err := threads.Todos(ctx, actor, id)
	if err != nil {
		return err
	}
	out := &output{to: to}
	var w writer = &markdown{output: out}
	if format == JSON {
		w = &document{output: out}
	}
	questions := map[thole.TurnID][]view.Question{}
	for _, a := range asks {
		questions[a.Turn] = append(questions[a.Turn], view.OfAsk(a))
	}
	r := reader{threads: threads, actor: actor, id: id, out: out, w: w}
	w.begin(th, view.OfTodos(todos), now)
	for cursor := ""; out.err == nil; {
		turns, err := threads.Turns(ctx, actor, id, thread.PageParams{Cursor: cursor, Limit: page})
		if err != nil {
			return err
		}
		for _, t := range turns.Items {
			if err := r.turn(ctx, t, questions[t.ID]); err != nil {
				return err
			}
		}
		if cursor = turns.Next; cursor == "" {
			break
		}
	}
	w.end()
	return out.err
}

type reader struct {
	threads thread.Service
	actor   thole.Actor
	id      thole.ThreadID
	out     *output
	w       writer
}

func (r reader) turn(ctx context.Context, t fold.Turn, questions []view.Question) error {
	r.w.turn(t)
	for cursor := ""; r.out.err == nil; {
		items, err := r.threads.Items(ctx, r.actor, r.id, t.ID, thread.PageParams{Cursor: cursor, Limit: page})
		if err != nil {
			return err
		}
		for _, it := range items.Items {
			v := view.OfItem(it)
			if c := v.Command; c != nil && c.OutputDropped > 0 {
				if err := r.whole(ctx, it.Item.ID, c); err != nil {
					return err
				}
			}
			questions = r.ask(questions, func(q view.Question) bool { return q.ItemID != v.ID && q.AskedAt.Before(v.Stamp.Started) })
			r.w.item(v)
			questions = r.ask(questions, func(q view.Question) bool { return q.ItemID == v.ID })
		}
		if cursor = items.Next; cursor == "" {
			break
		}
	}
	r.ask(questions, func(view.Question) bool { return true })
	r.w.turnEnd(t)
	return r.out.err
}

// whole puts all that is kept of an output into a command.
func (r reader) whole(ctx context.Context, item thole.ItemID, c *view.Command) error {
	text := ""
	for offset := int64(0); ; {
		part, err := r.threads.Output(ctx, r.actor, r.id, item, offset, 0)
		if err != nil {
			return err
		}
		if part.Offset > offset {
			text += Gap(part.Offset - offset)
		}
		text += part.Text
		c.OutputDropped = part.Skipped
		if offset = part.Next; offset == 0 {
			c.Output = text
			return nil
		}
		if end := part.Offset + int64(len(part.Text)); offset > end {
			text += Gap(offset - end)
		}
	}
}

// ask writes the questions whose turn it is and returns the others.
func (r reader) ask(all []view.Question, due func(view.Question) bool) (others []view.Question) {
	for _, q := range all {
		if due(q) {
			r.w.question(q)
		} else {
			others = append(others, q)
		}
	}
	return others
}

// output remembers the first error: nothing is written after it.
type output struct {
	to  io.Writer
	err error
}

func (o *output) put(parts ...string) {
	for _, p := range parts {
		if o.err == nil && p != "" {
			_, o.err = io.WriteString(o.to, p)
		}
	}
}
