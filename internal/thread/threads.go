package thread

import (
	"context"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
)

// Create implements Service.
func (m *Machine) Create(ctx context.Context, actor thole.Actor, p Create) (fold.Thread, error) {
	if !actor.Valid() {
		return fold.Thread{}, errNoActor()
	}
	if err := checkText("name", p.Name, maxName); err != nil {
		return fold.Thread{}, err
	}
	if err := checkTools(p.Tools); err != nil {
		return fold.Thread{}, err
	}
	if p.ID == "" {
		p.ID = thole.ThreadID(m.cfg.NewID(m.now()))
	} else if err := checkID("thread id", string(p.ID)); err != nil {
		return fold.Thread{}, err
	}
	owner := p.Owner
	if owner == (thole.Owner{}) {
		owner = thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: actor.User}
	}
	scope, err := m.cfg.Access(ctx, actor, authz.UseApp)
	if err != nil {
		return fold.Thread{}, failed("read rights", err)
	}
	if !scope.Sees(owner) {
		return fold.Thread{}, thole.Errorf(thole.CodeForbidden, "this needs the right to %s in project %s, for yourself", authz.UseApp, owner.Project).WithHint("ask who runs this server")
	}
	born := event.Created{Owner: owner, Source: p.Source, Client: p.Client, Ephemeral: p.Ephemeral, Parent: p.Parent, Files: filesOf(p.Files), Tools: p.Tools}
	return m.birth(ctx, actor, p.ID, event.Data{Created: &born, Settings: &p.Settings, Name: &p.Name}, 0,
		func(c *Commit) error { return m.store.Commit(ctx, "thread.create", c) })
}

// filesOf is nil for a source that nobody chose.
func filesOf(s thole.Source) *thole.Source {
	if s.Kind == "" {
		return nil
	}
	return &s
}

// birth commits a thread's first event, after base for a fork.
func (m *Machine) birth(ctx context.Context, actor thole.Actor, id thole.ThreadID, d event.Data, base uint64, commit func(*Commit) error) (fold.Thread, error) {
	l, err := m.lockLive(ctx, id)
	if err != nil {
		return fold.Thread{}, err
	}
	defer l.release()
	if l.st != nil {
		return fold.Thread{}, errInUse(id)
	}
	l.st = &fold.State{}
	l.st.Row.Thread.Seq = base
	l.attached.Store(true)
	w := m.writer(l, actor)
	w.c.Create = true
	w.append(event.Event{Thread: id, Kind: event.ThreadCreated, Actor: actor, Data: d})
	err = w.err
	if err == nil {
		w.c.Row = w.s.Row
		err = commit(w.c)
	}
	switch {
	case err == nil:
		l.used = m.now()
		m.accept(l, w)
		return w.s.Row.View(true), nil
	case errors.Is(err, ErrExists):
		m.forget(l)
		return fold.Thread{}, errInUse(id)
	case errors.Is(err, ErrDeleted):
		m.forget(l)
		return fold.Thread{}, errDeleted(id)
	case errors.Is(err, ErrSaving):
		m.forget(l)
		return fold.Thread{}, err
	}
	m.forget(l) // the next call reads what the store has
	if known, kerr := m.store.Known(context.WithoutCancel(ctx), id, []thole.EventID{w.c.Events[0].ID}); kerr == nil && known[w.c.Events[0].ID] {
		return w.s.Row.View(false), nil
	}
	return fold.Thread{}, failed("create thread", err)
}

func errInUse(id thole.ThreadID) error {
	return thole.Errorf(thole.CodeConflict, "thread id is in use: %s", id)
}

func errDeleted(id thole.ThreadID) error {
	return thole.Errorf(thole.CodeGone, "thread %s was deleted", id).WithHint("an id is used once: take a new one")
}

