package jsonrpc

import (
	"encoding/json"

	"github.com/tholehq/thole/internal/strictjson"
)

// Kind is the shape of a message.
type Kind uint8

const (
	KindRequest      Kind = iota + 1 // method and id
	KindNotification                 // method, no id
	KindResponse                     // result and id
	KindError                        // error and id
)

// Member is one envelope member besides the known ones.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Message is a decoded envelope. Its raw fields point into the bytes given to
// Decode. A "jsonrpc" member is accepted and not kept.
type Message struct {
	Kind   Kind
	ID     ID
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Trace  json.RawMessage // W3C trace context of a request, not interpreted here
	Error  *Error
	Extra  []Member
}

// envelope is what one pass over the members finds.
type envelope struct {
	msg                              Message
	id, method, errRaw               []byte
	hasID, hasMethod, hasRes, hasErr bool
}

// Decode reads one message. The error is always a *DecodeError.
func Decode(data []byte, lim Limits) (Message, error) {
	s := scanners.Get().(*scanner)
	defer s.release()
	var e envelope
	if !s.start(data, lim) {
		return Message{}, s.err
	}
	if s.peek() != '{' {
		s.fail(FaultShape, "message is not an object")
		if s.pos >= len(data) {
			s.err = &DecodeError{Fault: FaultSyntax, Offset: s.pos, Detail: "empty message"}
		}
		return Message{}, s.err
	}
	s.values = 1
	ok := s.object(func(key []byte) bool {
		s.space()
		from := s.pos
		if !s.value() {
			return false
		}
		e.take(key, s.data[from:s.pos])
		return true
	}, true)
	if !ok {
		return Message{}, s.err
	}
	if s.space(); s.pos != len(data) {
		s.fail(FaultSyntax, "text after the message")
		return Message{}, s.err
	}
	if why := e.classify(); why != "" {
		s.pos = 0
		s.fail(FaultShape, "%s", why)
		return Message{}, s.err
	}
	return e.msg, nil
}

func (e *envelope) take(key, raw []byte) {
	switch string(key) {
	case "id":
		e.id, e.hasID = raw, true
	case "method":
		e.method, e.hasMethod = raw, true
	case "params":
		e.msg.Params = raw
	case "result":
		e.msg.Result, e.hasRes = raw, true
	case "error":
		e.errRaw, e.hasErr = raw, true
	case "trace":
		e.msg.Trace = raw
	case "jsonrpc":
	default:
		e.msg.Extra = append(e.msg.Extra, Member{Name: string(key), Value: raw})
	}
}

// classify names the shape and returns why there is none.
func (e *envelope) classify() string {
	m := &e.msg
	if e.hasID {
		id, err := parseID(e.id)
		if err != nil {
			return err.Error()
		}
		m.ID = id
	}
	switch {
	case e.hasMethod:
		if e.method[0] != '"' {
			return "method must be a string"
		}
		name, err := unquote(e.method)
		if err != nil {
			return "method must be a string"
		}
		m.Method, m.Result = name, nil
		m.Kind = KindNotification
		if e.hasID {
			m.Kind = KindRequest
		}
	case !e.hasID:
		return "message has neither method nor id"
	case e.hasRes:
		m.Kind, m.Params = KindResponse, nil
	case e.hasErr:
		m.Kind, m.Params = KindError, nil
		m.Error = parseError(e.errRaw)
		if m.Error == nil {
			return "error must have an integer code and a message"
		}
	default:
		return "message has neither method, result nor error"
	}
	return ""
}

func parseError(raw []byte) *Error {
	var v struct {
		Code    *int64          `json:"code"`
		Message *string         `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if strictjson.Unmarshal(raw, &v) != nil || v.Code == nil || v.Message == nil {
		return nil //nolint:nilerr // no error object: the answer is malformed
	}
	return &Error{Code: *v.Code, Message: *v.Message, Data: v.Data}
}
