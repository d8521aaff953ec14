package appserver

import (
	"cmp"
	"context"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

func (s *Server) registerThreads() {
	start := on(s, "thread/start", s.threadStart)
	start.gated = map[string]bool{"permissions": false, "historyMode": false, "dynamicTools": false, "threadId": true, "source": true, "name": true}
	on(s, "thread/fork", s.threadFork) // it waits until the last turn is saved, so in no lane
	resume := inThread(on(s, "thread/resume", s.threadResume), serial.Exclusive, func(p *app.ThreadResumeParams) string { return p.ThreadID })
	resume.gated = map[string]bool{"permissions": false, "initialTurnsPage": false, "history": false, "path": false}
	byThread := func(p *app.ThreadParams) string { return p.ThreadID }
	inThread(on(s, "thread/archive", s.archive(true)), serial.Exclusive, byThread)
	inThread(on(s, "thread/unarchive", s.archive(false)), serial.Exclusive, byThread)
	inThread(on(s, "thread/delete", s.threadDelete), serial.Exclusive, byThread)
	inThread(on(s, "thread/unsubscribe", s.threadUnsubscribe), serial.Exclusive, byThread)
	inThread(on(s, "thread/name/set", s.threadName), serial.Exclusive, func(p *app.ThreadNameParams) string { return p.ThreadID })
	inThread(on(s, "thread/metadata/update", s.threadMetadata), serial.Exclusive, func(p *app.ThreadMetadataParams) string { return p.ThreadID })
	on(s, "thread/revert", s.threadRevert) // it waits until the last turn is saved, so in no lane
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
	w := wish{Settings: p.Settings, sandbox: str(p.Sandbox), instructions: instructions(p.BaseInstructions, p.DeveloperInstructions)}
	if !titles(p) { // whose config takes from an agent what none is given
		if err := w.configured(p.Config); err != nil {
			return answer{}, err
		}
	}
	set, plan, err := s.settings(w, event.Settings{})
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
		set.Provider, set.Model, set.Effort = def.Provider, def.Model, cmp.Or(set.Effort, s.catalog.effort(def.Effort, def, event.Settings{}))
	}
	set.Provider = cmp.Or(set.Provider, s.catalog.provider())
	set.Profile = cmp.Or(set.Profile, s.cfg.DefaultProfile)
	if titles(p) {
		set.Profile = thole.ProfilePlan // clients want proof that such a thread changes nothing
	}
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
		if err := s.cfg.Threads.Gone(ctx, c.who(), create.ID); err != nil {
			return answer{}, err
		}
	}
	if create.Tools, err = clientTools(p.DynamicTools); err != nil {
		return answer{}, err
	}
	more, links, err := c.meet(ctx, w.servers)
	if err != nil {
		return answer{}, err
	}
	create.Tools = append(create.Tools, more...)
	if titles(p) {
		create.Files = thole.Source{Kind: thole.SourceEmpty}
	} else if create.Files, err = s.source(ctx, c, create.ID, p); err != nil {
		return answer{}, err
	}
	release := c.hold(create.ID)
	t, err := s.cfg.Threads.Create(ctx, c.who(), create)
	if err != nil {
		return answer{release: release}, err
	}
	c.join(t.ID, links)
	return s.opened(ctx, c, t, release)
}

// instructions joins the two texts that a client may add to the system prompt.
func instructions(first, second *string) string {
	base, more := str(first), str(second)
	if base != "" && more != "" {
		return base + "\n\n" + more
	}
	return base + more
}