// Gone implements Service.
func (m *Machine) Gone(ctx context.Context, actor thole.Actor, id thole.ThreadID) error {
	if !actor.Valid() {
		return errNoActor()
	}
	owner, err := m.store.Deleted(ctx, id)
	switch {
	case errors.Is(err, ErrNone):
		return nil
	case err != nil:
		return failed("read thread", err)
	}
	switch err := m.may(ctx, actor, authz.ViewThread, owner, id); {
	case err == nil:
		return errDeleted(id)
	case thole.CodeOf(err) == thole.CodeNotFound:
		return nil
	default:
		return err
	}
}

// Get implements Service.
func (m *Machine) Get(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Thread, error) {
	row, err := m.visible(ctx, actor, id)
	if err != nil {
		return fold.Thread{}, err
	}
	return row.View(m.loaded(id)), nil
}

// visible reads a thread's row if the actor may see it.
func (m *Machine) visible(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Row, error) {
	if !actor.Valid() {
		return fold.Row{}, errNoActor()
	}
	var row fold.Row
	var err error
	if !m.recall(id, func(s *fold.State) { row = s.Row }) {
		row, err = m.store.Thread(ctx, id)
	}
	if errors.Is(err, ErrNone) {
		return fold.Row{}, errNoThread(id)
	}
	if err != nil {
		return fold.Row{}, failed("read thread", err)
	}
	if err := m.may(ctx, actor, authz.ViewThread, row.Thread.Owner, id); err != nil {
		return fold.Row{}, err
	}
	return row, nil
}

// recall looks at a thread that is in memory, where nobody else writes the store.
// Who finds the thread busy asks the store instead of waiting.
func (m *Machine) recall(id thole.ThreadID, look func(*fold.State)) bool {
	l := m.live(id)
	if m.shared || l == nil {
		return false
	}
	select {
	case <-l.lock:
	default:
		return false
	}
	defer l.release()
	if l.st == nil || l.dead || l.unsure {
		return false
	}
	look(l.st)
	return true
}

// List implements Service. Ephemeral threads are never listed.
func (m *Machine) List(ctx context.Context, actor thole.Actor, f Filter) (Page[fold.Thread], error) {
	if !actor.Valid() {
		return Page[fold.Thread]{}, errNoActor()
	}
	if f.Sort != "" && f.Sort != "created" && f.Sort != "updated" {
		return Page[fold.Thread]{}, thole.Errorf(thole.CodeInvalid, "unknown sort key %q", f.Sort).WithHint("use created or updated")
	}
	if err := checkText("search term", f.Search, maxName); err != nil {
		return Page[fold.Thread]{}, err
	}
	scope, err := m.cfg.Access(ctx, actor, authz.ViewThread)
	if err != nil {
		return Page[fold.Thread]{}, failed("read rights", err)
	}
	if !f.Everybody {
		scope = scope.Mine(actor)
	}
	return m.list(ctx, scope, f)
}

