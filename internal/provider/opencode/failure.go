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

// retryOf maps the message of a retry. The server tells nothing else about it,
// not even the status, so a message without a known word is taken as overload;
// the error that ends a turn is exact.
func retryOf(msg string) *thole.TurnError {
	low := strings.ToLower(msg)
	code, ok := provider.CodeForText(msg)
	switch {
	case strings.Contains(low, "slow down"):
		code = thole.ErrRateLimit
	case !ok && strings.Contains(low, "connect"):
		code = thole.ErrNetwork
	case !ok:
		code = thole.ErrOverloaded
	}
	f := provider.Failure(code, msg, 0)
	f.Retrying = true
	return f
}