// opened answers with a new thread, whose notifications are held back until then, and
// subscribes its maker.
func (s *Server) opened(ctx context.Context, c *conn, t fold.Thread, release func()) (answer, error) {
	a := answer{release: release}
	sub, err := c.subscribe(ctx, t.ID, c.lag())
	if err != nil {
		return a, err
	}
	a.result, a.then, a.undo = s.viewFor(c, sub.in.Snapshot.Thread), sub.start, sub.remove
	return a, nil
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
	w := wish{Settings: p.Settings, sandbox: str(p.Sandbox), instructions: instructions(p.BaseInstructions, p.DeveloperInstructions)}
	if err := w.configured(p.Config); err != nil {
		return answer{}, err
	}
	links, err := c.meetAgain(w.servers, parent.Tools)
	if err != nil {
		return answer{}, err
	}
	set, _, err := s.settings(w, parent.Settings)
	if err != nil {
		return answer{}, err
	}
	if set.Provider != "" && set.Provider != cmp.Or(parent.Settings.Provider, s.catalog.provider()) {
		return answer{}, errOtherProvider(set.Provider)
	}
	upTo, err := s.forkPoint(ctx, c, parent, p)
	if err != nil {
		return answer{}, err
	}
	fork := thole.NewID[thole.ThreadID](s.cfg.Now())
	release := c.hold(fork)
	t, err := s.cfg.Threads.Fork(ctx, c.who(), id, thread.Fork{
		ID: fork, UpTo: upTo, Settings: &set, Source: cmp.Or(str(p.ThreadSource), sourceApp), Client: c.peer().info.Name, Ephemeral: p.Ephemeral,
	})
	if err != nil {
		return answer{release: release}, err
	}
	c.join(t.ID, links)
	a, err := s.opened(ctx, c, t, release)
	if err != nil || p.ExcludeTurns {
		return a, err
	}
	v := a.result.(app.ThreadView)
	a.rest = func(ctx context.Context) (any, []jsonrpc.Frame, error) {
		var err error
		v.Thread.Turns, err = s.fullTurns(ctx, c, t.ID, nil)
		return v, nil, err
	}
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
	if sub, ok := c.unsubscribe(id); ok {
		a := later(app.UnsubscribeResult{Status: "unsubscribed"})
		a.then = sub.remove
		return a, nil
	}
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil && thole.CodeOf(err) != thole.CodeNotFound {
		return answer{}, err
	}
	if !t.Status.Loaded {
		return later(app.UnsubscribeResult{Status: "notLoaded"}), nil
	}
	return later(app.UnsubscribeResult{Status: "notSubscribed"}), nil
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
	set, _, err := s.wanted(ctx, c, id, wish{Settings: p.Settings, effort: p.Effort, summary: p.Summary, mode: p.CollaborationMode}, p.SandboxPolicy)
	if err == nil {
		err = s.change(ctx, c, id, set)
	}
	return result(app.Empty{}, err)
}

// wanted is the change of a thread's settings that a wish is, nil for none, and whether it
// asks for plan mode, which belongs to turns. A change that the thread cannot have is refused.
func (s *Server) wanted(ctx context.Context, c *conn, id thole.ThreadID, w wish, box *app.SandboxPolicy) (change *event.Settings, plan bool, err error) {
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return nil, false, err
	}
	if err := c.stays(w.Settings, t); err != nil {
		return nil, false, err
	}
	if err := w.sandboxed(box, t.WorkDir()); err != nil {
		return nil, false, err
	}
	set, plan, err := s.settings(w, t.Settings)
	if err != nil {
		return nil, false, err
	}
	if set.Provider == "" && set.Model == "" && set.Effort == "" && set.Profile == "" && set.Instructions == "" && len(set.Options) == 0 && set.Network == nil {
		return nil, plan, nil
	}
	_, err = thread.Settled(t, &set)
	return &set, plan, err
}

// change makes a change of settings, nil for none, the thread's.
func (s *Server) change(ctx context.Context, c *conn, id thole.ThreadID, change *event.Settings) error {
	if change == nil {
		return nil
	}
	_, err := s.cfg.Threads.Update(ctx, c.who(), id, thread.Update{Settings: change})
	return err
}

// forkPoint is the last turn of a fork, "" for all of them.
func (s *Server) forkPoint(ctx context.Context, c *conn, parent fold.Thread, p *app.ThreadForkParams) (thole.TurnID, error) {
	before := thole.TurnID(str(p.BeforeTurnID))
	switch {
	case before == "":
		return thole.TurnID(str(p.LastTurnID)), nil
	case str(p.LastTurnID) != "":
		return "", thole.Errorf(thole.CodeInvalid, "lastTurnId and beforeTurnId cannot be combined")
	}
	page := thread.PageParams{Desc: true, Limit: maxFull}
	for found := false; ; {
		turns, err := s.cfg.Threads.Turns(ctx, c.who(), parent.ID, page)
		if err != nil {
			return "", err
		}
		for _, t := range turns.Items {
			if found {
				return t.ID, nil
			}
			found = t.ID == before
		}
		switch {
		case turns.Next != "":
			page.Cursor = turns.Next
		case found:
			return "", thole.Errorf(thole.CodeUnsupported, "beforeTurnId: %s is the thread's first turn", before).WithHint("start a new thread instead")
		default:
			return "", thole.Errorf(thole.CodeNotFound, "turn not found: %s", before)
		}
	}
}
