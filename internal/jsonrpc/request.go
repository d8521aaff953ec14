package jsonrpc

import (
	"context"
	"encoding/json"
	"sync/atomic"
)

// Request is a call by the peer. Its fields are its own: they stay valid as long
// as the Request.
type Request struct {
	ID     ID
	Method string
	Params json.RawMessage // nil when absent
	Trace  json.RawMessage // as sent; nil when absent

	conn     *Conn
	answered atomic.Bool
}

// Notification is a message without an answer.
type Notification struct {
	Method string
	Params json.RawMessage
	Extra  []Member
	conn   *Conn
}

// Conn returns the connection the request came on.
func (r *Request) Conn() *Conn { return r.conn }

// Conn returns the connection the notification came on.
func (n *Notification) Conn() *Conn { return n.conn }

// Member returns the raw value of an envelope member besides params, nil when absent.
func (n *Notification) Member(name string) json.RawMessage {
	for _, e := range n.Extra {
		if e.Name == name {
			return e.Value
		}
	}
	return nil
}

// Context ends with the connection.
func (r *Request) Context() context.Context { return r.conn.ctx }

// Reply answers. The answer is queued when Reply returns: what the same
// goroutine sends next comes after it.
func (r *Request) Reply(result any) error { return r.ReplyThen(result) }

// ReplyThen answers and queues the frames right after the answer, with nothing
// in between.
func (r *Request) ReplyThen(result any, after ...Frame) error {
	return r.answer(func(b *buffer) error { return b.result(r.ID, result) }, after)
}

// Error answers with an error.
func (r *Request) Error(e *Error) error {
	return r.answer(func(b *buffer) error { return b.error(r.ID, e) }, nil)
}

// Answered reports whether the request has its answer.
func (r *Request) Answered() bool { return r.answered.Load() }

// answer encodes before it claims the answer, so that a result that cannot be
// encoded leaves the request open for an Error.
func (r *Request) answer(encode func(*buffer) error, after []Frame) error {
	b := newBuffer()
	if err := encode(b); err != nil {
		b.release()
		return err
	}
	if r.answered.Swap(true) {
		b.release()
		return ErrAnswered
	}
	return r.conn.enqueue(context.Background(), r.conn.opts.Overflow, outgoing{b.Bytes(), b}, after)
}