// StopAll asks the running turns of a user's threads to stop, for the program.
func (m *Machine) StopAll(ctx context.Context, user thole.UserID) error {
	f := Filter{PageParams: PageParams{Limit: 100, Desc: true}}
	for {
		page, err := m.list(ctx, authz.Scope{Self: user}, f)
		if err != nil {
			return err
		}
		for _, t := range page.Items {
			if t.Open == "" {
				continue
			}
			err := m.Interrupt(ctx, thole.SystemActor, t.ID, t.Open)
			if code := thole.CodeOf(err); err != nil && code != thole.CodeConflict && code != thole.CodeNotFound { // it ended meanwhile
				return err
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return nil
		}
	}
}

func (m *Machine) list(ctx context.Context, scope authz.Scope, f Filter) (Page[fold.Thread], error) {
	limit := pageLimit(f.Limit)
	q := ThreadQuery{
		Scope: scope, Archived: f.Archived, Dirs: f.Dirs, Except: f.Except, Search: f.Search, Providers: f.Providers,
		ByCreated: f.Sort == "created", Desc: f.Desc, Limit: limit + 1, Pinned: f.Pinned, PinnedFirst: f.PinnedFirst,
	}
	back := false
	if f.Cursor != "" {
		var err error
		if q.Key, q.KeyID, q.KeyPinned, back, err = parseThreadKey(f.Cursor); err != nil {
			return Page[fold.Thread]{}, err
		}
		if back {
			q.Desc, q.PinnedFirst, q.PinnedLast = !q.Desc, false, q.PinnedFirst
		}
	}
	rows, err := m.store.Threads(ctx, q)
	if err != nil {
		return Page[fold.Thread]{}, failed("list threads", err)
	}
	threads := make([]fold.Thread, len(rows))
	for i, r := range rows {
		threads[i] = r.View(m.loaded(r.Thread.ID))
	}
	return paged(threads, limit, f.PageParams, back, threadKey(q.ByCreated)), nil
}

// Update implements Service. Archiving a thread asks its running turn to stop.
func (m *Machine) Update(ctx context.Context, actor thole.Actor, id thole.ThreadID, p Update, when ...Precondition[fold.Thread]) (fold.Thread, error) {
	if p.Name != nil {
		if err := checkText("name", *p.Name, maxName); err != nil {
			return fold.Thread{}, err
		}
	}
	var t fold.Thread
	err := m.change(ctx, actor, id, "thread.update", func(l *live, w *writer) error {
		if err := check(w.s.Row.View(w.loaded), when); err != nil {
			return err
		}
		now, d := w.s.Row.Thread, event.Data{}
		if p.Name != nil && *p.Name != now.Name {
			d.Name = p.Name
		}
		if p.Archived != nil && *p.Archived != now.Archived {
			d.Archived = p.Archived
		}
		pin := p.Pinned != nil && *p.Pinned != now.Pinned
		git := now.Git
		if p.Git != nil {
			git = p.Git(git)
		}
		next := merge(now.Settings, p.Settings)
		if p.Change != nil {
			next = p.Change(next)
		}
		next, err := settle(now, next)
		if err != nil {
			return err
		}
		if !equal(next, now.Settings) {
			d.Settings = &next
		}
		if d.Name != nil || d.Archived != nil || d.Settings != nil {
			w.add(event.ThreadUpdated, "", d)
		}
		if pin {
			w.add(event.ThreadUpdated, "", event.Data{Pinned: p.Pinned})
		}
		if git != now.Git {
			w.add(event.ThreadUpdated, "", event.Data{Git: &git})
		}
		if d.Archived != nil && *d.Archived && w.s.Open != nil {
			w.interrupt(nil)
		}
		t = w.s.Row.View(w.loaded)
		return nil
	})
	return t, err
}

// Delete implements Service. A running turn loses its thread; its runner learns of it
// to stop and finds nothing to write to.
func (m *Machine) Delete(ctx context.Context, actor thole.Actor, id thole.ThreadID, when ...Precondition[fold.Thread]) error {
	l, err := m.hold(ctx, actor, id, actions["thread.delete"])
	if err != nil {
		return err
	}
	w := m.writer(l, actor)
	ref, open := w.ref(), l.st.Open != nil
	for range maxTries {
		if err = check(l.st.Row.View(l.attached.Load()), when); err != nil {
			break
		}
		if err = m.store.Delete(ctx, id, l.st.Seq()); !errors.Is(err, ErrStale) {
			break
		}
		if _, err = m.refresh(ctx, l); err != nil {
			break
		}
	}
	if err == nil || errors.Is(err, ErrNone) {
		if !l.dead {
			m.vanish(l)
		}
		err = nil
	}
	l.release()
	if err != nil {
		return failed("delete thread", err)
	}
	if r := m.runs(); r != nil && open {
		_ = r.Interrupt(context.WithoutCancel(ctx), ref)
	}
	return nil
}
