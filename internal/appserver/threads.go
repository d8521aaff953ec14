package appserver

import (
	"cmp"
	"context"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

func (s *Server) registerThreads() {
	start := on(s, "thread/start", s.threadStart)
	start.causes = true
	start.gated = map[string]bool{"permissions": false, "historyMode": false, "threadId": true, "source": true, "name": true}
	fork := inThread(on(s, "thread/fork", s.threadFork), serial.Shared, func(p *app.ThreadForkParams) string { return p.ThreadID })
	fork.causes = true
	resume := inThread(on(s, "thread/resume", s.threadResume), serial.Exclusive, func(p *app.ThreadResumeParams) string { return p.ThreadID })
	resume.gated = map[string]bool{"permissions": false, "initialTurnsPage": false, "history": false, "path": false}
	byThread := func(p *app.ThreadParams) string { return p.ThreadID }
	inThread(on(s, "thread/archive", s.archive(true)), serial.Exclusive, byThread)
	inThread(on(s, "thread/unarchive", s.archive(false)), serial.Exclusive, byThread)
	inThread(on(s, "thread/delete", s.threadDelete), serial.Exclusive, byThread)
	inThread(on(s, "thread/unsubscribe", s.threadUnsubscribe), serial.Exclusive, byThread)
	inThread(on(s, "thread/name/set", s.threadName), serial.Exclusive, func(p *app.ThreadNameParams) string { return p.ThreadID })
	inThread(on(s, "thread/settings/update", s.settingsUpdate), serial.Exclusive, func(p *app.SettingsUpdateParams) string { return p.ThreadID })
}

// threadID refuses what can be no thread's id, by the name upstream gives it.
func threadID(id string) (thole.ThreadID, error) {
	if !thole.ValidUUID(id) {
		return "", thole.Errorf(thole.CodeInvalid, "invalid thread id: %q is not a lower-case UUID", id).WithHint("thole thread list shows the threads")
	}
	return thole.ThreadID(id), nil
}

func (s *Server) threadStart(ctx context.Context, c *conn, p *app.ThreadStartParams) (answer, error) {
	set, plan, err := s.settings(wish{Settings: p.Settings, sandbox: str(p.Sandbox), instructions: instructions(p)}, event.Settings{})
	if err != nil {
		return answer{}, err
	}
	if plan {
		set.Profile = thole.ProfilePlan
	}
	if set.Provider == "" && set.Model == "" {
		def, err := s.defaults(ctx, c)
		if err != nil {
			return answer{}, err
		}
		set.Provider, set.Model, set.Effort = def.Provider, def.Model, cmp.Or(set.Effort, def.Effort)
	}
	set.Provider = cmp.Or(set.Provider, s.catalog.provider())
	set.Profile = cmp.Or(set.Profile, s.cfg.DefaultProfile)
	create := thread.Create{
		ID: thole.NewID[thole.ThreadID](s.cfg.Now()), Name: str(p.Name), Settings: set, Source: cmp.Or(str(p.ThreadSource), sourceApp), Client: c.peer().info.Name, Ephemeral: p.Ephemeral != nil && *p.Ephemeral,
	}
	if p.ThreadID != nil {
		if create.ID, err = threadID(*p.ThreadID); err != nil {
			return answer{}, err
		}
		if _, err := s.cfg.Threads.Get(ctx, c.who(), create.ID); err == nil { // its source is not made again
			return answer{}, thole.Errorf(thole.CodeConflict, "thread id is in use: %s", create.ID)
		}
	}
	if create.Files, err = s.source(ctx, c, create.ID, p); err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Create(ctx, c.who(), create)
	if err != nil {
		return answer{}, err
	}
	return s.opened(ctx, c, t)
}

// instructions joins the two texts that a client may add to the system prompt.
func instructions(p *app.ThreadStartParams) string {
	base, more := str(p.BaseInstructions), str(p.DeveloperInstructions)
	if base != "" && more != "" {
		return base + "\n\n" + more
	}
	return base + more
}

// opened answers with a new thread and subscribes its maker.
func (s *Server) opened(ctx context.Context, c *conn, t fold.Thread) (answer, error) {
	sub, err := c.subscribe(ctx, t.ID, c.lag())
	if err != nil {
		return answer{}, err
	}
	return answer{result: s.viewFor(c, sub.in.Snapshot.Thread), then: sub.start, undo: sub.cancel}, nil
}

// lag is how a connection subscribes. One that wants no deltas is spared them.
func (c *conn) lag() thread.SubscribeOptions {
	p := c.peer()
	for _, method := range deltaMethods {
		if p.takes(&frame{method: method}) {
			return thread.SubscribeOptions{}
		}
	}
	return thread.SubscribeOptions{NoDeltas: true}
}

var deltaMethods = [...]string{
	"item/agentMessage/delta", "item/plan/delta", "item/reasoning/textDelta", "item/reasoning/summaryTextDelta", "item/commandExecution/outputDelta",
}

// created encodes the announcement of a thread. The event has all that a new
// thread is.
func (s *Server) created(e *event.Event) *frame {
	t := fold.Thread{ID: e.Thread, Created: e.Time, Updated: e.Time, Status: event.Status{Loaded: true}}
	if b := e.Data.Created; b != nil {
		t.Source, t.Client, t.Ephemeral, t.ForkedFrom, t.Parent, t.Preview = b.Source, b.Client, b.Ephemeral, b.ForkedFrom, b.Parent, b.Preview
		if b.Files != nil {
			t.Files = *b.Files
		}
	}
	if e.Data.Settings != nil {
		t.Settings = *e.Data.Settings
	}
	if e.Data.Name != nil {
		t.Name = *e.Data.Name
	}
	return note("thread/started", thole.Millis(e.Time), app.ThreadStarted{Thread: s.thread(t)})
}

func (s *Server) threadFork(ctx context.Context, c *conn, p *app.ThreadForkParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	parent, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return answer{}, err
	}
	if err := c.stays(p.Settings, parent); err != nil {
		return answer{}, err
	}
	set, _, err := s.settings(wish{Settings: p.Settings, sandbox: str(p.Sandbox)}, parent.Settings)
	if err != nil {
		return answer{}, err
	}
	if set.Provider != "" && set.Provider != cmp.Or(parent.Settings.Provider, s.catalog.provider()) {
		return answer{}, errOtherProvider(set.Provider)
	}
	t, err := s.cfg.Threads.Fork(ctx, c.who(), id, thread.Fork{
		UpTo: thole.TurnID(str(p.LastTurnID)), Settings: &set, Source: sourceApp, Client: c.peer().info.Name, Ephemeral: p.Ephemeral,
	})
	if err != nil {
		return answer{}, err
	}
	a, err := s.opened(ctx, c, t)
	if err != nil || p.ExcludeTurns {
		return a, err
	}
	v := a.result.(app.ThreadView)
	if v.Thread.Turns, err = s.fullTurns(ctx, c, t.ID); err != nil {
		return a, err
	}
	a.result = v
	return a, nil
}

