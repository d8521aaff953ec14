// Package jsonrpc is a bidirectional JSON-RPC connection over a stream of
// messages. A connection has no client end or server end: both sides call,
// notify and answer. It speaks the Codex dialect (no "jsonrpc" member) and knows
// no method of thole's.
package jsonrpc

import "context"

// Stream carries whole messages. Transports implement it.
//
// Read and Write may run at the same time as each other; Read has one caller,
// Write has one caller at a time. Close unblocks both and may be repeated.
type Stream interface {
	// Read returns the next message. The slice is valid until the next Read.
	// io.EOF means that the peer closed in an orderly way.
	Read(ctx context.Context) ([]byte, error)
	// Write sends one message; it does not keep the slice.
	Write(ctx context.Context, msg []byte) error
	// Close ends the stream and sends the peer the reason, where the transport can.
	Close(reason string) error
}
