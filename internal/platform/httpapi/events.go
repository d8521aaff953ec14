package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// maxNamed bounds the sessions that one stream follows in full.
const maxNamed = 32

func (s *Server) eventRoutes() {
	shapes := []any{view.Event{}, readyEvent{}, tooOldEvent{}, behindEvent{}, endEvent{}}
	s.serve("GET /sessions/{session_id}/events", page{
		summary: "Follow a session", query: []string{"after"}, header: []string{"Last-Event-ID"}, status: 200, media: "text/event-stream", shapes: shapes,
	}, s.sessionEvents)
	s.serve("GET /events", page{
		summary: "Follow all sessions, some of them in full", query: []string{"sessions", "after"}, header: []string{"Last-Event-ID"}, status: 200, media: "text/event-stream", shapes: shapes,
	}, s.userEvents)
	s.todoRoutes()
	s.phaseRoutes()
	s.networkRoutes()
	s.fileRoutes()
	s.changeRoutes()
	s.portRoutes()
}

// What streams say of themselves, besides the events of sessions.
type (
	readyEvent struct {
		Resumed  bool                      `json:"resumed"`
		Sessions map[thole.ThreadID]uint64 `json:"sessions" doc:"position of each"`
	}
	tooOldEvent struct {
		SessionID string `json:"session_id"`
		Floor     uint64 `json:"floor"`
		Seq       uint64 `json:"seq"`
	}
	behindEvent struct {
		Hint string `json:"hint"`
	}
	endEvent struct {
		Reason string `json:"reason" enum:"shutdown,logout,deleted"`
	}
)

// followed is one session on a stream.
type followed struct {
	id  thole.ThreadID
	sub *thread.Subscription
	ch  <-chan *thread.Batch // of sub; nil once its thread was deleted
	seq uint64               // of the last event that was sent
	// stale is set when the cursor was too old.
	stale *fold.Thread
}

// follower is one event stream.
type follower struct {
	*Server
	*stream
	who     who
	r       *http.Request
	sources []*followed
	watch   *thread.Subscription // nil on a session's own stream
	changed <-chan struct{}      // jobs of theirs
	unheard func()               // ends it; nil without jobs
	alive   *time.Timer
}

// cursorOf reads where a reader is: EventSource sends the header by itself, and
// it is newer than what the address says.
func cursorOf(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get("after")
}

func (s *Server) sessionEvents(w http.ResponseWriter, r *http.Request) {
	s.follow(w, r, []string{r.PathValue("session_id")}, false)
}

func (s *Server) userEvents(w http.ResponseWriter, r *http.Request) {
	var named []string
	if v := r.URL.Query().Get("sessions"); v != "" {
		named = strings.Split(v, ",")
	}
	s.follow(w, r, named, true)
}

func parseCursor(text string, n int) ([]uint64, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ".")
	if len(parts) != n {
		return nil, thole.Errorf(thole.CodeInvalid, "the cursor %q is not of this stream", text).WithHint("a cursor belongs to the list of sessions it came with")
	}
	out := make([]uint64, n)
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 63)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "the cursor %q is not a position", text)
		}
		out[i] = v
	}
	return out, nil
}

func (s *Server) follow(w http.ResponseWriter, r *http.Request, named []string, all bool) {
	if len(named) > maxNamed {
		s.refuse(w, r, thole.Errorf(thole.CodeInvalid, "a stream follows at most %d sessions", maxNamed))
		return
	}
	cursor, err := parseCursor(cursorOf(r), len(named))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	f := &follower{Server: s, r: r, who: r.Context().Value(whoKey).(who)}
	defer f.close()
	if all { // before the sessions: a change between the two must not be lost
		if f.watch, err = s.cfg.Threads.Watch(r.Context(), f.who.actor); err != nil {
			s.refuse(w, r, err)
			return
		}
		if s.cfg.JobsChanged != nil {
			f.changed, f.unheard = s.cfg.JobsChanged(context.WithoutCancel(r.Context()), f.who.actor)
		}
	}
	for i, id := range named {
		var after *uint64
		if cursor != nil {
			after = &cursor[i]
		}
		src, err := s.open(r.Context(), f.who.actor, thole.ThreadID(id), after)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		f.sources = append(f.sources, src)
	}
	s.streams.Add(1)
	defer s.streams.Done()
	if f.stream = s.newStream(w, r, nil); f.stream == nil {
		return
	}
	ctx, done := f.takeOver(r.Context(), w)
	defer done()
	f.r = r.WithContext(ctx)
	f.begin(cursor != nil)
	f.loop()
}