func errOtherProvider(name string) error {
	return thole.Errorf(thole.CodeInvalid, "a thread stays with its provider; %s cannot continue it", name).
		WithHint("start a new thread with that provider")
}

func (s *Server) archive(yes bool) func(context.Context, *conn, *app.ThreadParams) (answer, error) {
	return func(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
		id, err := threadID(p.ThreadID)
		if err != nil {
			return answer{}, err
		}
		t, err := s.cfg.Threads.Update(ctx, c.who(), id, thread.Update{Archived: &yes})
		if err != nil {
			return answer{}, err
		}
		if yes {
			return answer{result: app.Empty{}}, nil
		}
		return answer{result: app.ThreadResult{Thread: s.thread(t)}}, nil
	}
}

func (s *Server) threadDelete(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err == nil {
		err = s.cfg.Threads.Delete(ctx, c.who(), id)
	}
	return result(app.Empty{}, err)
}

func (s *Server) threadUnsubscribe(ctx context.Context, c *conn, p *app.ThreadParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	if c.unsubscribe(id) {
		return answer{result: app.UnsubscribeResult{Status: "unsubscribed"}}, nil
	}
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil && thole.CodeOf(err) != thole.CodeNotFound {
		return answer{}, err
	}
	if !t.Status.Loaded {
		return answer{result: app.UnsubscribeResult{Status: "notLoaded"}}, nil
	}
	return answer{result: app.UnsubscribeResult{Status: "notSubscribed"}}, nil
}

func (s *Server) threadName(ctx context.Context, c *conn, p *app.ThreadNameParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err == nil && strings.TrimSpace(p.Name) == "" {
		err = thole.Errorf(thole.CodeInvalid, "thread name must not be empty")
	}
	if err == nil {
		_, err = s.cfg.Threads.Update(ctx, c.who(), id, thread.Update{Name: &p.Name})
	}
	return result(app.Empty{}, err)
}

func (s *Server) settingsUpdate(ctx context.Context, c *conn, p *app.SettingsUpdateParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	sandbox, err := sandboxWord(p.SandboxPolicy)
	if err != nil {
		return answer{}, err
	}
	_, err = s.change(ctx, c, id, wish{Settings: p.Settings, sandbox: sandbox, effort: p.Effort, mode: p.CollaborationMode})
	return result(app.Empty{}, err)
}

// change makes a wish a thread's settings and reports whether it asked for plan
// mode, which belongs to turns.
func (s *Server) change(ctx context.Context, c *conn, id thole.ThreadID, w wish) (plan bool, err error) {
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return false, err
	}
	if err := c.stays(w.Settings, t); err != nil {
		return false, err
	}
	set, plan, err := s.settings(w, t.Settings)
	if err != nil {
		return false, err
	}
	if set.Provider == "" && set.Model == "" && set.Effort == "" && set.Profile == "" && set.Instructions == "" {
		return plan, nil
	}
	_, err = s.cfg.Threads.Update(ctx, c.who(), id, thread.Update{Settings: &set})
	return plan, err
}
