// Package relay is the wire of exec-server's remote mode: the frames that an
// executor and a harness exchange through a rendezvous, and the bodies of the
// registry that brings them together. It is data only: keys, encryption and
// sockets are others' work. Payloads are opaque here.
package relay

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// Version is the only version of frames.
	Version = 1
	// MaxFrame bounds one frame, which is one WebSocket message.
	MaxFrame = 256 << 10
	// ReasonProtocol is the reason of every reset by an executor. Reasons of a peer
	// are never trusted or shown.
	ReasonProtocol = "noise_relay_protocol_error"
)

// Kind says which body a frame has.
type Kind uint8

const (
	KindNone Kind = iota
	KindData
	KindAck
	KindResume
	KindReset
	KindHeartbeat
	KindHandshake
)

// Numbers of the fields of a frame.
const (
	fieldVersion protowire.Number = iota + 1
	fieldStream
	fieldAck
	fieldAckBits
	fieldData
	fieldAckFrame
	fieldResume
	fieldReset
	fieldHeartbeat
	fieldHandshake
	fieldTraceparent
	fieldTracestate
)

// Frame is one message between an executor and a harness. Acks, segments and
// heartbeats have fields and no use: the sockets below are reliable, and a lost
// socket costs the stream.
type Frame struct {
	Version      uint32
	StreamID     string
	Ack, AckBits uint32
	Kind         Kind

	Seq                        uint32 // of data
	SegmentIndex, SegmentCount uint32 // of data: 0 and 1
	Payload                    []byte // of data and handshake
	NextSeq                    uint32 // of resume
	Reason                     string // of reset

	Traceparent, Tracestate string
}

// Resume is the frame by which a harness claims its stream at the rendezvous.
func Resume(stream string) *Frame {
	return &Frame{Version: Version, StreamID: stream, Kind: KindResume}
}

// Reset is the frame that ends a stream.
func Reset(stream, reason string) *Frame {
	return &Frame{Version: Version, StreamID: stream, Kind: KindReset, Reason: reason}
}

// Handshake is the frame that carries a message of the handshake.
func Handshake(stream string, payload []byte) *Frame {
	return &Frame{Version: Version, StreamID: stream, Kind: KindHandshake, Payload: payload}
}

// Append appends the encoded frame to b.
func (f *Frame) Append(b []byte) []byte {
	b = appendUint(b, fieldVersion, f.Version)
	b = appendText(b, fieldStream, f.StreamID)
	b = appendUint(b, fieldAck, f.Ack)
	b = appendUint(b, fieldAckBits, f.AckBits)
	switch f.Kind {
	case KindData:
		body := appendUint(nil, 1, f.Seq)
		body = appendUint(body, 2, f.SegmentIndex)
		body = appendUint(body, 3, f.SegmentCount)
		b = appendBody(b, fieldData, appendBytes(body, 4, f.Payload))
	case KindAck:
		b = appendBody(b, fieldAckFrame, nil)
	case KindResume:
		b = appendBody(b, fieldResume, appendUint(nil, 1, f.NextSeq))
	case KindReset:
		b = appendBody(b, fieldReset, appendText(nil, 1, f.Reason))
	case KindHeartbeat:
		b = appendBody(b, fieldHeartbeat, nil)
	case KindHandshake:
		b = appendBody(b, fieldHandshake, appendBytes(nil, 1, f.Payload))
	}
	b = appendText(b, fieldTraceparent, f.Traceparent)
	return appendText(b, fieldTracestate, f.Tracestate)
}

// AppendData appends a data frame up to its payload of size bytes, which the caller
// appends. Records are encrypted in place so.
func AppendData(b []byte, stream string, seq uint32, size int) []byte {
	b = appendUint(b, fieldVersion, Version)
	b = appendText(b, fieldStream, stream)
	head := appendUint(nil, 1, seq)
	head = appendUint(head, 3, 1)
	head = protowire.AppendTag(head, 4, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(size))
	b = protowire.AppendTag(b, fieldData, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(head)+size))
	return append(b, head...)
}

func appendUint(b []byte, n protowire.Number, v uint32) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
}

func appendText(b []byte, n protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func appendBytes(b []byte, n protowire.Number, p []byte) []byte {
	if len(p) == 0 {
		return b
	}
	return appendBody(b, n, p)
}

func appendBody(b []byte, n protowire.Number, p []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), p)
}

