package provider

import (
	"net/http"
	"strings"

	thole "github.com/tholehq/thole"
)

// Failure makes a turn's error with what the user can do about it.
func Failure(code thole.ErrorCode, message string, status int) *thole.TurnError {
	return &thole.TurnError{Code: code, Message: message, Hint: hint(code), Status: status}
}

func hint(code thole.ErrorCode) string {
	switch code {
	case thole.ErrAuth:
		return "log in again with the agent's own CLI, or check the API key"
	case thole.ErrRateLimit:
		return "wait for the limit to reset, or use another model or account"
	case thole.ErrOverloaded:
		return "the model service is failing or busy; send the message again in a moment"
	case thole.ErrContextTooLong:
		return "compact the thread, start a new one, or send less"
	case thole.ErrModelRefused:
		return "rephrase the request; the model declined it"
	case thole.ErrNetwork:
		return "check the connection to the model service and send the message again"
	case thole.ErrToolFailed:
		return "look at the failed tool's output and send the agent a message with how to go on"
	case thole.ErrProviderCrashed:
		return "send the message again; the agent restarts and keeps the conversation"
	case thole.ErrCancelled:
		return "send a new message to go on"
	case thole.ErrBadRequest:
		return "check the model name and the settings of this thread"
	}
	return ""
}

// CodeForStatus maps a model service's HTTP status to an error code.
func CodeForStatus(status int) thole.ErrorCode {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusPaymentRequired:
		return thole.ErrAuth
	case http.StatusTooManyRequests:
		return thole.ErrRateLimit
	case http.StatusRequestEntityTooLarge:
		return thole.ErrContextTooLong
	case http.StatusRequestTimeout:
		return thole.ErrNetwork
	case 0:
		return thole.ErrNetwork
	}
	if status >= 500 {
		return thole.ErrOverloaded
	}
	return thole.ErrBadRequest
}

// CodeForText maps free text to an error code, for CLIs that report nothing
// better. The order matters: the first match wins.
func CodeForText(text string) (thole.ErrorCode, bool) {
	text = strings.ToLower(text)
	for _, row := range []struct {
		code  thole.ErrorCode
		parts []string
	}{
		{thole.ErrContextTooLong, []string{"context window", "context length", "context_length", "prompt is too long", "too many tokens", "maximum context"}},
		{thole.ErrModelRefused, []string{"refus", "content filter", "content_filter", "content policy", "cyber_policy", "safety system"}},
		{thole.ErrRateLimit, []string{"429", "rate limit", "rate_limit", "usage limit", "quota", "too many requests"}},
		{thole.ErrAuth, []string{"401", "403", "unauthorized", "authentication", "invalid api key", "incorrect api key", "not logged in", "forbidden"}},
		{thole.ErrOverloaded, []string{"529", "503", "502", "500", "overloaded", "high demand", "server error", "at capacity"}},
		{thole.ErrNetwork, []string{"stream disconnected", "connection", "network", "timed out", "timeout", "dns", "eof", "socket", "idle"}},
		{thole.ErrBadRequest, []string{"400", "404", "422", "invalid_request", "bad request", "not found", "unknown model", "unsupported"}},
	} {
		for _, p := range row.parts {
			if strings.Contains(text, p) {
				return row.code, true
			}
		}
	}
	return "", false
}
