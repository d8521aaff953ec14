package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/chat"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/thread"
)

// Settings are how a session's runs are made; absent fields stay.
type Settings struct {
	Provider         *string                    `json:"provider,omitempty"`
	Model            *string                    `json:"model,omitempty"`
	Effort           *string                    `json:"effort,omitempty"`
	ExecutionProfile *string                    `json:"execution_profile,omitempty" doc:"plan, ask, edit, full, or a native mode of the provider"`
	Instructions     *string                    `json:"instructions,omitempty"`
	ProviderOptions  map[string]json.RawMessage `json:"provider_options,omitempty"`
}

func put[T ~string](to *T, from *string) {
	if from != nil {
		*to = T(*from)
	}
}

// over returns the settings with the request's laid over them.
func (in Settings) over(t event.Settings) event.Settings {
	put(&t.Provider, in.Provider)
	t.Provider = table.Named(t.Provider)
	put(&t.Model, in.Model)
	put(&t.Effort, in.Effort)
	put(&t.Profile, in.ExecutionProfile)
	put(&t.Instructions, in.Instructions)
	if in.ProviderOptions != nil {
		t.Options = chat.Options(in.ProviderOptions)
	}
	return t
}

func (in Settings) any() bool {
	return in.Provider != nil || in.Model != nil || in.Effort != nil || in.ExecutionProfile != nil || in.Instructions != nil || in.ProviderOptions != nil
}

// usable refuses a provider that does not exist or cannot run, while a user
// is there to read why.
func (s *Server) usable(name string) error {
	if name == "" {
		return nil
	}
	for _, p := range s.cfg.Providers() {
		if p.Name != name {
			continue
		}
		if !p.Available {
			e := thole.Errorf(thole.CodeUnavailable, "%s cannot run here: %s", p.Title, p.Problem)
			if p.Fix != "" {
				e = e.WithHint("%s", p.Fix)
			}
			return e
		}
		return nil
	}
	return thole.Errorf(thole.CodeInvalid, "unknown provider %q", name)
}

// defaultProvider is the provider of a session that names none.
func (s *Server) defaultProvider() string {
	if s.cfg.DefaultProvider != "" {
		return s.cfg.DefaultProvider
	}
	for _, p := range s.cfg.Providers() {
		if p.Available {
			return p.Name
		}
	}
	return ""
}

// create makes a thread. With an Idempotency-Key its id follows from the key, so
// that a repeat finds it.
func (s *Server) create(ctx context.Context, p thread.Create, from *view.SourceChoice, key string) (fold.Thread, error) {
	actor := actorOf(ctx)
	if p.Settings.Provider == "" {
		p.Settings.Provider = s.defaultProvider()
	}
	if err := s.usable(p.Settings.Provider); err != nil {
		return fold.Thread{}, err
	}
	if p.ID == "" && key != "" {
		p.ID = thole.ThreadID(chat.NamedID("session", string(actor.User), key))
	}
	if p.ID == "" {
		p.ID = thole.NewID[thole.ThreadID](s.cfg.Now())
	} else if have, err := s.cfg.Threads.Get(ctx, actor, p.ID); err == nil { // its source is not made again
		if key == "" {
			err = thole.Errorf(thole.CodeConflict, "session id is in use: %s", p.ID)
		}
		return have, err
	} else if gone := s.cfg.Threads.Gone(ctx, actor, p.ID); gone != nil {
		return fold.Thread{}, gone
	}
	var err error
	if p.Files, err = s.sourceOf(ctx, p.ID, from, p.Name); err != nil {
		return fold.Thread{}, err
	}
	p.Source, p.Client = "http", actor.Client
	t, err := s.cfg.Threads.Create(ctx, actor, p)
	if thole.CodeOf(err) == thole.CodeConflict && key != "" {
		if have, gerr := s.cfg.Threads.Get(ctx, actor, p.ID); gerr == nil {
			return have, nil
		}
	}
	return t, err
}

func sum(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("httpapi: encode: " + err.Error())
	}
	h := sha256.Sum256(b)
	return `"` + hex.EncodeToString(h[:8]) + `"`
}

// sessionTag stands for what can be edited, not for what a run changes.
func sessionTag(t fold.Thread) string {
	return sum([]any{t.ID, t.Name, t.Archived, t.Pinned, t.Settings})
}

func taggedSession(t fold.Thread, err error) (*tagged[view.Session], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[view.Session]{sessionTag(t), view.OfThread(t)}, nil
}

// made reads the session that a request made, now or the first time.
func (s *Server) made(ctx context.Context, id thole.ThreadID, err error) (*tagged[view.Session], error) {
	if err != nil {
		return nil, err
	}
	return taggedSession(s.existing(ctx, id))
}

// existing reads a thread that there was; one that is gone says so.
func (s *Server) existing(ctx context.Context, id thole.ThreadID) (fold.Thread, error) {
	t, err := s.cfg.Threads.Get(ctx, actorOf(ctx), id)
	if thole.CodeOf(err) == thole.CodeNotFound {
		if gone := s.cfg.Threads.Gone(ctx, actorOf(ctx), id); gone != nil {
			err = gone
		}
	}
	return t, err
}

type SessionID struct {
	ID string `path:"session_id" format:"uuid"`
}

func (in SessionID) thread() thole.ThreadID { return thole.ThreadID(in.ID) }

