package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tholehq/thole/internal/strictjson"
)

// Notify sends a notification, waiting or closing on a full queue as
// Options.Overflow says.
func (c *Conn) Notify(ctx context.Context, method string, params any, extra ...Member) error {
	b := newBuffer()
	if err := b.call(ID{}, method, params, extra); err != nil {
		b.release()
		return err
	}
	return c.enqueue(ctx, c.opts.Overflow, outgoing{b.Bytes(), b}, nil)
}

// Send queues an encoded message, waiting or closing on a full queue as
// Options.Overflow says.
func (c *Conn) Send(ctx context.Context, f Frame) error {
	return c.enqueue(ctx, c.opts.Overflow, outgoing{data: f.data}, nil)
}

// TrySend queues encoded messages with nothing in between, or none of them and
// returns ErrFull. It never waits and never closes: the owner decides.
func (c *Conn) TrySend(frames ...Frame) error {
	err := c.Err()
	c.update(func(s *inFlight) {
		switch {
		case s.end != nil:
			err = s.end
		case s.outFull(&c.opts):
			err = ErrFull
		default:
			for _, f := range frames {
				s.push(outgoing{data: f.data})
			}
		}
	})
	return err
}

// Call sends a request and waits. The error is an *Error when the peer refused,
// a *CloseError when no answer will come, the context's otherwise. result may be
// nil; a *json.RawMessage gets the bytes unread.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	type answer struct {
		raw json.RawMessage
		err error
	}
	ch := make(chan answer, 1)
	id, err := c.Go(ctx, method, params, func(raw json.RawMessage, err error) { ch <- answer{raw, err} })
	if err != nil {
		return err
	}
	select {
	case a := <-ch:
		if a.err != nil {
			return a.err
		}
		return decodeResult(method, a.raw, result)
	case <-ctx.Done():
		c.forget(id)
		return ctx.Err()
	}
}

func decodeResult(method string, raw json.RawMessage, result any) error {
	switch r := result.(type) {
	case nil:
		return nil
	case *json.RawMessage:
		*r = raw
		return nil
	}
	if err := strictjson.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("decode result of %s: %w", method, err)
	}
	return nil
}

// Go sends a request under the next id and returns when it is queued. done runs
// once, on the reader, with the answer or a *CloseError, unless Go failed or
// forget came first; it must not block.
func (c *Conn) Go(ctx context.Context, method string, params any, done func(json.RawMessage, error)) (ID, error) {
	return c.start(ctx, ID{}, method, params, done)
}

// GoID is Go under an id of the caller's choice, for asks that outlive the
// connection. Mixing it with Go is safe when the ids are strings.
func (c *Conn) GoID(ctx context.Context, id ID, method string, params any, done func(json.RawMessage, error)) error {
	_, err := c.start(ctx, id, method, params, done)
	return err
}

func (c *Conn) start(ctx context.Context, id ID, method string, params any, done func(json.RawMessage, error)) (ID, error) {
	var err error
	c.update(func(s *inFlight) {
		if s.end != nil {
			err = s.end
			return
		}
		if id.IsZero() {
			s.nextID++
			id = IntID(s.nextID)
		}
		if _, dup := s.calls[id]; dup {
			err = ErrDuplicateID
			return
		}
		s.calls[id] = done
	})
	if err != nil {
		return ID{}, err
	}
	b := newBuffer()
	if err = b.call(id, method, params, nil); err != nil {
		b.release()
	} else {
		err = c.enqueue(ctx, c.opts.Overflow, outgoing{b.Bytes(), b}, nil)
	}
	if err != nil && c.forget(id) {
		return ID{}, err
	}
	return id, nil
}

// forget drops a call; its answer becomes an unknown response. It reports
// whether the call was still waiting.
func (c *Conn) forget(id ID) (was bool) {
	c.update(func(s *inFlight) {
		_, was = s.calls[id]
		delete(s.calls, id)
	})
	return was
}
