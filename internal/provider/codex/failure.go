package codex

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// failure maps codex's own error classes to ours. The class is a word, or an
// object with one member that holds the HTTP status; both sets are open, so the
// text decides where the class says nothing.
func failure(w *app.TurnError) *thole.TurnError {
	kind, status := errorInfo(w.Info)
	text := w.Message
	if details := val(w.Details); details != "" && !strings.Contains(text, details) {
		text += ": " + details
	}
	if status == 0 {
		status = statusIn(text)
	}
	return provider.Failure(errorCode(kind, status, text), text, status)
}

func errorInfo(raw json.RawMessage) (kind string, status int) {
	if strictjson.Unmarshal(raw, &kind) == nil {
		return kind, 0
	}
	var object map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	_ = strictjson.Unmarshal(raw, &object)
	for k, v := range object {
		return k, v.Status
	}
	return "", 0
}

func errorCode(kind string, status int, text string) thole.ErrorCode {
	switch kind {
	case "contextWindowExceeded", "sessionBudgetExceeded":
		return thole.ErrContextTooLong
	case "usageLimitExceeded":
		return thole.ErrRateLimit
	case "serverOverloaded", "internalServerError":
		return thole.ErrOverloaded
	case "unauthorized":
		return thole.ErrAuth
	case "cyberPolicy":
		return thole.ErrModelRefused
	case "sandboxError":
		return thole.ErrToolFailed
	}
	if status != 0 {
		if code, ok := provider.CodeForText(text); ok && status == 400 && code == thole.ErrContextTooLong {
			return code
		}
		return provider.CodeForStatus(status)
	}
	switch kind {
	case "badRequest":
		if code, ok := provider.CodeForText(text); ok && (code == thole.ErrContextTooLong || code == thole.ErrModelRefused) {
			return code
		}
		return thole.ErrBadRequest
	case "httpConnectionFailed", "responseStreamConnectionFailed", "responseStreamDisconnected", "responseTooManyFailedAttempts":
		return thole.ErrNetwork
	}
	if code, ok := provider.CodeForText(text); ok {
		return code
	}
	return thole.ErrProviderCrashed
}

var statusPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:status|status code|HTTP)[ :]+([45]\d\d)\b`)
})

// statusIn finds an HTTP status in free text.
func statusIn(text string) int {
	if m := statusPattern().FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}
