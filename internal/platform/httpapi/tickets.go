package httpapi

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
)

const (
	ticketParam = "ticket"
	// ticketLife is how long a ticket waits to be used.
	ticketLife = 30 * time.Second
	// maxTickets bounds the unused ones of all callers.
	maxTickets = 1000
)

// tickets stand in for the header of links, images, downloads, EventSource and
// WebSocket, which cannot send one. Each works once, for one path with its query,
// and only while its maker's login or token lasts; one that a browser made also
// needs that browser's cookie. Where there is one server they are kept in memory: they live
// for seconds. See sharedTicket for those of several.
type tickets struct {
	mu  sync.Mutex
	all map[string]ticket
}

type ticket struct {
	target  string
	caller  who
	expires time.Time
}

func errTicket() error {
	return thole.Errorf(thole.CodeUnauthorized, "this ticket was used, is too old or is not for this request").WithHint("make another with POST /auth/tickets")
}

// target is what a ticket is bound to: path and query, in one spelling.
func target(u *url.URL) string { return u.Path + "?" + u.Query().Encode() }

// takeTicket removes the ticket from the request's address.
func takeTicket(r *http.Request) (string, bool) {
	q := r.URL.Query()
	if !q.Has(ticketParam) {
		return "", false
	}
	value := q.Get(ticketParam)
	q.Del(ticketParam)
	r.URL.RawQuery = q.Encode()
	return value, true
}

func (t *tickets) add(v ticket, now time.Time) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for value, old := range t.all {
		if !now.Before(old.expires) {
			delete(t.all, value)
		}
	}
	if len(t.all) >= maxTickets {
		return "", thole.Errorf(thole.CodeOverloaded, "%d tickets wait to be used", len(t.all)).WithHint("wait half a minute")
	}
	if t.all == nil {
		t.all = map[string]ticket{}
	}
	value := rand.Text() + rand.Text()
	t.all[value] = v
	return value, nil
}

// use removes a ticket, also one that does not fit: it was shown to others.
func (t *tickets) use(value string, r *http.Request, cookie string, now time.Time) (who, error) {
	t.mu.Lock()
	v, ok := t.all[value]
	delete(t.all, value)
	t.mu.Unlock()
	if !ok || r.Method != http.MethodGet || !now.Before(v.expires) || v.target != target(r.URL) || v.caller.login.Cookie != "" && v.caller.login.Cookie != cookie {
		return who{}, errTicket()
	}
	return v.caller, nil
}

type ticketOut struct {
	Ticket    string    `json:"ticket"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (s *Server) makeTicket(ctx context.Context, in *struct {
	Body struct {
		Path string `json:"path" maxLength:"4096" doc:"path and query of the GET, without the ticket"`
	}
}) (*body[ticketOut], error) {
	u, err := url.Parse(in.Body.Path)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") {
		return nil, thole.Errorf(thole.CodeInvalid, "%q is not a path of this server", in.Body.Path)
	}
	if h, _ := s.mux.find(&http.Request{Method: http.MethodGet, URL: u}); h == nil {
		return nil, thole.Errorf(thole.CodeNotFound, "there is nothing to GET at %s", u.Path)
	}
	out := ticketOut{ExpiresAt: s.cfg.Now().Add(ticketLife)}
	out.Ticket, err = s.addTicket(ctx, target(u), ctx.Value(whoKey).(who))
	return answer(out, err)
}
