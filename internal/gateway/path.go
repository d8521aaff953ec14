package gateway

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// endpoint is one of the fixed paths that a route has, without its /v1.
type endpoint struct {
	path    string
	method  string
	dialect Dialect  // "": of any
	query   []string // keys that a client may send
	spends  bool     // its answer is generated
}

var endpoints = []endpoint{
	{"/messages", http.MethodPost, Anthropic, []string{"beta"}, true},
	{"/messages/count_tokens", http.MethodPost, Anthropic, []string{"beta"}, false},
	{"/responses", http.MethodPost, Responses, nil, true},
	{"/responses/compact", http.MethodPost, Responses, nil, true},
	{"/chat/completions", http.MethodPost, Chat, nil, true},
	{"/models", http.MethodGet, "", []string{"beta", "limit", "after_id", "before_id", "client_version"}, false},
}

var (
	routeName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })
	queryValue = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`) })
)

// target is where a request wants to go, in our words only.
type target struct {
	route string
	at    endpoint
	query url.Values
}

// probe reports whether a request asks for nothing but a sign of life, as clients do of
// their base address before they use it.
func probe(r *http.Request) bool {
	if r.Method != http.MethodHead && r.Method != http.MethodGet {
		return false
	}
	name := strings.Trim(r.RequestURI, "/")
	return name == "" || name == "healthz" || r.Method == http.MethodHead && routeName().MatchString(name)
}

// parseTarget takes a request target apart as it was sent. Only an exact path counts:
// no encoding, no dots, no second slash and no authority is cleaned away.
func parseTarget(r *http.Request) (target, *refusal) {
	unknown := refuse(notFound, "the gateway has no path %.200q", r.URL.Path)
	path, query, asked := strings.Cut(r.RequestURI, "?")
	path, rooted := strings.CutPrefix(path, "/")
	name, rest, ok := strings.Cut(path, "/v1/")
	if !rooted || !ok || !routeName().MatchString(name) {
		return target{}, unknown
	}
	to := target{route: name, query: url.Values{}}
	for _, e := range endpoints {
		if e.path == "/"+rest && e.method == r.Method {
			to.at = e
		}
	}
	if to.at.path == "" {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			// Codex then asks over HTTP at once, instead of after five tries.
			return target{}, refuse(noSocket, "the gateway has no web sockets")
		}
		return target{}, unknown
	}
	if !asked {
		return to, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return target{}, refuse(invalid, "the query of %s cannot be parsed", to.at.path)
	}
	for _, key := range to.at.query {
		if v := values[key]; len(v) == 1 && queryValue().MatchString(v[0]) {
			to.query.Set(key, v[0])
			delete(values, key)
		}
	}
	for key := range values {
		return target{}, refuse(invalid, "query parameter %.100q is not supported by the gateway", key)
	}
	return to, nil
}

// url returns the address of an endpoint at an upstream: its base, the fixed path and
// the checked query.
func (u Upstream) url(to target) *url.URL {
	at := *u.Base
	at.Path = strings.TrimRight(at.Path, "/") + to.at.path
	at.RawPath, at.Fragment, at.RawFragment = "", "", ""
	query := at.Query()
	for key := range to.query {
		query.Set(key, to.query.Get(key))
	}
	at.RawQuery = query.Encode()
	return &at
}
