package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/chat"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/shared"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// ShareHeader carries the token of a share link.
const ShareHeader = "Thole-Share"

// sharedWith finds the share link of a request. A header that browsers do not send by
// themselves: no other site can have it sent.
func (s *Server) sharedWith(r *http.Request) (session.Share, error) {
	return s.cfg.Sessions.Shared(r.Context(), r.Header.Get(ShareHeader))
}

func shareOf(ctx context.Context) session.Share { return ctx.Value(shareKey).(session.Share) }

// readable is the thread of a share link, as its reader may see it.
func (s *Server) readable(share session.Share) shared.Threads {
	return shared.Threads{Show: shared.New(s.cfg.Private...), From: s.cfg.Threads, Actor: thole.Actor{User: share.User, Via: "share"}, Thread: share.Thread}
}

// sharedSession is a session as the reader of a share link sees it.
type sharedSession struct {
	Title     string      `json:"title"`
	Provider  string      `json:"provider,omitempty"`
	Model     string      `json:"model,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
	Runs      int         `json:"runs"`
	Seq       uint64      `json:"seq" doc:"to follow the events after it"`
	Status    view.Status `json:"status"`
	Usage     view.Usage  `json:"usage"`
	ExpiresAt time.Time   `json:"expires_at" doc:"of the share link"`
}

func (s *Server) shareRoutes() {
	op(s, "POST", "/sessions/{session_id}/shares", "Make a link with which anybody can read this session until it expires", 201, func(ctx context.Context, in *struct {
		SessionID
		Body struct {
			ExpiresIn int64 `json:"expires_in,omitempty" minimum:"0" maximum:"7776000" doc:"seconds; 7 days when absent, at most 90"`
		}
	}) (*body[session.ShareDescription], error) {
		if _, err := s.cfg.Threads.Get(ctx, actorOf(ctx), in.thread()); err != nil {
			return nil, err
		}
		value, share, err := s.cfg.Sessions.NewShare(ctx, actorOf(ctx).User, in.thread(), time.Duration(in.Body.ExpiresIn)*time.Second)
		d := share.Describe()
		d.Secret, d.Path = value, session.SharePath(value)
		return answer(d, err)
	})
	op(s, "GET", "/sessions/{session_id}/shares", "List the share links of a session", 200, func(ctx context.Context, in *SessionID) (*body[list[session.ShareDescription]], error) {
		if _, err := s.cfg.Threads.Get(ctx, actorOf(ctx), in.thread()); err != nil {
			return nil, err
		}
		all, err := s.cfg.Sessions.Shares(ctx, actorOf(ctx).User, in.thread())
		return answer(list[session.ShareDescription]{Items: all}, err)
	})
	op(s, "GET", "/shares", "List the share links of all sessions", 200, func(ctx context.Context, _ *struct{}) (*body[list[session.ShareDescription]], error) {
		all, err := s.cfg.Sessions.Shares(ctx, actorOf(ctx).User, "")
		return answer(list[session.ShareDescription]{Items: all}, err)
	})
	op(s, "DELETE", "/shares/{share_id}", "Revoke a share link; who reads with it is cut off", 204, func(ctx context.Context, in *struct {
		ID string `path:"share_id"`
	}) (*empty, error) {
		return done(s.cfg.Sessions.EndShare(context.WithoutCancel(ctx), actorOf(ctx).User, in.ID))
	})
	json := "application/json"
	s.serve("GET /shared", page{Route: Route{Shared: true}, summary: "The session of a share link", status: 200, media: json, shapes: []any{sharedSession{}}}, s.sharedSession)
	s.serve("GET /shared/messages", page{Route: Route{Shared: true}, summary: "Its chat as UI messages; pages are whole runs", query: []string{"cursor", "limit", "order"}, status: 200, media: json, shapes: []any{sharedMessages{}}}, s.sharedMessages)
	s.serve("GET /shared/events", page{
		Route: Route{Shared: true}, summary: "Follow it", query: []string{"after"}, header: []string{"Last-Event-ID"}, status: 200, media: "text/event-stream",
		shapes: []any{view.Event{}, readyEvent{}, tooOldEvent{}, behindEvent{}, endEvent{}},
	}, s.sharedEvents)
}

func (s *Server) sharedSession(w http.ResponseWriter, r *http.Request) {
	share := shareOf(r.Context())
	t, err := s.readable(share).Get(r.Context(), thole.Actor{}, share.Thread)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, sharedSession{
		Title: t.Title(), Provider: t.Settings.Provider, Model: t.Settings.Model, CreatedAt: t.Created, UpdatedAt: t.Updated, Runs: t.Turns, Seq: t.Seq,
		Status: view.OfStatus(t.Status), Usage: view.OfUsage(t.Usage), ExpiresAt: share.Expires,
	})
}

func (s *Server) sharedMessages(w http.ResponseWriter, r *http.Request) {
	q, share := r.URL.Query(), shareOf(r.Context())
	in := PageIn{Cursor: q.Get("cursor"), Order: q.Get("order")}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 200 {
			s.refuse(w, r, thole.Errorf(thole.CodeInvalid, "limit: %q is not a number from 1 to 200", text))
			return
		}
		in.Limit = n
	}
	out, th, err := messagesOf(r.Context(), s.readable(share), thole.Actor{}, share.Thread, in.params())
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, sharedMessages{out.Items, out.Next, out.Back, th.Seq})
}

// sharedEvents follows a shared session until the link ends. It encodes for itself: what others
// are sent says more.
func (s *Server) sharedEvents(w http.ResponseWriter, r *http.Request) {
	share := shareOf(r.Context())
	cursor, err := parseCursor(cursorOf(r), 1)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	var after *uint64
	if cursor != nil {
		after = &cursor[0]
	}
	threads := s.readable(share)
	src, err := s.open(r.Context(), threads.Actor, share.Thread, after)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	defer src.sub.Close()
	s.streams.Add(1)
	defer s.streams.Done()
	st := s.newStream(w, r, nil)
	if st == nil {
		return
	}
	ctx, done := st.takeOver(r.Context(), w)
	defer done()
	f := &follower{Server: s, stream: st, r: r.WithContext(ctx), sources: []*followed{src}}
	f.begin(cursor != nil)
	f.readShared(share, threads)
}

// readShared sends until the link, its session, the reader or the server ends.
func (f *follower) readShared(share session.Share, threads shared.Threads) {
	src := f.sources[0]
	f.alive = time.NewTimer(f.cfg.KeepAlive)
	defer f.alive.Stop()
	expired := time.NewTimer(share.Expires.Sub(f.cfg.Now()))
	defer expired.Stop()
	for {
		if f.flush() != nil {
			return
		}
		select {
		case <-f.r.Context().Done():
			f.end("logout") // the link was revoked; of a reader that has gone nobody reads it
			return
		case <-expired.C:
			f.end("logout")
			return
		case <-f.stopping:
			f.end("shutdown")
			return
		case <-f.alive.C:
			if _, err := f.sharedWith(f.r); thole.CodeOf(err) == thole.CodeUnauthorized {
				f.end("logout")
				return
			}
			f.comment("alive")
			f.alive.Reset(f.cfg.KeepAlive)
		case batch := <-src.ch:
			if batch == nil {
				f.over(src.sub)
				return
			}
			f.pace()
			f.addShared(src, threads, batch)
		}
	}
}

func (f *follower) addShared(src *followed, threads shared.Threads, batch *thread.Batch) {
	for _, e := range batch.Events {
		if e.Kind == event.ThreadCreated {
			continue
		}
		shown, ok := threads.Show.Event(e)
		if e.Seq > 0 {
			src.seq = e.Seq
		}
		if !ok {
			continue
		}
		if e.Seq > 0 {
			f.id(f.position())
		}
		f.buf = append(f.buf, encode(shown)...)
	}
}

// sharedMessages is a page of a shared chat.
type sharedMessages struct {
	Items []*chat.Message `json:"items"`
	Next  string          `json:"next,omitempty"`
	Back  string          `json:"back,omitempty"`
	Seq   uint64          `json:"seq" doc:"of the session when it was read: follow the events after it"`
}
