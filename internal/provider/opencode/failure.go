package opencode

import (
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// failureOf maps the server's error to the closed set. ok is false for an abort. An
// error that the server did not expect comes as text: its name, words and stack.
func failureOf(e *nativeError) (f *thole.TurnError, ok bool) {
	name := e.Name
	msg, _, _ := strings.Cut(e.Data.Message, "\n    at ")
	if inner, words, found := strings.Cut(msg, ": "); found && name == "UnknownError" && strings.HasSuffix(inner, "Error") && !strings.Contains(inner, " ") {
		name, msg = inner, words
	}
	if msg == "" {
		msg = name
	}
	status := e.Data.StatusCode
	code := provider.CodeForStatus(status)
	switch name {
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

// ownBackoff is more than the server waits by itself before a retry; a longer
// wait is one that the model service named.
const ownBackoff = time.Minute

// retryOf maps a retry that is due after wait. The server does not report the
// status of the failed call, only the service's words, so without a word that is
// known the code is a judgement: overload, or a limit when the service named a
// long wait. The error that ends the turn has the status and is exact.
func retryOf(s *status, wait time.Duration) *thole.TurnError {
	code, ok := provider.CodeForText(s.Message)
	switch {
	case s.Action != nil && strings.HasSuffix(s.Action.Reason, "_limit"):
		code = thole.ErrRateLimit
	case ok:
	case strings.Contains(strings.ToLower(s.Message), "connect"):
		code = thole.ErrNetwork
	case wait > ownBackoff:
		code = thole.ErrRateLimit
	default:
		code = thole.ErrOverloaded
	}
	f := provider.Failure(code, s.Message, 0)
	f.Retrying = true
	return f
}