// open subscribes, from the cursor if its log is still there.
func (s *Server) open(ctx context.Context, actor thole.Actor, id thole.ThreadID, after *uint64) (*followed, error) {
	src := &followed{id: id}
	var err error
	if after != nil {
		if src.sub, err = s.cfg.Threads.Subscribe(ctx, actor, id, thread.SubscribeOptions{After: after}); err == nil {
			src.ch, src.seq = src.sub.Events, *after
			return src, nil
		}
		if c := thole.CodeOf(err); c != thole.CodeGone && c != thole.CodeInvalid {
			return nil, err
		}
	}
	if src.sub, err = s.cfg.Threads.Subscribe(ctx, actor, id, thread.SubscribeOptions{}); err != nil {
		return nil, err
	}
	src.ch, src.seq = src.sub.Events, src.sub.Snapshot.Seq
	if after != nil {
		src.stale = &src.sub.Snapshot.Thread
	}
	return src, nil
}

func (f *follower) close() {
	if f.unheard != nil {
		f.unheard()
	}
	for _, src := range f.sources {
		src.sub.Close()
	}
	if f.watch != nil {
		f.watch.Close()
	}
}

func (f *follower) begin(resumed bool) {
	f.comment("thole")
	at := map[thole.ThreadID]uint64{}
	for _, src := range f.sources {
		at[src.id] = src.seq
	}
	f.event("ready", readyEvent{resumed, at})
	for _, src := range f.sources {
		if src.stale != nil {
			f.event("cursor_too_old", tooOldEvent{string(src.id), src.stale.Floor, src.seq})
		}
	}
}

// position is the cursor of the stream as it is now.
func (f *follower) position() string {
	var b []byte
	for i, src := range f.sources {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendUint(b, src.seq, 10)
	}
	return string(b)
}

// add writes the events of one session.
func (f *follower) add(src *followed, batches []*thread.Batch) {
	if len(batches) == 0 {
		return
	}
	for _, fr := range frames(batches...) {
		if fr.seq > 0 {
			src.seq = fr.seq
			f.id(f.position())
		}
		f.buf = append(f.buf, fr.data...)
	}
}

// news writes what the watch reported, but for the sessions that are followed.
func (f *follower) news(batch *thread.Batch) {
	for _, fr := range frames(batch) {
		if f.named(fr.thread) == nil {
			f.buf = append(f.buf, fr.data...)
		}
	}
}

func (f *follower) named(id thole.ThreadID) *followed {
	for _, src := range f.sources {
		if src.id == id {
			return src
		}
	}
	return nil
}

func (f *follower) end(reason string) {
	f.event("end", endEvent{reason})
	_ = f.flush()
}

// over ends the stream for a subscription that ended. It reports false when the
// stream can go on without it.
func (f *follower) over(sub *thread.Subscription) bool {
	err := sub.Err()
	switch {
	case errors.Is(err, thread.ErrSlow):
		f.event("behind", behindEvent{"reconnect with the last id"}) // the event's public name, words:ok
		_ = f.flush()
	case thole.CodeOf(err) == thole.CodeGone && f.watch != nil && sub != f.watch:
		return false
	case thole.CodeOf(err) == thole.CodeGone:
		f.end("deleted")
	case thole.CodeOf(err) == thole.CodeNotFound: // the right to read it was taken away
		f.end("logout")
	default:
		f.end("shutdown")
	}
	return true
}

func jobsEvent(now time.Time) view.Event { return view.Event{Type: "jobs.changed", TS: now} }
