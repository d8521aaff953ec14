package gateway

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// up and down are the headers that pass, by name or by what a name begins with. Nothing
// else does: no cookie, no forwarded address, no hop-by-hop header, and of the upstream's
// account only its limits.
var (
	up = headers{
		names: []string{
			"Accept", "User-Agent", "Originator", "Version", "X-App", "X-Title", "Http-Referer",
			"Session-Id", "Session_id", "Thread-Id", "Conversation_id", "X-Session-Id", "X-Session-Affinity",
			"X-Client-Request-Id", "X-Claude-Code-Session-Id", "Openai-Beta", "X-Openai-Subagent", "X-Openai-Internal-Codex-Responses-Lite",
			"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access",
		},
		prefixes: []string{"X-Stainless-", "X-Codex-"},
	}
	down = headers{
		names: []string{
			"Content-Type", "Content-Encoding", "Cache-Control", "Retry-After", "Retry-After-Ms", "X-Should-Retry",
			"Request-Id", "X-Request-Id", "Openai-Model", "Openai-Version", "Openai-Processing-Ms",
			"X-Models-Etag", "X-Reasoning-Included",
		},
		prefixes: []string{"Anthropic-Ratelimit-", "X-Ratelimit-", "X-Codex-"},
	}
)

type headers struct{ names, prefixes []string }

func (l headers) passes(name string) bool {
	return slices.Contains(l.names, name) ||
		slices.ContainsFunc(l.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// copy adds to what passes of from. Names are compared in their canonical form, in which
// net/http keeps them.
func (l headers) copy(to, from http.Header) {
	for name, values := range from {
		if l.passes(name) {
			to[name] = values
		}
	}
}

// outgoing returns the headers of a request to an upstream, without its credential.
func outgoing(from http.Header, body bool) http.Header {
	h := http.Header{}
	up.copy(h, from)
	// Bytes pass as they come, so that usage can be read in them; and a missing
	// User-Agent stays missing.
	h["Accept-Encoding"] = []string{"identity"}
	if h["User-Agent"] == nil {
		h["User-Agent"] = []string{""}
	}
	if body {
		h["Content-Type"] = []string{"application/json"}
	}
	return h
}

// tokenOf returns the token of a request, as each of the clients sends it.
func tokenOf(h http.Header) string {
	if v := h["Authorization"]; len(v) == 1 {
		scheme, token, _ := strings.Cut(v[0], " ")
		if strings.EqualFold(scheme, "bearer") {
			return textproto.TrimString(token)
		}
		return ""
	}
	if v := h["X-Api-Key"]; len(v) == 1 {
		return v[0]
	}
	return ""
}
