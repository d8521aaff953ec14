package opencode

import (
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// failureOf maps the server's error to the closed set. ok is false for an abort.
func failureOf(e *nativeError) (f *thole.TurnError, ok bool) {
	msg := e.Data.Message
	if msg == "" {
		msg = e.Name
	}
	status := e.Data.StatusCode
	code := provider.CodeForStatus(status)
	switch e.Name {
	case "MessageAbortedError":
		return nil, false
	case "ProviderAuthError":
		code = thole.ErrAuth
	case "ContextOverflowError":
		code = thole.ErrContextTooLong
	case "ContentFilterError":
		code = thole.ErrModelRefused
	case "ProviderModelNotFoundError", "MessageOutputLengthError", "StructuredOutputError":
		code = thole.ErrBadRequest
	case "APIError":
		if c, found := provider.CodeForText(msg); found && (status == 0 || c == thole.ErrContextTooLong) {
			code = c
		}
	default:
		code = thole.ErrBadRequest
		if c, found := provider.CodeForText(msg); found {
			code = c
		}
	}
	return provider.Failure(code, msg, status), true
}

// retryOf maps the message of a retry, which is all the server tells about it.
func retryOf(msg string) *thole.TurnError {
	code, ok := provider.CodeForText(msg)
	if !ok {
		code = thole.ErrOverloaded
		if strings.Contains(strings.ToLower(msg), "connect") {
			code = thole.ErrNetwork
		}
	}
	f := provider.Failure(code, msg, 0)
	f.Retrying = true
	return f
}
