package httpapi

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/chat"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// inputPart is one part of a message.
type inputPart struct {
	Type string `json:"type" enum:"text,image,file"`
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty" doc:"a data: URL in base64, or for images a path in the workspace; a file has at most 10 MB"`
	Name string `json:"name,omitempty" doc:"of a file; it is made a plain name without a path"`
}

// Message is what a user says: parts, or just a text.
type Message struct {
	Input    []inputPart `json:"input,omitempty"`
	Text     string      `json:"text,omitempty" doc:"short for one text part"`
	ClientID string      `json:"client_id,omitempty" doc:"the caller's own id of the message, echoed"`
}

func (in Message) input() ([]thole.Input, error) {
	if in.Text != "" {
		if len(in.Input) > 0 {
			return nil, thole.Errorf(thole.CodeInvalid, "send either text or input")
		}
		return thole.Text(in.Text), nil
	}
	if len(in.Input) == 0 {
		return nil, thole.Errorf(thole.CodeInvalid, "there is nothing to run: text and input are empty")
	}
	out := make([]thole.Input, len(in.Input))
	for i, p := range in.Input {
		if p.Type == thole.InputFile {
			p.Name = thole.FileName(p.Name)
		}
		out[i] = thole.Input(p)
	}
	return out, nil
}

type RunID struct {
	ID string `path:"run_id" format:"uuid"`
}

// run finds a turn by its own id, among what the actor may see.
func (s *Server) run(ctx context.Context, id string) (fold.Turn, error) {
	turn := thole.TurnID(id)
	threads, err := s.cfg.Index.ThreadsOf(ctx, turn)
	if err != nil {
		return fold.Turn{}, err
	}
	for _, t := range threads {
		found, err := s.cfg.Threads.Turn(ctx, actorOf(ctx), t, turn)
		if thole.CodeOf(err) != thole.CodeNotFound {
			return found, err
		}
	}
	return fold.Turn{}, thole.Errorf(thole.CodeNotFound, "run not found: %s", id)
}

func runAnswer(t fold.Turn, err error) (*body[view.Run], error) { return answer(view.OfTurn(t), err) }

func (s *Server) runRoutes() {
	op(s, "POST", "/sessions/{session_id}/runs", "Start a run", 201, func(ctx context.Context, in *struct {
		SessionID
		KeyIn
		Body struct {
			Message
			Settings
			Once         bool            `json:"once,omitempty" doc:"the settings are for this run only"`
			OutputSchema json.RawMessage `json:"output_schema,omitempty" doc:"a JSON schema of an object: the run's last message is JSON text that satisfies it"`
		}
	}) (*body[view.Run], error) {
		input, err := in.Body.input()
		if err != nil {
			return nil, err
		}
		p := thread.StartTurn{Thread: in.thread(), Input: input, ClientID: in.Body.ClientID, Trace: traceOf(ctx), Idempotency: in.Key, Schema: in.Body.OutputSchema}
		if in.Body.any() {
			settings := in.Body.over(event.Settings{})
			if err := s.usable(settings.Provider); err != nil {
				return nil, err
			}
			if in.Body.Once {
				p.Once = &settings
			} else {
				p.Settings = &settings
			}
		}
		return runAnswer(s.cfg.Threads.StartTurn(ctx, actorOf(ctx), p))
	})
	op(s, "GET", "/sessions/{session_id}/runs", "List runs", 200, func(ctx context.Context, in *struct {
		SessionID
		PageIn
	}) (*body[list[view.Run]], error) {
		page, err := s.cfg.Threads.Turns(ctx, actorOf(ctx), in.thread(), in.params())
		return answer(paged(page, view.OfTurn), err)
	})
	op(s, "GET", "/runs/{run_id}", "Read a run", 200, func(ctx context.Context, in *RunID) (*body[view.Run], error) {
		return runAnswer(s.run(ctx, in.ID))
	})
	op(s, "POST", "/runs/{run_id}/cancel", "Ask a run to stop", 202, func(ctx context.Context, in *RunID) (*body[view.Run], error) {
		t, err := s.run(ctx, in.ID)
		if err != nil || t.Outcome != "" { // a run that ended needs no stopping
			return runAnswer(t, err)
		}
		if err := s.cfg.Threads.Interrupt(ctx, actorOf(ctx), t.Thread, t.ID); err != nil {
			if now, rerr := s.run(ctx, in.ID); rerr == nil && now.Outcome != "" {
				return runAnswer(now, nil)
			}
			return nil, err
		}
		return runAnswer(s.run(ctx, in.ID))
	})
	op(s, "POST", "/runs/{run_id}/steer", "Add a message to a running run", 202, func(ctx context.Context, in *struct {
		RunID
		KeyIn
		Body Message
	}) (*body[view.Run], error) {
		input, err := in.Body.input()
		if err != nil {
			return nil, err
		}
		t, err := s.run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return answer(once(ctx, s, "POST /runs/"+in.ID+"/steer", in.Key, in.Body, func() (view.Run, error) {
			t, err := s.cfg.Threads.Steer(ctx, actorOf(ctx), thread.Steer{Thread: t.Thread, ID: keyedMessage(ctx, in.ID, in.Key), Expected: t.ID, Input: input, ClientID: in.Body.ClientID})
			return view.OfTurn(t), err
		}))
	})
	op(s, "POST", "/sessions/{session_id}/compact", "Have the agent shorten its memory of the session, after the run under way", 202, func(ctx context.Context, in *struct {
		SessionID
		KeyIn
	}) (*body[view.QueuedMessage], error) {
		return answer(once(ctx, s, "POST /sessions/"+in.ID+"/compact", in.Key, nil, func() (view.QueuedMessage, error) {
			m, err := s.cfg.Threads.Enqueue(ctx, actorOf(ctx), thread.Enqueue{Thread: in.thread(), ID: keyedMessage(ctx, in.ID+"/compact", in.Key), Input: thole.Compact(), Command: true, Start: true})
			return view.OfMessage(m), err
		}))
	})
	s.historyRoutes()
}

