package jsonrpc

import (
	"cmp"
	"time"
)

// Handler takes what the peer starts. Calls come one at a time in arrival order,
// on a goroutine of the connection that is not its reader: a Handler may take its
// time, but while it does, later messages queue up to Options.IngressLimit. It
// must not wait for an answer of the same connection.
type Handler interface {
	// Request must see to it that req is answered once, now or later, from any
	// goroutine. Nothing is answered on its behalf.
	Request(req *Request)
	Notification(n *Notification)
}

// Overflow is what Reply, Notify and Call do when the outbound queue is full.
type Overflow uint8

const (
	// OverflowClose ends the connection with ReasonSlowPeer: for servers, where
	// one slow client must not hold up others.
	OverflowClose Overflow = iota
	// OverflowBlock waits for room: for stdio, where the pipe is the back-pressure.
	OverflowBlock
)

// Reasons the connection itself ends for.
const (
	ReasonSlowPeer  = "outbound queue full: the peer reads too slowly"
	ReasonMalformed = "malformed message"
	ReasonEOF       = "peer closed the connection"
	ReasonTransport = "transport failed"
	ReasonContext   = "context ended"
)

// Reaction is a protocol's answer to a message that has no place in it.
type Reaction struct {
	close string
	err   *Error
}

// Ignore drops the message.
func Ignore() Reaction { return Reaction{} }

// Answer sends err under the id -1 and goes on.
func Answer(err *Error) Reaction { return Reaction{err: err} }

// CloseWith ends the connection.
func CloseWith(reason string) Reaction { return Reaction{close: reason} }

// Options shape a connection. Zero fields take the defaults.
type Options struct {
	// Handler may be nil: requests are then answered with method not found and
	// notifications ignored.
	Handler Handler
	Limits  Limits

	// IngressLimit and IngressBytes bound what waits for the Handler. A request
	// over the bound is answered Overloaded; a notification over it makes the
	// reader wait, which the peer feels as back-pressure. Defaults 128, 128 MiB.
	IngressLimit int
	IngressBytes int
	// Lossless is for clients, whose refusal would count as an answer: a request over
	// the bound waits like a notification, and what the peer sent before it went away
	// is handled before the connection ends.
	Lossless bool

	// OutboundLimit and OutboundBytes bound what waits for the writer. A message
	// is refused when the queue is at a bound, so one message of any size fits an
	// empty queue. Defaults 32,768 and 64 MiB.
	OutboundLimit int
	OutboundBytes int
	Overflow      Overflow
	// Farewell is how long a peer that is given up because it does not read may take to
	// read the message under way, and so hear why. Default: none.
	Farewell time.Duration

	// OnMalformed chooses the reaction to a refused message; nil closes.
	OnMalformed func(*DecodeError) Reaction
	// OnUnknownResponse chooses the reaction to an answer nobody waits for; nil
	// ignores it. It runs on the reader and must not block.
	OnUnknownResponse func(Message) Reaction
}

func (o Options) withDefaults() Options {
	o.IngressLimit = cmp.Or(o.IngressLimit, 128)
	o.IngressBytes = cmp.Or(o.IngressBytes, 128<<20)
	o.OutboundLimit = cmp.Or(o.OutboundLimit, 32768)
	o.OutboundBytes = cmp.Or(o.OutboundBytes, 64<<20)
	o.Limits = o.Limits.withDefaults()
	if o.OnMalformed == nil {
		o.OnMalformed = func(*DecodeError) Reaction { return CloseWith(ReasonMalformed) }
	}
	if o.OnUnknownResponse == nil {
		o.OnUnknownResponse = func(Message) Reaction { return Ignore() }
	}
	return o
}
