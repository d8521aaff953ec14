package jsonrpc

import "encoding/json"

// inFlight is everything a connection has under way. It changes only inside
// Conn.update, which wakes the waiters that the change concerns.
type inFlight struct {
	end    *CloseError // why it ended; nil while live
	nextID int64
	calls  map[ID]func(json.RawMessage, error) // ours, waiting for an answer

	in      fifo[arrival] // read, not yet handed to the Handler
	inBytes int
	// handling and writing are true while the dispatcher and the writer are at
	// work and will look again without a signal.
	handling, writing bool

	out      fifo[outgoing] // accepted, not yet written; the head may be half written
	outBytes int

	// Channels that waiters make and the next change of that kind closes.
	inRoom, outRoom, outEmpty chan struct{}
}

// arrival is a request or a notification; exactly one is set.
type arrival struct {
	req  *Request
	note *Notification
	size int
}

// outgoing is one queued message; buf is set when it goes back to the pool.
type outgoing struct {
	data []byte
	buf  *buffer
}

func (s *inFlight) inFull(o *Options) bool {
	return s.in.len() >= o.IngressLimit || s.inBytes >= o.IngressBytes
}

func (s *inFlight) outFull(o *Options) bool {
	return s.out.len() >= o.OutboundLimit || s.outBytes >= o.OutboundBytes
}

func (s *inFlight) push(m outgoing) {
	s.out.push(m)
	s.outBytes += len(m.data)
}

func (s *inFlight) written() {
	m := s.out.pop()
	s.outBytes -= len(m.data)
	if m.buf != nil {
		m.buf.release()
	}
	wake(&s.outRoom)
}

// wait returns the channel that the next change will close.
func wait(ch *chan struct{}) <-chan struct{} {
	if *ch == nil {
		*ch = make(chan struct{})
	}
	return *ch
}

func wake(ch *chan struct{}) {
	if *ch != nil {
		close(*ch)
		*ch = nil
	}
}

// Stats is a connection's load at one moment, for metrics and tests.
type Stats struct {
	Calls, Ingress, Outbound, OutboundBytes int
}