func (s *Server) sessionRoutes() {
	op(s, "GET", "/sessions", "List sessions, pinned ones first, then newest first", 200, func(ctx context.Context, in *struct {
		Cursor    string `query:"cursor"`
		Limit     int    `query:"limit" minimum:"0" maximum:"200"`
		Archived  bool   `query:"archived"`
		Search    string `query:"search" maxLength:"500" doc:"in names, first messages and message text"`
		Provider  string `query:"provider"`
		Sort      string `query:"sort" enum:"updated,created"`
		Everybody bool   `query:"everybody" doc:"also those of other users that the caller may read"`
	}) (*body[list[view.Session]], error) {
		f := thread.Filter{Everybody: in.Everybody, Archived: in.Archived, Search: in.Search, Sort: in.Sort, PinnedFirst: true, PageParams: PageIn{in.Cursor, in.Limit, "desc"}.params()}
		if in.Provider != "" {
			f.Providers = []string{table.Named(in.Provider)}
		}
		page, err := s.cfg.Threads.List(ctx, actorOf(ctx), f)
		return answer(paged(page, view.OfThread), err)
	})
	op(s, "POST", "/sessions", "Create a session", 201, func(ctx context.Context, in *struct {
		KeyIn
		Body struct {
			ID     string             `json:"id,omitempty" format:"uuid"`
			Name   string             `json:"name,omitempty"`
			Source *view.SourceChoice `json:"source,omitempty" doc:"where its files come from; empty when absent"`
			Settings
			NetworkIn
		}
	}) (*tagged[view.Session], error) {
		network, err := in.Body.check(s)
		if err != nil {
			return nil, err
		}
		settings := in.Body.over(event.Settings{Network: network})
		id, err := once(ctx, s, "POST /sessions", in.Key, in.Body, func() (thole.ThreadID, error) {
			t, err := s.create(ctx, thread.Create{ID: thole.ThreadID(in.Body.ID), Name: in.Body.Name, Settings: settings}, in.Body.Source, in.Key)
			return t.ID, err
		})
		return s.made(ctx, id, err)
	})
	op(s, "GET", "/sessions/{session_id}", "Read a session", 200, func(ctx context.Context, in *SessionID) (*tagged[view.Session], error) {
		return taggedSession(s.cfg.Threads.Get(ctx, actorOf(ctx), in.thread()))
	})
	op(s, "PATCH", "/sessions/{session_id}", "Rename, archive, pin or change a session", 200, s.editSession)
	op(s, "DELETE", "/sessions/{session_id}", "Delete a session", 204, func(ctx context.Context, in *struct {
		SessionID
		MatchIn
	}) (*empty, error) {
		return done(s.cfg.Threads.Delete(ctx, actorOf(ctx), in.thread(), unless(in.MatchIn, sessionTag)))
	})
	op(s, "POST", "/sessions/bulk", "Pin, archive or delete many sessions, each by itself", 200, s.editSessions)
	op(s, "POST", "/sessions/{session_id}/fork", "Copy a session up to a run or before one, and go on there", 201, s.forkSession)
	op(s, "GET", "/sessions/{session_id}/snapshot", "One consistent view to draw a page from", 200, s.snapshot)
}

func (s *Server) editSession(ctx context.Context, in *struct {
	SessionID
	MatchIn
	Body struct {
		Name     *string `json:"name,omitempty"`
		Archived *bool   `json:"archived,omitempty"`
		Pinned   *bool   `json:"pinned,omitempty"`
		Settings
		NetworkIn
	}
}) (*tagged[view.Session], error) {
	network, err := in.Body.check(s)
	if err != nil {
		return nil, err
	}
	u := thread.Update{Name: in.Body.Name, Archived: in.Body.Archived, Pinned: in.Body.Pinned}
	if in.Body.any() || in.Body.Network != nil {
		if err := s.usable(in.Body.over(event.Settings{}).Provider); err != nil {
			return nil, err
		}
		u.Change = func(now event.Settings) event.Settings {
			if in.Body.Network != nil {
				now.Network = network
			}
			return in.Body.over(now)
		}
	}
	t, err := s.cfg.Threads.Update(ctx, actorOf(ctx), in.thread(), u, unless(in.MatchIn, sessionTag))
	if err == nil && in.Body.Network != nil {
		err = s.cfg.Network.ApplyNetwork(context.WithoutCancel(ctx), in.thread())
	}
	return taggedSession(t, err)
}

// snapshotOut is a session at one position of its log.
type snapshotOut struct {
	Session   view.Session         `json:"session"`
	Seq       uint64               `json:"seq"`
	ActiveRun *view.Run            `json:"active_run,omitempty"`
	Questions []view.Question      `json:"questions"`
	Todos     []view.Todo          `json:"todos"`
	Queue     []view.QueuedMessage `json:"queue"`
}

func (s *Server) snapshot(ctx context.Context, in *SessionID) (*body[snapshotOut], error) {
	sub, err := s.cfg.Threads.Subscribe(ctx, actorOf(ctx), in.thread(), thread.SubscribeOptions{NoDeltas: true})
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	snap := sub.Snapshot
	out := snapshotOut{
		Session: view.OfThread(snap.Thread), Seq: snap.Seq, Questions: view.Each(snap.Asks, view.OfAsk), Todos: append([]view.Todo{}, view.OfTodos(snap.Todos)...), Queue: view.Each(snap.Queue, view.OfMessage),
	}
	if snap.Open != nil {
		run := view.OfTurn(*snap.Open)
		out.ActiveRun = &run
	}
	return answer(out, nil)
}
