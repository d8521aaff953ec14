package acp

import (
	"context"
	"sync"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// session is a thread that an editor has open. One goroutine owns all of it but todo:
// it takes what happens in the thread, and what the editor wants, one after the other.
type session struct {
	srv    *server
	id     string
	ctx    context.Context
	cancel context.CancelFunc
	feed   *feed
	gone   chan struct{} // closed when the goroutine has ended

	mu   sync.Mutex // guards todo
	todo []func()
	wake chan struct{}

	opened  func(error) // answers the request that opened the session, nil afterwards
	replay  bool        // the history is sent before that
	cursor  *uint64
	cwd     string
	begun   bool // the thread has turns, and stays with its agent
	titled  bool
	set     settings
	prompts []*prompt
	own     map[string]bool // keys of prompts of this session, whose text the editor shows itself
	turns   map[string]*turn
	last    string // the newest turn of which the editor knows
	asks    map[string]*shownAsk
	servers *servers        // those of the editor, nil for none
	always  map[string]bool // their tools that are called without a question
}

// maxTodo bounds what an editor can want at a time.
const maxTodo = 256

// open follows a thread. opened is called once.
func (s *server) open(id string, replay bool, servers *servers, opened func(*session, error)) {
	ctx, cancel := context.WithCancel(s.ctx)
	n := &session{
		srv: s, id: id, ctx: ctx, cancel: cancel, gone: make(chan struct{}), wake: make(chan struct{}, 1), replay: replay,
		feed: &feed{dial: s.cfg.Dial, thread: id, events: make(chan any)},
		own:  map[string]bool{}, turns: map[string]*turn{}, asks: map[string]*shownAsk{}, servers: servers, always: map[string]bool{},
	}
	n.opened = func(err error) { n.opened = nil; opened(n, err) }
	if before := s.put(n); before != nil {
		before.stop()
	}
	if servers != nil {
		servers.belongs(n)
		s.work.Go(func() { servers.keep(ctx, id) })
	}
	s.work.Go(func() { n.feed.run(ctx) })
	s.work.Go(n.run)
}

// stop ends the session and waits. The thread and its turns go on.
func (s *session) stop() {
	s.cancel()
	<-s.gone
}

// do has the session's goroutine run f, after what was asked for before.
func (s *session) do(f func()) error {
	s.mu.Lock()
	full := len(s.todo) >= maxTodo
	s.mu.Unlock()
	if full {
		return jsonrpc.Overloaded()
	}
	s.later(f)
	return nil
}

// later is do for what cannot be refused: answers to requests of the session, and cancels. It
// never waits.
func (s *session) later(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.todo = append(s.todo, f)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *session) run() {
	defer close(s.gone)
	defer s.srv.drop(s)
	defer s.servers.close()
	defer s.cancel()
	for s.ctx.Err() == nil {
		select {
		case e := <-s.feed.events:
			s.take(e)
		case <-s.wake:
			s.mu.Lock()
			todo := s.todo
			s.todo = nil
			s.mu.Unlock()
			for _, f := range todo {
				f()
			}
		case <-s.ctx.Done():
		}
	}
	s.end(jsonrpc.Errorf(codeCancelled, "the session was closed"))
}

// end answers what still waits.
func (s *session) end(err error) {
	if s.opened != nil {
		s.opened(err)
	}
	for _, p := range s.prompts {
		_ = p.req.Error(toWire(err))
	}
	s.prompts = nil
}

func (s *session) take(e any) {
	switch e := e.(type) {
	case attached:
		s.attached(e)
	case notice:
		s.notice(e)
		if e.Seq > 0 {
			s.cursor = &e.Seq
		}
	case lost:
		e.after <- s.cursor
	case failed:
		if e.final || s.opened != nil {
			s.end(e.err)
			s.cancel()
		}
	}
}

// attached takes the thread as it is. Before the session is open, the editor gets its
// history or nothing, and then what it can choose.
func (s *session) attached(at attached) {
	s.cwd = at.Cwd
	if s.opened == nil {
		s.rejoin(at)
		return
	}
	s.cursor = &at.Seq
	s.begun = at.Thread.Preview != "" || at.Turn != nil
	s.set = s.read(at.ThreadView)
	if err := s.models(); err != nil {
		s.end(err)
		s.cancel()
		return
	}
	if s.replay {
		if err := s.history(""); err != nil {
			s.end(err)
			s.cancel()
			return
		}
		if len(at.Todos) > 0 {
			s.plan(steps(at.Todos))
		}
	}
	if at.Turn != nil {
		s.joined(at.Turn, s.replay)
	}
	s.opened(nil)
	s.commands()
	if t := title(at.Thread); t != "" {
		s.titled = true
		s.update(object{"sessionUpdate": "session_info_update", "title": t, "updatedAt": stamp(at.Thread.UpdatedAt)})
	}
	s.showAsks(at.Asks)
}

// rejoin takes up a thread again. After a cursor the notices that follow say all; texts
// that grew meanwhile are in the snapshot alone.
func (s *session) rejoin(at attached) {
	if at.Turn != nil {
		t := s.turn(at.Turn.ID)
		for i := range at.Turn.Items {
			if it := &at.Turn.Items[i]; it.CompletedAtMs == nil {
				t.soFar[it.ID] = it
			}
		}
	}
	if !at.fresh {
		return
	}
	s.cursor = &at.Seq
	if err := s.history(s.last); err != nil {
		s.warn("The history since the connection was lost cannot be read: " + err.Error())
	}
	if at.Turn != nil {
		s.joined(at.Turn, true)
	}
	s.reconcile()
	s.showAsks(at.Asks)
}

// update sends the editor something of the session. It waits for an editor that does not
// read.
func (s *session) update(u any) {
	_ = s.srv.rpc.Notify(s.ctx, "session/update", object{"sessionId": s.id, "update": u})
}

// warn shows the user a sentence: as a notice where the editor has them, otherwise as
// text of the agent's.
func (s *session) warn(text string) {
	if s.srv.can.notices {
		s.update(object{"sessionUpdate": "notice", "severity": "warning", "title": text})
		return
	}
	s.update(chunk{Update: "agent_message_chunk", Content: textBlock("Warning: " + text + "\n\n")})
}

// params reads what all notifications have.
type params struct {
	ThreadID  string             `json:"threadId"`
	TurnID    string             `json:"turnId"`
	ItemID    string             `json:"itemId"`
	Delta     string             `json:"delta"`
	Message   string             `json:"message"`
	Name      string             `json:"threadName"`
	Turn      app.Turn           `json:"turn"`
	Item      app.Item           `json:"item"`
	Error     app.TurnError      `json:"error"`
	WillRetry bool               `json:"willRetry"`
	Plan      []app.PlanStep     `json:"plan"`
	Usage     app.ThreadUsage    `json:"tokenUsage"`
	Settings  app.ThreadSettings `json:"threadSettings"`
	RequestID any                `json:"requestId"`
}

func (s *session) notice(n notice) {
	var p params
	if strictjson.Unmarshal(n.Params, &p) != nil || p.ThreadID != s.id {
		return
	}
	if n.ask {
		if n.Method == "item/tool/call" {
			s.servers.renew()
		}
		s.askedNow()
		return
	}
	switch n.Method {
	case "turn/started":
		s.turn(p.Turn.ID)
		if !s.begun {
			s.begun = true
			s.offer()
		}
	case "turn/completed":
		s.turnEnded(&p.Turn)
	case "item/started", "thole/item/updated":
		s.item(p.TurnID, &p.Item, false)
	case "item/completed":
		s.item(p.TurnID, &p.Item, true)
	case "item/agentMessage/delta", "item/plan/delta", "item/reasoning/textDelta", "item/reasoning/summaryTextDelta", "item/commandExecution/outputDelta":
		s.delta(n.Method, p.TurnID, p.ItemID, p.Delta)
	case "thole/step/reset":
		s.cutOff(s.turn(p.TurnID))
	case "turn/plan/updated":
		s.plan(p.Plan)
	case "thread/tokenUsage/updated":
		if size := p.Usage.ModelContextWindow; size != nil {
			s.update(object{"sessionUpdate": "usage_update", "used": max(p.Usage.Last.TotalTokens, 0), "size": *size})
		}
	case "thread/name/updated":
		s.titled = true
		s.update(object{"sessionUpdate": "session_info_update", "title": p.Name})
	case "thread/settings/updated":
		s.changed(p.Settings)
	case "thread/queue/changed":
		s.queueChanged()
	case "serverRequest/resolved":
		id, _ := p.RequestID.(string)
		s.withdraw(id)
	case "warning":
		s.warn(p.Message)
	case "error":
		if p.WillRetry {
			s.warn("The agent tries again: " + p.Error.Message)
		}
	case "thread/deleted":
		s.end(jsonrpc.Errorf(codeNotFound, "the thread was deleted"))
		s.cancel()
	}
}

func (s *session) plan(list []app.PlanStep) {
	entries := make([]object, 0, len(list))
	for _, p := range list {
		word := map[string]string{"inProgress": "in_progress", "completed": "completed"}[p.Status]
		if word == "" {
			word = "pending"
		}
		entries = append(entries, object{"content": p.Step, "priority": "medium", "status": word})
	}
	s.update(object{"sessionUpdate": "plan", "entries": entries})
}
