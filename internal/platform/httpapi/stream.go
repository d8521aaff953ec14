package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/view"
)

const (
	// coalesce is the shortest time between two writes of one stream.
	coalesce = 50 * time.Millisecond
	// burst is how many writes after a pause need not wait for that.
	burst = 8
	// writeLimit is how long a client may keep us from writing, at most; half of
	// it at least.
	writeLimit = 30 * time.Second
)

// stream writes server-sent events. Its buffer collects until flush.
type stream struct {
	w   io.Writer
	ctl interface {
		SetWriteDeadline(time.Time) error
		Flush() error
	}
	tick *metronome
	buf  []byte
	lent bool      // buf is a frame that others share
	last time.Time // of the last flush
	// until is the deadline that the connection has. Setting it costs, so it is
	// moved only when half of it has passed.
	until time.Time
	// credit is how many writes may go at once.
	credit float64
}

// newStream is nil when only the headers were asked for; then they are sent.
func (s *Server) newStream(w http.ResponseWriter, r *http.Request, header map[string]string) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	for k, v := range header {
		h.Set(k, v)
	}
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return &stream{w: w, ctl: http.NewResponseController(w), tick: &s.beats, last: time.Now(), credit: burst}
}

// flush sends what was collected. An error means that the client is gone.
func (st *stream) flush() error {
	st.last = time.Now()
	if len(st.buf) > 0 {
		if st.until.Sub(st.last) < writeLimit/2 {
			st.until = st.last.Add(writeLimit)
			_ = st.ctl.SetWriteDeadline(st.until) // not every writer has deadlines
		}
		_, err := st.w.Write(st.buf)
		st.buf = st.buf[:0]
		if st.lent || cap(st.buf) > 256<<10 {
			st.buf, st.lent = nil, false
		}
		if err != nil {
			return err
		}
	}
	return st.ctl.Flush()
}

func (st *stream) comment(text string) {
	st.buf = append(append(append(st.buf, ": "...), text...), "\n\n"...)
}

// event adds a named event.
func (st *stream) event(name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		panic("httpapi: encode event: " + err.Error())
	}
	st.buf = append(append(append(st.buf, "event: "...), name...), '\n')
	st.data(b)
}

// id names the event that follows.
func (st *stream) id(id string) {
	st.buf = append(append(append(st.buf, "id: "...), id...), '\n')
}

// data adds a plain event.
func (st *stream) data(json []byte) {
	st.buf = append(append(append(st.buf, "data: "...), json...), "\n\n"...)
}

// frame adds a frame that others share; one that stands alone is not copied.
func (st *stream) frame(shared []byte) {
	if len(st.buf) == 0 {
		st.buf, st.lent = shared[:len(shared):len(shared)], true
		return
	}
	st.buf, st.lent = append(st.buf, shared...), false
}

// pace waits until the next write is due: at once while there is credit, which a
// pause restores, else at the next tick. So the first words of an answer do not
// wait, and a flood costs one write a tick. Ticks are the same for all streams:
// readers of one session then collect the same events and share their encoding.
// It reports whether it waited for one.
func (st *stream) pace() bool {
	now := time.Now()
	st.credit = min(st.credit+float64(now.Sub(st.last))/float64(coalesce), burst)
	if st.credit >= 1 {
		st.credit--
		return false
	}
	st.tick.wait()
	st.credit = 0
	return true
}

// frameCache keeps the encoded form of recent events, shared by all readers. The
// slices that subscriptions deliver are shared too, so an event's address is its
// name for as long as the cache holds it.
type frameCache struct {
	last     atomic.Pointer[frame] // what readers in step ask for
	mu       sync.Mutex            // guards what follows
	cur, old map[frameKey][]byte
}

type frame struct {
	key  frameKey
	data []byte
}

type frameKey struct{ first, last *event.Event }

const frameGeneration = 2048

func newFrameCache() *frameCache { return &frameCache{cur: map[frameKey][]byte{}} }

func (c *frameCache) get(k frameKey) []byte {
	if f := c.last.Load(); f != nil && f.key == k {
		return f.data
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := c.cur[k]; ok {
		return b
	}
	return c.old[k]
}

func (c *frameCache) put(k frameKey, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cur) >= frameGeneration {
		c.cur, c.old = make(map[frameKey][]byte, frameGeneration), c.cur
	}
	c.cur[k] = b
	c.last.Store(&frame{k, b})
}

// encode returns the frame of one event, or of a run of neighbouring deltas as one.
func (c *frameCache) encode(run []*event.Event) []byte {
	k := frameKey{run[0], run[len(run)-1]}
	if b := c.get(k); b != nil {
		return b
	}
	e := *run[0]
	if len(run) > 1 {
		n := 0
		for _, r := range run {
			n += len(r.Data.Delta)
		}
		text := make([]byte, 0, n)
		for _, r := range run {
			text = append(text, r.Data.Delta...)
		}
		e.Data.Delta = string(text)
	}
	b, err := json.Marshal(view.OfEvent(e))
	if err != nil {
		panic("httpapi: encode event: " + err.Error())
	}
	b = append(append([]byte("data: "), b...), "\n\n"...)
	c.put(k, b)
	return b
}
