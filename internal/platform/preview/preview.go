// Package preview shows a person the web server of an agent: a port of its box, on an
// origin of its own (ID.localhost), which shares no cookie, no storage and no path with
// the page. It keeps what is open in memory, and ends it with its executor.
//
// It refuses everybody who did not come with a ticket that a person was given, and
// passes nothing of thole's on to the agent: no cookie, no proof, no token.
package preview

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/unguarded"
)

const (
	// Life is how long a port stays open at most, ticketLife how long its first
	// address waits to be opened.
	Life       = 12 * time.Hour
	ticketLife = 10 * time.Minute

	maxPerThread = 8
	maxAll       = 64
	maxTickets   = 16  // unused ones of one port
	maxRequests  = 128 // at a time, of one port
)

// Config makes Previews.
type Config struct {
	// Page is the address of the page, of which scheme and port are taken.
	Page *url.URL
	// Running finds the executor of a thread that runs. CodeConflict: there is none.
	Running func(context.Context, thole.ThreadID) (thole.ExecutorID, error)
	// Dial connects to a port inside an executor. CodeConflict: nobody listens there;
	// CodeGone: that executor does not run any more.
	Dial func(context.Context, thole.ThreadID, thole.ExecutorID, uint16) (net.Conn, error)
	// Audit records who opens what; nil: nobody does.
	Audit *audit.Log
	Now   func() time.Time
}

// Port is one that is open.
type Port struct {
	ID        string         `json:"id" doc:"the first part of its host name"`
	Thread    thole.ThreadID `json:"session_id"`
	Port      uint16         `json:"port"`
	Origin    string         `json:"origin"`
	URL       string         `json:"url,omitempty" doc:"lets one browser in, once and within ten minutes; only in the answer to opening"`
	OpenedAt  time.Time      `json:"opened_at"`
	ExpiresAt time.Time      `json:"expires_at" doc:"at the latest; it ends with its executor, its login and thole"`
}

// By is whose port it is: a login, a token, or "" for who has the home's socket. It
// ends with them.
type By struct {
	ID   string
	Ends time.Time // zero: never
	// Hold returns a context that ends when the login or token does, until it is
	// released; nil: never.
	Hold func() (held context.Context, release context.CancelFunc)
}

// Previews are the open ports. Safe for concurrent use.
type Previews struct {
	cfg Config

	mu sync.Mutex // guards what follows, and each port's tickets
	by map[string]*open
}

type open struct {
	Port
	executor thole.ExecutorID
	by       string
	secret   string               // the browser's cookie
	tickets  map[string]time.Time // until when
	ctx      context.Context
	end      context.CancelCauseFunc
	slots    chan struct{}
	proxy    *httputil.ReverseProxy
}

// New makes Previews with nothing open.
func New(cfg Config) *Previews {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Previews{cfg: cfg, by: map[string]*open{}}
}

