package opencode

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
)

// settle is how long the end of a turn may lag behind the server's word that it
// is idle: after an abort the last updates come later.
const settle = 2 * time.Second

// doubtful is how long a turn goes without an event before it reads again how
// things stand.
const doubtful = 20 * time.Second

// run is one turn in progress, mostly on the reader of the event stream.
type run struct {
	*base.Turn
	s      *session
	srv    *server
	d      *decoder
	stance stance
	model  *modelRef
	prompt string // id of the turn's own message
	parts  []any

	asks   map[thole.AskID]*pending
	seen   map[string]bool        // permissions and questions that were handled
	steers map[string]*event.Item // steering messages not taken up yet, by id

	quiet *base.Alarm // idle, but not everything has settled
	doubt *base.Alarm // no event for long: the stream is not trusted to be complete

	begun  bool         // the server has the turn's message
	failed *nativeError // a session.error that belongs to no message
	late   *thole.TurnError
	stop   func() // ends the wait for a compaction
}

// Prepare resolves the turn's settings and brings a server.
func (s *session) Prepare(ctx context.Context, t *base.Turn) (base.Running, error) {
	if err := s.refusePlugins(); err != nil {
		return nil, err
	}
	r := &run{Turn: t, s: s, stop: func() {}, asks: map[thole.AskID]*pending{}, seen: map[string]bool{}, steers: map[string]*event.Item{}}
	t.Excused = func() bool { return r.d.busyTools() || len(r.asks) > 0 }
	r.quiet = t.Lock.NewAlarm(r.conclude)
	r.doubt = t.Lock.NewAlarm(func() {
		r.doubt.Set(doubtful)
		r.resync()
	})
	var err error
	if r.parts, err = s.parts(t.Words()); err != nil {
		return nil, err
	}
	if r.model, err = modelOf(t.Model); err != nil {
		return nil, err
	}
	if r.stance, err = stanceOf(t.Profile, s.agents); err != nil {
		return nil, err
	}
	if r.srv, err = s.Alive(ctx); err != nil {
		return nil, err
	}
	r.prompt = s.messageID()
	r.d = newDecoder(t.Em, s.Cfg.Dir, s.NativeID(), r.prompt)
	r.d.client, r.d.structured = provider.ClientTools(s.Cfg.Tools), t.Schema != nil
	return r, nil
}

// Begin hands the turn to the server.
func (r *run) Begin(ctx context.Context) (err error) {
	r.srv.feed.to(r)
	if r.Compacts() {
		r.stop, err = r.compact(ctx)
	} else {
		err = r.send(ctx, r.prompt, r.parts)
	}
	if err != nil {
		return err
	}
	r.Em.Session(r.s.NativeID())
	r.Replied()
	r.Listen(0)
	r.doubt.Set(doubtful)
	return nil
}

// letters are those of the server's ids.
const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// messageID makes an id of the server's own form: time first, so that messages
// sort, and never the same twice.
func (s *session) messageID() string {
	id := time.Now().UnixMilli() * 0x1000
	if id <= s.lastID {
		id = s.lastID + 1
	}
	s.lastID = id
	var b [14]byte
	rand.Read(b[:])
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return fmt.Sprintf("msg_%012x%s", uint64(id)&(1<<48-1), b[:])
}

// send hands a message to the server, which answers before it acts on it.
func (r *run) send(ctx context.Context, id string, parts []any) error {
	body := map[string]any{"messageID": id, "parts": parts, "agent": r.stance.agent}
	if r.model != nil {
		body["model"] = r.model
	}
	if r.Effort != "" {
		body["variant"] = r.Effort
	}
	if r.Schema != nil {
		body["format"] = map[string]any{"type": "json_schema", "schema": r.Schema}
	}
	if r.s.Cfg.Instructions != "" {
		body["system"] = r.s.Cfg.Instructions
	}
	return r.srv.call(ctx, http.MethodPost, "/session/"+r.s.NativeID()+"/prompt_async", body, nil)
}

// Interrupt asks the server to stop.
func (r *run) Interrupt(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = r.srv.call(ctx, http.MethodPost, "/session/"+r.s.NativeID()+"/abort", nil, nil) // the grace ends it otherwise
}

// Kill ends the server.
func (r *run) Kill() { r.srv.Kill() }

// Gone is closed when the server has ended.
func (r *run) Gone() <-chan struct{} { return r.srv.Done() }

// Lost says why the server ended.
func (r *run) Lost() string { return r.srv.Diagnosis() }

// idle is the server's word that it has nothing to do. It is the end when the
// turn's messages are over; after an abort it comes once too early.
func (r *run) idle() {
	if !r.begun {
		return // of an earlier turn
	}
	if r.d.settled() {
		r.conclude()
	} else {
		r.quiet.Set(settle)
	}
}

// conclude ends the turn by the main agent's last message.
func (r *run) conclude() {
	ended := provider.Ended{Outcome: thole.OutcomeCompleted}
	native := r.failed
	last := r.d.last()
	if last != nil {
		native = last.info.Error
	}
	switch {
	case r.late != nil:
		ended = provider.Ended{Outcome: thole.OutcomeFailed, Error: r.late}
	case r.Stalled:
		ended = r.StallEnd()
	case r.Em.Interrupted() && (native != nil || last == nil || !last.over() || last.info.Finish != "stop"):
		ended.Outcome = thole.OutcomeInterrupted
	case native != nil:
		f, real := failureOf(native)
		if !real {
			ended.Outcome = thole.OutcomeInterrupted
		} else {
			ended = provider.Ended{Outcome: thole.OutcomeFailed, Error: f}
		}
	case last == nil:
		ended = provider.Ended{Outcome: thole.OutcomeFailed, Error: provider.Failure(thole.ErrProviderCrashed, "opencode ended the turn without an answer", 0)}
	case r.Schema != nil && !r.Compacts():
		ended = r.Structured(last.info.ID, last.info.Structured)
	}
	r.Lock.End(ended)
}

// Finish emits what was used.
func (r *run) Finish(provider.Ended) {
	r.srv.feed.to(nil)
	r.stop()
	r.Em.Usage(r.d.total())
}
