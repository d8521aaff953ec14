package appserver

import (
	"cmp"
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

func (s *Server) registerExtension() {
	inThread(on(s, "thole/thread/attach", s.attach), serial.Exclusive, func(p *app.AttachParams) string { return p.ThreadID })
	inThread(on(s, "thole/thread/todos", s.todos), serial.Shared, func(p *app.ThreadParams) string { return p.ThreadID })
	inThread(on(s, "thole/thread/setup", s.setup), serial.Exclusive, func(p *app.ThreadParams) string { return p.ThreadID })
	inThread(on(s, "thole/ask/list", s.askList), serial.Shared, func(p *app.AskListParams) string { return p.ThreadID })
	inThread(on(s, "thole/ask/answer", s.askAnswer), serial.Exclusive, func(p *app.AskAnswerParams) string { return p.ThreadID })
	on(s, "thole/provider/list", s.providerList)
}

// attach is resume for clients that keep a cursor: with one it continues there,
// and the snapshot it returns is the end of what is replayed.
func (s *Server) attach(ctx context.Context, c *conn, p *app.AttachParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	o := c.lag()
	o.After, o.NoDeltas = p.After, o.NoDeltas || p.NoDeltas
	sub, err := c.subscribe(ctx, id, o)
	if err != nil {
		return answer{}, err
	}
	snap := sub.in.Snapshot
	out := app.AttachResult{ThreadView: s.viewFor(c, snap.Thread), Seq: snap.Seq, Asks: asks(snap.Asks, snap.Thread.WorkDir()), Todos: todos(snap.Todos), Queue: submissions(snap.Queue)}
	if snap.Open != nil {
		t := turn(*snap.Open)
		t.ItemsView = app.ItemsFull
		for _, it := range snap.Open.Items {
			if shows(it) {
				t.Items = append(t.Items, item(it, snap.Thread.WorkDir()))
			}
		}
		out.Turn = &t
	}
	var after []jsonrpc.Frame
	if p.After == nil {
		after = s.replay(c.peer(), &thread.Snapshot{Thread: snap.Thread, Asks: snap.Asks, Taken: snap.Taken})
	}
	a := later(out, after...)
	a.then, a.undo = sub.start, sub.remove
	return a, nil
}

func (s *Server) todos(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	list, err := s.cfg.Threads.Todos(ctx, c.who(), id)
	return result(app.TodoListResult{Data: todos(list)}, err)
}

// setup starts a turn that sets the workspace up again, or lets it wait.
func (s *Server) setup(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
	a, err := s.turnCommand(ctx, c, p.ThreadID, thole.Setup())
	if err != nil {
		return answer{}, err
	}
	var out app.SetupResult
	if len(a.after) == 0 { // it does not wait
		page, err := s.cfg.Threads.Turns(ctx, c.who(), thole.ThreadID(p.ThreadID), thread.PageParams{Desc: true, Limit: 1})
		if err != nil {
			return answer{}, err
		}
		for _, t := range page.Items {
			out.TurnID = ptr(string(t.ID))
		}
	}
	a.result = out
	return a, nil
}

func todos(list []event.Todo) []app.Todo {
	out := make([]app.Todo, 0, len(list))
	for _, t := range list {
		out = append(out, app.Todo{ID: string(t.ID), Content: t.Content, State: string(t.State)})
	}
	return out
}

func (s *Server) askList(ctx context.Context, c *conn, p *app.AskListParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return answer{}, err
	}
	list, err := s.cfg.Threads.Asks(ctx, c.who(), id, p.PendingOnly)
	return result(app.AskListResult{Data: asks(list, t.WorkDir())}, err)
}

func (s *Server) askAnswer(ctx context.Context, c *conn, p *app.AskAnswerParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return answer{}, err
	}
	r, err := s.cfg.Threads.Answer(ctx, c.who(), id, thole.AskID(p.AskID), fromAnswer(p.Answer))
	return result(app.AskResult{Ask: askRecord(r, t.WorkDir())}, err)
}

func asks(list []fold.AskRecord, dir string) []app.Ask {
	out := make([]app.Ask, 0, len(list))
	for _, r := range list {
		out = append(out, askRecord(r, dir))
	}
	return out
}

func askRecord(r fold.AskRecord, dir string) app.Ask {
	a := r.Ask
	out := app.Ask{
		ID: string(a.ID), Kind: string(a.Kind), State: string(r.State), TurnID: string(r.Turn), ItemID: string(a.Item), Title: a.Title,
		Reason: a.Reason, Command: a.Command, Input: a.Input, Schema: a.Schema, AskedAtMs: thole.Millis(r.Asked), DeadlineMs: millis(a.Deadline),
	}
	switch {
	case a.Kind == event.AskCommand:
		out.Cwd = absolute(dir, a.Dir)
	case a.Kind == event.AskPermissions && a.Tool == nil && isProfile(a.Amendment):
		out.Call = string(a.Amendment)
	case a.Kind == event.AskPermissions, a.Kind == event.AskTool:
		out.Call = toolLine(a)
	}
	if len(a.Changes) > 0 {
		out.Changes = changes(a.Changes, dir)
	}
	if len(a.Questions) > 0 {
		out.Questions = questions(a)
	}
	for _, d := range a.Decisions {
		out.Decisions = append(out.Decisions, string(d))
	}
	if r.Answer != nil {
		out.Answer = &app.Answer{
			Decision: string(r.Answer.Decision), Message: r.Answer.Message, Answers: r.Answer.Answers, Input: r.Answer.Input,
			Amendment: r.Answer.Amendment, Result: r.Answer.Result,
		}
	}
	if r.Answer != nil || r.State == event.AskSelfAnswered {
		if out.AnsweredBy = r.Actor.Who(); out.AnsweredBy == string(r.Actor.User) {
			out.AnsweredBy = cmp.Or(r.Actor.Client, out.AnsweredBy)
		}
	}
	return out
}

func (s *Server) providerList(context.Context, *conn, *struct{}) (answer, error) {
	s.cfg.Settle()
	out := app.ProviderListResult{Data: []json.RawMessage{}}
	for _, info := range s.cfg.Providers() {
		raw, err := json.Marshal(info)
		if err != nil {
			return answer{}, err
		}
		out.Data = append(out.Data, raw)
	}
	return answer{result: out}, nil
}
