package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
)

// readLoop never waits for the peer to read or for an answer, so answers
// are always taken.
func (c *Conn) readLoop() {
	for c.ctx.Err() == nil {
		data, err := c.stream.Read(context.Background())
		if err != nil {
			if c.opts.Lossless {
				c.settle(err)
			}
			if errors.Is(err, io.EOF) {
				c.end(ReasonEOF, io.EOF)
			} else {
				c.end(ReasonTransport, err)
			}
			return
		}
		msg, err := Decode(data, c.opts.Limits)
		if err != nil {
			var bad *DecodeError
			errors.As(err, &bad)
			c.react(c.opts.OnMalformed(bad))
			continue
		}
		switch msg.Kind {
		case KindRequest:
			c.request(&msg, len(data))
		case KindNotification:
			c.notification(&msg, len(data))
		default:
			c.response(&msg)
		}
	}
}

func (c *Conn) react(r Reaction) {
	switch {
	case r.close != "":
		c.end(r.close, nil)
	case r.err != nil:
		c.answerNow(IntID(-1), r.err)
	}
}

// request copies what it keeps: the stream reuses its buffer.
func (c *Conn) request(m *Message, size int) {
	req := &Request{ID: m.ID, Method: m.Method, Params: bytes.Clone(m.Params), Trace: bytes.Clone(m.Trace), conn: c}
	if !c.arrive(arrival{req: req, size: size}, c.opts.Lossless) {
		c.answerNow(req.ID, Overloaded())
	}
}

func (c *Conn) notification(m *Message, size int) {
	c.arrive(arrival{note: &Notification{Method: m.Method, Params: bytes.Clone(m.Params), Extra: cloneMembers(m.Extra), conn: c}, size: size}, true)
}

// arrive queues for the Handler, when there is room; patient waits for it.
func (c *Conn) arrive(a arrival, patient bool) bool {
	for {
		var room <-chan struct{}
		c.update(func(s *inFlight) {
			if s.end == nil && s.inFull(&c.opts) {
				room = wait(&s.inRoom)
				return
			}
			s.in.push(a)
			s.inBytes += a.size
		})
		if room == nil || !patient {
			return room == nil
		}
		<-room
	}
}

// settle takes leave of a peer that is gone: no answer will come any more, and what
// did come is handled.
func (c *Conn) settle(cause error) {
	var calls map[ID]func(json.RawMessage, error)
	c.update(func(s *inFlight) {
		if s.end == nil {
			calls, s.calls = s.calls, map[ID]func(json.RawMessage, error){}
		}
	})
	for _, done := range calls {
		done(nil, &CloseError{Reason: ReasonEOF, Err: cause})
	}
	for {
		var more <-chan struct{}
		c.update(func(s *inFlight) {
			if s.end == nil && (s.in.len() > 0 || s.handling) {
				more = wait(&s.inRoom)
			}
		})
		if more == nil {
			return
		}
		<-more
	}
}

func (c *Conn) response(m *Message) {
	var done func(json.RawMessage, error)
	c.update(func(s *inFlight) {
		done = s.calls[m.ID]
		delete(s.calls, m.ID)
	})
	switch {
	case done == nil:
		c.react(c.opts.OnUnknownResponse(*m))
	case m.Kind == KindError:
		done(nil, m.Error)
	default:
		done(bytes.Clone(m.Result), nil)
	}
}

// dispatchLoop hands arrivals to the Handler, one at a time.
func (c *Conn) dispatchLoop() {
	for range c.work {
		ended := false
		for {
			var a arrival
			more := false
			c.update(func(s *inFlight) {
				s.handling, ended = false, s.end != nil
				if s.end != nil || s.in.len() == 0 {
					wake(&s.inRoom)
					return
				}
				a, more = s.in.pop(), true
				s.inBytes -= a.size
				s.handling = true
				wake(&s.inRoom)
			})
			if !more {
				break
			}
			c.handle(a)
		}
		if ended {
			return
		}
	}
}

func (c *Conn) handle(a arrival) {
	switch {
	case c.opts.Handler == nil && a.req != nil:
		_ = a.req.Error(Errorf(CodeMethodNotFound, "method not found: %s", a.req.Method))
	case c.opts.Handler == nil:
	case a.req != nil:
		c.opts.Handler.Request(a.req)
	default:
		c.opts.Handler.Notification(a.note)
	}
}

func cloneMembers(list []Member) []Member {
	for i := range list {
		list[i].Value = bytes.Clone(list[i].Value)
	}
	return list
}
