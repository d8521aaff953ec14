package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The codes both Codex servers use.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeOverloaded     = -32001
)

// Error is an error answer. It comes from the peer or goes to it; a lost
// connection is never an Error but a CloseError.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Errorf makes an Error.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Overloaded answers a request that found a bounded queue full: nothing happened
// and the peer may repeat it.
func Overloaded() *Error {
	return &Error{Code: CodeOverloaded, Message: "Server overloaded; retry later."}
}

var (
	// ErrClosed is what every CloseError is.
	ErrClosed = errors.New("jsonrpc: connection closed")
	// ErrFull reports an outbound queue at its bound; the message was not queued.
	ErrFull = errors.New("jsonrpc: outbound queue is full")
	// ErrAnswered reports a second answer to one request.
	ErrAnswered = errors.New("jsonrpc: request is already answered")
	// ErrDuplicateID reports a call under an id that is still in flight.
	ErrDuplicateID = errors.New("jsonrpc: id is in flight")
)

// CloseError says why a connection ended. A call that gets it has no answer: the
// peer may or may not have acted.
type CloseError struct {
	Reason string
	Err    error // what the transport said; io.EOF when the peer closed in order
}

func (e *CloseError) Error() string {
	if e.Err == nil {
		return ErrClosed.Error() + ": " + e.Reason
	}
	return ErrClosed.Error() + ": " + e.Reason + ": " + e.Err.Error()
}

func (e *CloseError) Is(target error) bool { return target == ErrClosed }
func (e *CloseError) Unwrap() error        { return e.Err }

// Fault is why a message cannot be understood.
type Fault string

const (
	FaultSyntax    Fault = "syntax"    // not one JSON value in valid UTF-8
	FaultShape     Fault = "shape"     // JSON, but no message
	FaultDuplicate Fault = "duplicate" // a key occurs twice in one object
	FaultTooLarge  Fault = "too_large" // over Limits.Bytes
	FaultTooDeep   Fault = "too_deep"  // over Limits.Depth
	FaultTooMany   Fault = "too_many"  // over Limits.Values
)

// DecodeError is a message that was refused. The connection is still in step:
// framing belongs to the stream, so each protocol chooses to answer, ignore or close.
type DecodeError struct {
	Fault  Fault
	Offset int
	Detail string
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("%s at byte %d", e.Detail, e.Offset)
}
