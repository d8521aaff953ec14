package jsonrpc

import "context"

// NotifyRaw queues a notification that the caller encodes itself, for streams of
// output where encoding is the cost. build appends the whole message, about size
// bytes, to dst and returns it, without line breaks. Buffers up to 64 KiB are
// pooled. On a full queue it waits or closes as Options.Overflow says.
func (c *Conn) NotifyRaw(ctx context.Context, size int, build func(dst []byte) []byte) error {
	b := newBuffer()
	b.Grow(size)
	b.Write(build(b.AvailableBuffer()))
	return c.enqueue(ctx, c.opts.Overflow, outgoing{b.Bytes(), b}, nil)
}