func (s *Server) historyRoutes() {
	type sessionPage struct {
		SessionID
		PageIn
		Run string `query:"run_id"`
	}
	type runPage struct {
		RunID
		PageIn
	}
	op(s, "GET", "/sessions/{session_id}/items", "List items", 200, func(ctx context.Context, in *sessionPage) (*body[list[view.Item]], error) {
		page, err := s.cfg.Threads.Items(ctx, actorOf(ctx), in.thread(), thole.TurnID(in.Run), in.params())
		return answer(paged(page, view.OfItem), err)
	})
	op(s, "GET", "/runs/{run_id}/items", "List the items of a run", 200, func(ctx context.Context, in *runPage) (*body[list[view.Item]], error) {
		t, err := s.run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		page, err := s.cfg.Threads.Items(ctx, actorOf(ctx), t.Thread, t.ID, in.params())
		return answer(paged(page, view.OfItem), err)
	})
	op(s, "GET", "/sessions/{session_id}/tool-executions", "List commands, file changes and tool calls", 200, func(ctx context.Context, in *sessionPage) (*body[list[view.ToolExecution]], error) {
		return answer(s.toolExecutions(ctx, in.thread(), thole.TurnID(in.Run), in.params()))
	})
	op(s, "GET", "/runs/{run_id}/tool-executions", "List the tool executions of a run", 200, func(ctx context.Context, in *runPage) (*body[list[view.ToolExecution]], error) {
		t, err := s.run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return answer(s.toolExecutions(ctx, t.Thread, t.ID, in.params()))
	})
	op(s, "GET", "/sessions/{session_id}/messages", "List the chat as UI messages; pages are whole runs", 200, func(ctx context.Context, in *struct {
		SessionID
		PageIn
	}) (*body[list[*chat.Message]], error) {
		out, _, err := s.messages(ctx, in.thread(), in.params())
		return answer(out, err)
	})
}

// messages reads a page of runs as chat. Whichever way the pages go, each is in
// reading order.
func (s *Server) messages(ctx context.Context, id thole.ThreadID, p thread.PageParams) (list[*chat.Message], fold.Thread, error) {
	return messagesOf(ctx, s.cfg.Threads, actorOf(ctx), id, p)
}

func messagesOf(ctx context.Context, threads thread.Service, actor thole.Actor, id thole.ThreadID, p thread.PageParams) (list[*chat.Message], fold.Thread, error) {
	th, err := threads.Get(ctx, actor, id)
	if err != nil {
		return list[*chat.Message]{}, th, err
	}
	page, err := threads.Turns(ctx, actor, id, p)
	if err != nil {
		return list[*chat.Message]{}, th, err
	}
	turns := page.Items
	if p.Desc {
		turns = make([]fold.Turn, 0, len(page.Items))
		for i := len(page.Items) - 1; i >= 0; i-- {
			turns = append(turns, page.Items[i])
		}
	}
	all, err := chat.Messages(ctx, threads, actor, th, turns)
	return list[*chat.Message]{Items: all, Next: page.Next, Back: page.Back}, th, err
}

// toolExecutions walks the items until a page is full: the log does not know
// this view, and most items of a working agent are in it.
func (s *Server) toolExecutions(ctx context.Context, id thole.ThreadID, turn thole.TurnID, p thread.PageParams) (list[view.ToolExecution], error) {
	out := list[view.ToolExecution]{Items: []view.ToolExecution{}}
	limit := p.Limit
	p.Limit = 200
	for range 50 { // bounds one request; the cursor goes on from there
		page, err := s.cfg.Threads.Items(ctx, actorOf(ctx), id, turn, p)
		if err != nil {
			return out, err
		}
		for _, r := range page.Items {
			if v, ok := view.OfToolItem(r); ok {
				if len(out.Items) == limit {
					out.Next = thread.CursorAt(out.Items[limit-1].Seq)
					return out, nil
				}
				out.Items = append(out.Items, v)
			}
		}
		if out.Next = page.Next; page.Next == "" {
			return out, nil
		}
		p.Cursor = page.Next
	}
	return out, nil
}
