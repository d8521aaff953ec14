package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

const (
	// coalesce is the shortest time between two writes of one stream.
	coalesce = 64 * time.Millisecond
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
	buf  []byte
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
	return &stream{w: w, ctl: http.NewResponseController(w), last: time.Now(), credit: burst}
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
		if cap(st.buf) > 256<<10 {
			st.buf = nil
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

// pace waits until the next write is due: at once while there is credit, which a
// pause restores, else a period after the last one. So the first words of an answer
// do not wait, and a flood costs one write a period.
func (st *stream) pace() {
	now := time.Now()
	st.credit = min(st.credit+float64(now.Sub(st.last))/float64(coalesce), burst)
	if st.credit >= 1 {
		st.credit--
		return
	}
	time.Sleep(coalesce - now.Sub(st.last))
	st.credit = 0
}
