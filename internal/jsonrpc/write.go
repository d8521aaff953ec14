package jsonrpc

import (
	"context"
	"errors"
)

// reserve is how far the reader's own answers (overload, malformed) may go over
// the outbound bound. The reader must not wait, so a peer that goes on asking
// without reading is closed beyond it.
const reserve = 1024

// enqueue puts one message and the frames after it on the queue.
func (c *Conn) enqueue(ctx context.Context, how Overflow, m outgoing, after []Frame) error {
	for {
		var err error
		var room <-chan struct{}
		c.update(func(s *inFlight) {
			switch {
			case s.end != nil:
				err = s.end
			case !s.outFull(&c.opts):
				s.push(m)
				for _, f := range after {
					s.push(outgoing{data: f.data})
				}
			case how == OverflowBlock:
				room = wait(&s.outRoom)
			default:
				err = ErrFull
			}
		})
		if errors.Is(err, ErrFull) {
			c.end(ReasonSlowPeer, nil)
			err = c.Err()
		}
		if room == nil {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answerNow sends an error from the reader.
func (c *Conn) answerNow(id ID, e *Error) {
	b := newBuffer()
	if b.error(id, e) != nil {
		b.release()
		return
	}
	slow := false
	c.update(func(s *inFlight) {
		if slow = s.outFull(&c.opts) && (c.opts.Overflow == OverflowClose || s.out.len() >= c.opts.OutboundLimit+reserve); !slow {
			s.push(outgoing{b.Bytes(), b})
		}
	})
	if slow {
		c.end(ReasonSlowPeer, nil)
	}
}

// writeLoop writes the queue's head and removes it afterwards, so that the
// bounds count what the transport has not taken yet.
func (c *Conn) writeLoop() {
	defer close(c.wrote)
	for range c.write {
		var m outgoing
		var more, sent, ended bool
		for {
			c.update(func(s *inFlight) {
				if sent {
					s.written()
				}
				if more = s.end == nil && s.out.len() > 0; more {
					m = s.out.front()
				}
				s.writing, ended = more, s.end != nil
			})
			if !more {
				break
			}
			if err := c.stream.Write(context.Background(), m.data); err != nil {
				c.end(ReasonTransport, err)
				return
			}
			sent = true
		}
		if ended {
			return
		}
	}
}
