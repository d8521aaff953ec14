package registry

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
	"golang.org/x/time/rate"

	wire "github.com/tholehq/thole/protocol/relay"
)

// reasonGone is the reason of resets that the rendezvous makes.
const reasonGone = "peer_disconnected"

// rendezvous opens a socket for the holder of a ticket. An executor whose ticket is
// worthless gets a status on which it registers again.
func (r *Registry) rendezvous(w http.ResponseWriter, req *http.Request) {
	t, ok := r.redeem(req.URL.Query().Get("ticket"))
	if !ok {
		http.Error(w, "unknown or used ticket", http.StatusUnauthorized)
		return
	}
	defer r.wg.Done()
	c, err := websocket.Accept(w, req, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled, InsecureSkipVerify: true}) // ServeHTTP refuses origins
	if err != nil {
		return
	}
	c.SetReadLimit(wire.MaxFrame)
	s := newSocket(c, r.cfg.Limits, &r.queued)
	if t.harness {
		t.reg.hub.harness(s)
		r.revoke(t)
	} else {
		r.idleNow(t.reg, true)
		if t.reg.hub.executor(s) {
			r.idleNow(t.reg, false)
		}
	}
	s.close()
	s.wg.Wait()
}

// hub is where the sockets of one registration meet.
type hub struct {
	lim       Limits
	handshake *rate.Limiter

	mu      sync.Mutex // guards the rest
	closed  bool
	exec    *socket
	waiting int // harnesses without a stream
	streams map[string]*socket
}

func newHub(l Limits) *hub {
	return &hub{lim: l, handshake: rate.NewLimiter(rate.Limit(l.Handshake), l.Burst), streams: map[string]*socket{}}
}

func (h *hub) online() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.exec != nil
}

// alive asks the executor whether it is there. A socket whose other end is gone without
// a word looks open for minutes.
func (h *hub) alive() bool {
	h.mu.Lock()
	s := h.exec
	h.mu.Unlock()
	if s == nil {
		return false
	}
	if s.handing.Load() { // it sent a frame that a slow harness has not taken; until then nobody reads an answer
		return true
	}
	ctx, cancel := context.WithTimeout(s.ctx, h.lim.Probe)
	defer cancel()
	return s.c.Ping(ctx) == nil
}

// close ends every socket and takes no other.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	all := []*socket{}
	if h.exec != nil {
		all = append(all, h.exec)
	}
	for _, s := range h.streams {
		all = append(all, s)
	}
	h.mu.Unlock()
	for _, s := range all {
		s.close()
	}
}

// executor serves the executor's socket. A newer one replaces an older one, which may
// be dead without anybody knowing. It reports whether no socket is left.
func (h *hub) executor(s *socket) bool {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return true
	}
	old := h.exec
	h.exec = s
	h.mu.Unlock()
	if old != nil {
		old.close()
		h.drop(old)
	}
	for {
		f, raw, err := s.read()
		if err != nil {
			break
		}
		if f == nil {
			continue // an executor's mistake costs one frame
		}
		h.mu.Lock()
		to := h.streams[f.StreamID]
		h.mu.Unlock()
		if to == nil {
			if f.Kind != wire.KindReset {
				s.put(wire.Reset(f.StreamID, reasonGone).Append(nil))
			}
			continue
		}
		s.handing.Store(true)
		ok := to.put(raw)
		s.handing.Store(false)
		switch {
		case !ok:
			to.close()
		case f.Kind == wire.KindHandshake:
			to.opening.Stop()
		case f.Kind == wire.KindReset:
			to.leave() // a harness that stays would keep its place
		}
	}
	h.mu.Lock()
	last := h.exec == s
	if last {
		h.exec = nil
	}
	h.mu.Unlock()
	if last {
		h.drop(s)
	}
	return last
}