// Parse decodes a frame and checks it by Valid. Its payload is a part of b.
// Fields that it does not know are passed over; a known one twice is refused.
func Parse(b []byte) (*Frame, error) {
	if len(b) > MaxFrame {
		return nil, fmt.Errorf("frame of %d bytes: the limit is %d", len(b), MaxFrame)
	}
	f := &Frame{}
	var seen uint32
	err := fields(b, func(n protowire.Number, v value) error {
		if n <= fieldTracestate {
			if seen&(1<<n) != 0 {
				return fmt.Errorf("field %d occurs twice", n)
			}
			seen |= 1 << n
		}
		switch n {
		case fieldVersion:
			return v.uint32(&f.Version)
		case fieldStream:
			return v.text(&f.StreamID)
		case fieldAck:
			return v.uint32(&f.Ack)
		case fieldAckBits:
			return v.uint32(&f.AckBits)
		case fieldTraceparent:
			return v.text(&f.Traceparent)
		case fieldTracestate:
			return v.text(&f.Tracestate)
		case fieldData, fieldAckFrame, fieldResume, fieldReset, fieldHeartbeat, fieldHandshake:
			return f.body(n, v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, f.Valid()
}

var kinds = map[protowire.Number]Kind{
	fieldData: KindData, fieldAckFrame: KindAck, fieldResume: KindResume, fieldReset: KindReset,
	fieldHeartbeat: KindHeartbeat, fieldHandshake: KindHandshake,
}

func (f *Frame) body(n protowire.Number, v value) error {
	if f.Kind != KindNone {
		return errors.New("frame has two bodies")
	}
	if v.typ != protowire.BytesType {
		return v.wrong()
	}
	f.Kind = kinds[n]
	return fields(v.bytes, func(n protowire.Number, v value) error {
		switch {
		case f.Kind == KindData && n == 1:
			return v.uint32(&f.Seq)
		case f.Kind == KindData && n == 2:
			return v.uint32(&f.SegmentIndex)
		case f.Kind == KindData && n == 3:
			return v.uint32(&f.SegmentCount)
		case f.Kind == KindData && n == 4, f.Kind == KindHandshake && n == 1:
			return v.raw(&f.Payload)
		case f.Kind == KindResume && n == 1:
			return v.uint32(&f.NextSeq)
		case f.Kind == KindReset && n == 1:
			return v.text(&f.Reason)
		}
		return nil
	})
}

// Valid says what is wrong with a frame.
func (f *Frame) Valid() error {
	switch {
	case f.Version != Version:
		return fmt.Errorf("frame version %d: only %d is known", f.Version, Version)
	case strings.TrimSpace(f.StreamID) == "":
		return errors.New("frame without a stream id")
	case f.Kind == KindNone:
		return errors.New("frame without a body")
	case f.Kind == KindData && (f.SegmentIndex != 0 || f.SegmentCount != 1):
		return fmt.Errorf("segment %d of %d: frames have one segment", f.SegmentIndex, f.SegmentCount)
	case (f.Kind == KindData || f.Kind == KindHandshake) && len(f.Payload) == 0:
		return errors.New("frame without a payload")
	case f.Kind == KindReset && strings.TrimSpace(f.Reason) == "":
		return errors.New("reset without a reason")
	}
	return nil
}

// value is a field of a message as it stands on the wire.
type value struct {
	typ    protowire.Type
	varint uint64
	bytes  []byte
}

func (v value) wrong() error { return fmt.Errorf("wrong wire type %d", v.typ) }

func (v value) uint32(to *uint32) error {
	if v.typ != protowire.VarintType {
		return v.wrong()
	}
	if v.varint > 1<<32-1 {
		return fmt.Errorf("%d does not fit 32 bits", v.varint)
	}
	*to = uint32(v.varint)
	return nil
}

func (v value) raw(to *[]byte) error {
	if v.typ != protowire.BytesType {
		return v.wrong()
	}
	*to = v.bytes
	return nil
}

func (v value) text(to *string) error {
	if v.typ != protowire.BytesType {
		return v.wrong()
	}
	if !utf8.Valid(v.bytes) {
		return errors.New("text is not UTF-8")
	}
	*to = string(v.bytes)
	return nil
}

// fields calls fn for every field of a message. Groups are refused.
func fields(b []byte, fn func(protowire.Number, value) error) error {
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		v := value{typ: typ}
		switch typ {
		case protowire.VarintType:
			v.varint, size = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			v.bytes, size = protowire.ConsumeBytes(b)
		case protowire.Fixed32Type:
			_, size = protowire.ConsumeFixed32(b)
		case protowire.Fixed64Type:
			_, size = protowire.ConsumeFixed64(b)
		default:
			return v.wrong()
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if err := fn(n, v); err != nil {
			return err
		}
	}
	return nil
}