// Open opens a port, or makes another address for one that is open. A server must
// listen there.
func (p *Previews) Open(ctx context.Context, id thole.ThreadID, port uint16, by By) (Port, error) {
	if port == 0 {
		return Port{}, thole.Errorf(thole.CodeInvalid, "there is no port 0").WithHint("name the port that the agent's server listens on, 1 to 65535")
	}
	executor, err := p.cfg.Running(ctx, id)
	if err != nil {
		return Port{}, err
	}
	probe, err := p.cfg.Dial(ctx, id, executor, port)
	if err != nil {
		return Port{}, err
	}
	_ = probe.Close()
	if err := p.cfg.Audit.Record(ctx, audit.Entry{Action: "port.open", Kind: "thread", ID: string(id), After: audit.Facts(map[string]any{"port": port, "executor": executor})}); err != nil {
		return Port{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	o := p.find(func(o *open) bool {
		return o.Thread == id && o.Port.Port == port && o.executor == executor && o.by == by.ID
	})
	if o == nil {
		if o, err = p.add(id, executor, port, by); err != nil {
			return Port{}, err
		}
	}
	if ctx.Err() != nil { // the caller may have been logged out before we held on
		p.remove(o)
		return Port{}, context.Cause(ctx)
	}
	if len(o.tickets) >= maxTickets {
		return Port{}, thole.Errorf(thole.CodeOverloaded, "%d addresses of port %d wait to be opened", len(o.tickets), port).WithHint("open one, or wait %s", ticketLife)
	}
	ticket := secret()
	o.tickets[ticket] = p.cfg.Now().Add(ticketLife)
	out := o.Port
	out.URL = out.Origin + enterPath + "?ticket=" + ticket
	return out, nil
}

func (p *Previews) add(id thole.ThreadID, executor thole.ExecutorID, port uint16, by By) (*open, error) {
	of := 0
	for _, o := range p.by {
		if o.Thread == id {
			of++
		}
	}
	if of >= maxPerThread || len(p.by) >= maxAll {
		return nil, thole.Errorf(thole.CodeOverloaded, "%d ports of the thread and %d in all are open, of at most %d and %d", of, len(p.by), maxPerThread, maxAll).
			WithHint("close one: thole thread port %s PORT --close", id)
	}
	now := p.cfg.Now()
	o := &open{executor: executor, by: by.ID, secret: secret(), tickets: map[string]time.Time{}, slots: make(chan struct{}, maxRequests)}
	o.Port = Port{ID: strings.ToLower(rand.Text()), Thread: id, Port: port, OpenedAt: now, ExpiresAt: now.Add(Life)}
	if !by.Ends.IsZero() && by.Ends.Before(o.ExpiresAt) {
		o.ExpiresAt = by.Ends
	}
	o.Origin = p.origin(o.ID)
	o.ctx, o.end = context.WithCancelCause(context.Background())
	o.proxy = p.proxy(o)
	p.by[o.ID] = o
	timer := time.AfterFunc(o.ExpiresAt.Sub(now), func() { p.close(o) })
	context.AfterFunc(o.ctx, func() { timer.Stop() })
	if by.Hold != nil {
		held, release := by.Hold()
		context.AfterFunc(o.ctx, release)
		context.AfterFunc(held, func() { p.close(o) })
	}
	return o, nil
}

// origin is where a port is shown.
func (p *Previews) origin(id string) string {
	if unguarded.Build {
		return p.cfg.Page.Scheme + "://" + p.cfg.Page.Host + unguardedPath + id
	}
	return p.cfg.Page.Scheme + "://" + net.JoinHostPort(id+suffix, cmp.Or(p.cfg.Page.Port(), map[string]string{"http": "80", "https": "443"}[p.cfg.Page.Scheme]))
}

// secret is one that nobody guesses.
func secret() string { return rand.Text() + rand.Text() }

// List lists the open ports of a thread, by number.
func (p *Previews) List(ctx context.Context, id thole.ThreadID) []Port {
	running, err := p.cfg.Running(ctx, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	out := []Port{}
	for _, o := range p.by {
		switch {
		case o.Thread != id:
		case thole.CodeOf(err) == thole.CodeConflict || thole.CodeOf(err) == thole.CodeNotFound || err == nil && running != o.executor:
			p.remove(o)
		default:
			out = append(out, o.Port)
		}
	}
	slices.SortFunc(out, func(a, b Port) int { return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.ID, b.ID)) })
	return out
}

// Close closes a port of a thread for all who opened it; connections through it end.
func (p *Previews) Close(id thole.ThreadID, port uint16) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := false
	for _, o := range p.by {
		if o.Thread == id && o.Port.Port == port {
			p.remove(o)
			found = true
		}
	}
	if !found {
		return thole.Errorf(thole.CodeNotFound, "port %d of the thread is not open", port).WithHint("thole thread port %s lists those that are", id)
	}
	return nil
}

// CloseAll closes every port.
func (p *Previews) CloseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.by {
		p.remove(o)
	}
}

func (p *Previews) close(o *open) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(o)
}

func (p *Previews) remove(o *open) {
	delete(p.by, o.ID)
	o.end(errClosed)
}

// sweep removes what is too old.
func (p *Previews) sweep() {
	now := p.cfg.Now()
	for _, o := range p.by {
		if !now.Before(o.ExpiresAt) {
			p.remove(o)
			continue
		}
		for ticket, until := range o.tickets {
			if !now.Before(until) {
				delete(o.tickets, ticket)
			}
		}
	}
}

func (p *Previews) find(is func(*open) bool) *open {
	for _, o := range p.by {
		if is(o) {
			return o
		}
	}
	return nil
}

// ParsePort reads the number of a port.
func ParsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, thole.Errorf(thole.CodeInvalid, "%q is no port", s).WithHint("name the port that the agent's server listens on, 1 to 65535")
	}
	return uint16(n), nil
}
