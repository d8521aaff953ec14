package claude

import (
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// class maps what the CLI says about a failed model call to the closed set. The
// HTTP status decides where there is one; the CLI's own word and the sentence
// decide otherwise.
func class(status int, word, terminal, sentence string) thole.ErrorCode {
	low := strings.ToLower(sentence)
	switch {
	case terminal == "prompt_too_long", strings.Contains(low, "prompt is too long"):
		return thole.ErrContextTooLong
	case strings.Contains(low, "usage policy"):
		return thole.ErrModelRefused
	case status == 401, status == 403, word == "authentication_failed", word == "billing_error":
		return thole.ErrAuth
	case status == 429, word == "rate_limit":
		return thole.ErrRateLimit
	case status >= 500, word == "server_error", word == "overloaded", strings.Contains(low, "overloaded"):
		return thole.ErrOverloaded
	case status >= 400, word == "model_not_found":
		return thole.ErrBadRequest
	case status == 0 && word != "invalid_request":
		return thole.ErrNetwork
	}
	return thole.ErrBadRequest
}

func failure(code thole.ErrorCode, status int, sentence string) *thole.TurnError {
	if sentence == "" {
		sentence = "the model call failed"
	}
	return provider.Failure(code, sentence, status)
}

// verdict reads a result: the outcome, and why it failed. lastError is the class
// word of the last synthetic message, which the result itself does not carry.
// Exit codes are not asked: they are 0 after an interrupt and 1 after a bad model
// call that the conversation survives.
func verdict(m *message, lastError string) (thole.Outcome, *thole.TurnError) {
	if strings.HasPrefix(m.TerminalReason, "aborted") {
		return thole.OutcomeInterrupted, nil
	}
	if m.Subtype == "success" && !m.IsError {
		return thole.OutcomeCompleted, nil
	}
	sentence := m.Result
	if sentence == "" {
		sentence = strings.Join(m.Errors, "; ")
	}
	switch m.Subtype {
	case "success":
		if m.StopReason == "refusal" {
			return thole.OutcomeFailed, failure(thole.ErrModelRefused, m.APIStatus, sentence)
		}
		return thole.OutcomeFailed, failure(class(m.APIStatus, lastError, m.TerminalReason, sentence), m.APIStatus, sentence)
	case "error_max_turns", "error_max_budget_usd", "error_max_structured_output_retries":
		e := failure(thole.ErrBadRequest, 0, "stopped by a limit of this session: "+strings.TrimPrefix(m.Subtype, "error_"))
		e.Hint = "raise the limit and send a message to go on"
		return thole.OutcomeFailed, e
	}
	return thole.OutcomeFailed, failure(thole.ErrProviderCrashed, 0, sentence)
}
