package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
)

// Frame is an encoded message, ready for any number of connections. Encode once,
// send to a thousand.
type Frame struct{ data []byte }

// Bytes returns the message; it must not be changed.
func (f Frame) Bytes() []byte { return f.data }

// EncodeNotification encodes a notification; extra members stand next to params.
func EncodeNotification(method string, params any, extra ...Member) (Frame, error) {
	b := newBuffer()
	defer b.release()
	if err := b.call(ID{}, method, params, extra); err != nil {
		return Frame{}, err
	}
	return Frame{bytes.Clone(b.Bytes())}, nil
}

// EncodeRequest encodes a request for senders that keep their own ids. Nobody
// waits for its answer: that reaches Options.OnUnknownResponse.
func EncodeRequest(id ID, method string, params any, extra ...Member) (Frame, error) {
	b := newBuffer()
	defer b.release()
	if err := b.call(id, method, params, extra); err != nil {
		return Frame{}, err
	}
	return Frame{bytes.Clone(b.Bytes())}, nil
}

// buffer is a pooled encoder. enc writes into the embedded Buffer.
type buffer struct {
	bytes.Buffer
	enc *json.Encoder
}

// Larger buffers go to the collector, so that one big file read does not stay in
// the pool for ever.
const maxPooled = 64 << 10

var buffers = sync.Pool{New: func() any {
	b := new(buffer)
	b.enc = json.NewEncoder(&b.Buffer)
	b.enc.SetEscapeHTML(false)
	return b
}}

func newBuffer() *buffer { return buffers.Get().(*buffer) }

func (b *buffer) release() {
	if b.Cap() <= maxPooled {
		b.Reset()
		buffers.Put(b)
	}
}

// call writes a request, or a notification when id is zero.
func (b *buffer) call(id ID, method string, params any, extra []Member) error {
	b.WriteByte('{')
	if !id.IsZero() {
		b.WriteString(`"id":`)
		b.Write(id.append(b.AvailableBuffer()))
		b.WriteByte(',')
	}
	b.WriteString(`"method":`)
	b.Write(appendString(b.AvailableBuffer(), method))
	if params != nil {
		b.WriteString(`,"params":`)
		if err := b.value(params); err != nil {
			return fmt.Errorf("encode params of %s: %w", method, err)
		}
	}
	for _, m := range extra {
		b.WriteByte(',')
		b.Write(appendString(b.AvailableBuffer(), m.Name))
		b.WriteByte(':')
		if err := b.raw(m.Value); err != nil {
			return fmt.Errorf("encode %s of %s: %w", m.Name, method, err)
		}
	}
	b.WriteByte('}')
	return nil
}

func (b *buffer) result(id ID, result any) error {
	b.WriteString(`{"id":`)
	b.Write(id.append(b.AvailableBuffer()))
	b.WriteString(`,"result":`)
	if err := b.value(result); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	b.WriteByte('}')
	return nil
}

func (b *buffer) error(id ID, e *Error) error {
	b.WriteString(`{"error":`)
	if err := b.value(e); err != nil {
		return fmt.Errorf("encode error: %w", err)
	}
	b.WriteString(`,"id":`)
	b.Write(id.append(b.AvailableBuffer()))
	b.WriteByte('}')
	return nil
}

// value appends v. A json.RawMessage must be valid JSON; it is not checked again.
func (b *buffer) value(v any) error {
	if r, ok := v.(json.RawMessage); ok {
		return b.raw(r)
	}
	if err := b.enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
	return nil
}

// raw appends encoded JSON on one line: line transports frame by newline.
func (b *buffer) raw(r json.RawMessage) error {
	switch {
	case len(r) == 0:
		b.WriteString("null")
	case bytes.IndexByte(r, '\n') < 0 && bytes.IndexByte(r, '\r') < 0:
		b.Write(r)
	default:
		return json.Compact(&b.Buffer, r)
	}
	return nil
}

func appendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			q, err := json.Marshal(s)
			if err != nil { // a string cannot fail to encode
				return append(dst, `""`...)
			}
			return append(dst, q...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
