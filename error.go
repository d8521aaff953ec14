package thole

import (
	"errors"
	"fmt"
)

// Code is the closed set of error classes. Edges map a Code to their own
// numbers: an exit code, an HTTP status, a JSON-RPC code.
type Code string

const (
	CodeInvalid      Code = "invalid"      // the request can never succeed as written
	CodeNotFound     Code = "not_found"    // also for things the actor may not see
	CodeConflict     Code = "conflict"     // the expected state was not the actual one
	CodeBusy         Code = "busy"         // someone else holds it now; retry later
	CodeForbidden    Code = "forbidden"    // known, visible, not allowed
	CodeUnauthorized Code = "unauthorized" // no actor
	CodeOverloaded   Code = "overloaded"   // a bounded queue is full; nothing happened
	CodeUnavailable  Code = "unavailable"  // a part we need is missing or down
	CodeUnsupported  Code = "unsupported"  // the capability is not validated
	CodeHeld         Code = "held"         // needs a human; no automatic way on
	CodeGone         Code = "gone"         // it existed and was removed, or a cursor is too old
	CodeInternal     Code = "internal"     // our fault
	// CodeBudgetExceeded: a budget is spent; nothing happened. The error says which one and when it starts again.
	CodeBudgetExceeded Code = "budget_exceeded"
)

// Error is an error with a class, a sentence and, where a human must act, a hint
// saying what to do next.
type Error struct {
	Code    Code
	Message string
	Hint    string
	Err     error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	if e.Message == "" {
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error; what %w wraps stays visible to errors.Is and As.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// WithHint returns a copy that says what a human can do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// CodeOf returns the class of err: that of the outermost Error in its chain,
// CodeInternal for any other error, "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// HintOf returns the first hint in err's chain.
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