// drop ends the streams that went through an executor's socket.
func (h *hub) drop(exec *socket) {
	h.mu.Lock()
	gone := []*socket{}
	for id, s := range h.streams {
		if s.peer == exec {
			delete(h.streams, id)
			gone = append(gone, s)
		}
	}
	h.mu.Unlock()
	for _, s := range gone {
		s.close()
	}
}

// harness serves a harness's socket, which has one stream: the one that its first
// frame names. It is ended when the executor has not answered in Limits.Opening: a
// ticket buys no place for ever.
func (h *hub) harness(s *socket) {
	h.mu.Lock()
	full := h.waiting >= h.lim.Streams
	if !full {
		h.waiting++
	}
	h.mu.Unlock()
	if full {
		return
	}
	s.opening = time.AfterFunc(h.lim.Opening, s.close)
	id := ""
	defer func() {
		s.opening.Stop()
		h.mu.Lock()
		if id == "" {
			h.waiting--
			h.mu.Unlock()
			return
		}
		mine := h.streams[id] == s
		if mine {
			delete(h.streams, id)
		}
		h.mu.Unlock()
		if mine {
			s.peer.put(wire.Reset(id, reasonGone).Append(nil))
		}
	}()
	for {
		f, raw, err := s.read()
		if err != nil || f == nil {
			return
		}
		switch {
		case id == "":
			if !h.claim(f.StreamID, s) {
				return
			}
			id = f.StreamID
		case f.StreamID != id:
			return
		}
		if f.Kind == wire.KindHandshake && !h.handshake.AllowN(time.Now(), len(raw)) {
			s.put(wire.Reset(id, "too_many_handshakes").Append(nil))
			s.drain()
			return
		}
		if !s.peer.put(raw) {
			return
		}
	}
}

// claim gives a stream to a socket. Its id is random by its form: nobody guesses one
// that is about to be claimed, and one that is in use stays its user's.
func (h *hub) claim(id string, s *socket) bool {
	if u, err := uuid.Parse(id); err != nil || u.Version() != 4 || u.String() != id {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.exec == nil || h.streams[id] != nil || len(h.streams) >= h.lim.Streams {
		return false
	}
	s.peer = h.exec
	h.streams[id] = s
	h.waiting--
	return true
}

// socket is one WebSocket with a bounded queue before it.
type socket struct {
	c       *websocket.Conn
	lim     Limits
	peer    *socket     // of a harness: the executor's, set by claim
	opening *time.Timer // of a harness: ends the socket
	handing atomic.Bool // of an executor: its reader waits for a harness
	wg      sync.WaitGroup
	ctx     context.Context // ends with the socket
	end     context.CancelFunc

	all *atomic.Int64 // bytes that wait for all sockets

	mu      sync.Mutex // guards the rest
	queue   [][]byte
	bytes   int
	ended   bool          // nothing waits any more
	more    chan struct{} // cap 1: the queue has something
	less    chan struct{} // cap 1: the queue lost something
	leaving bool          // close when the queue is empty
	waiting int           // callers of put that wait for room
	since   time.Time     // up to when debt is counted while a caller waits
	debt    time.Duration // that others have waited, less what the socket has taken
}

func newSocket(c *websocket.Conn, l Limits, all *atomic.Int64) *socket {
	s := &socket{c: c, lim: l, all: all, more: make(chan struct{}, 1), less: make(chan struct{}, 1)}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.wg.Go(s.write)
	s.wg.Go(s.ping)
	return s
}

func (s *socket) close() {
	s.end()
	_ = s.c.CloseNow()
}

var errText = errors.New("text instead of a frame")

// read returns the next frame as it came, and parsed, or nil when it is not valid.
func (s *socket) read() (*wire.Frame, []byte, error) {
	typ, raw, err := s.c.Read(s.ctx)
	if err != nil {
		return nil, nil, err
	}
	if typ != websocket.MessageBinary {
		return nil, nil, errText
	}
	f, err := wire.Parse(raw)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // nil says so
	}
	return f, raw, nil
}

// put queues a frame. While the queue is full its caller waits, and with it the
// socket from which the frame came. A socket that is waited for and takes less than
// Limits.Drain in Limits.Stuck is given up: one frame now and then would stop the others
// for good.
func (s *socket) put(frame []byte) bool {
	var timer *time.Timer
	for {
		s.mu.Lock()
		if timer != nil {
			s.countLocked()
		}
		room := s.roomLocked(len(frame))
		late := timer != nil && !room && s.debt >= s.lim.Stuck
		if timer != nil && (s.ended || room || late) {
			s.waiting--
		}
		if s.ended || late {
			s.mu.Unlock()
			return false
		}
		if room {
			s.queue = append(s.queue, frame)
			s.bytes += len(frame)
			s.all.Add(int64(len(frame)))
			s.mu.Unlock()
			signal(s.more)
			signal(s.less) // another may fit too
			return true
		}
		if timer == nil {
			s.countLocked()
			s.waiting++
			timer = time.NewTimer(s.lim.Stuck - s.debt)
			defer timer.Stop()
		} else {
			timer.Reset(s.lim.Stuck - s.debt)
		}
		s.mu.Unlock()
		select {
		case <-s.less:
		case <-s.ctx.Done():
			s.mu.Lock()
			s.waiting--
			s.mu.Unlock()
			return false
		case <-timer.C:
		}
	}
}

// countLocked adds the time since it was last called in which a caller waited.
func (s *socket) countLocked() {
	now := time.Now()
	if s.waiting > 0 {
		s.debt += now.Sub(s.since)
	}
	s.since = now
}

// taken counts bytes that the peer has taken.
func (s *socket) taken(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked()
	s.debt = max(0, s.debt-time.Duration(float64(s.lim.Stuck)*float64(n)/float64(s.lim.Drain)))
	s.bytes -= n
	s.all.Add(-int64(n))
}

// share is what may wait for a socket however much waits for others: a few frames, so that
// a flood slows the others down and stops none.
const share = 2 * wire.MaxFrame

// roomLocked reports whether a frame may wait too. Who waits for room is woken when its own
// socket has sent something, which it has to have: its share is waiting.
func (s *socket) roomLocked(n int) bool {
	switch {
	case s.bytes == 0:
		return true
	case s.bytes+n > s.lim.Queue:
		return false
	}
	return s.bytes+n <= share || s.all.Load()+int64(n) <= int64(s.lim.Memory)
}

// forget gives up what waits.
func (s *socket) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Add(-int64(s.bytes))
	s.queue, s.bytes, s.ended = nil, 0, true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// leave ends the socket once it has sent what is queued.
func (s *socket) leave() {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	signal(s.more)
}

// drain leaves and waits for it.
func (s *socket) drain() {
	s.leave()
	<-s.ctx.Done()
}

func (s *socket) write() {
	defer s.forget()
	defer s.close()
	for {
		s.mu.Lock()
		var frame []byte
		if len(s.queue) > 0 {
			frame = s.queue[0]
			s.queue[0] = nil
			s.queue = s.queue[1:]
		}
		leaving := s.leaving
		s.mu.Unlock()
		if frame == nil {
			if leaving {
				return
			}
			select {
			case <-s.more:
				continue
			case <-s.ctx.Done():
				return
			}
		}
		ctx, cancel := context.WithTimeout(s.ctx, s.lim.Pong)
		err := s.c.Write(ctx, websocket.MessageBinary, frame)
		cancel()
		if err != nil {
			return
		}
		s.taken(len(frame))
		signal(s.less)
	}
}

func (s *socket) ping() {
	tick := time.NewTicker(s.lim.Ping)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(s.ctx, s.lim.Pong)
		err := s.c.Ping(ctx)
		cancel()
		if err != nil {
			s.close()
			return
		}
	}
}
