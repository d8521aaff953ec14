package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tholehq/thole"
)

const (
	maxBody    = 64 << 20
	maxBodies  = 512 << 20 // of all requests that are not answered yet
	maxShare   = 128 << 20 // of those of one thread
	bodyTime   = 5 * time.Minute
	settleTime = 30 * time.Second
)

// Gateway answers the requests of agent CLIs. It is safe for concurrent use.
type Gateway struct {
	c         Config
	transport *http.Transport
	gates     gates
	bodies    room
}

// New returns a gateway. Close releases its idle connections.
func New(c Config) *Gateway {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Gateway{c: c, transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}}
}

// Close closes connections to upstreams that are not in use.
func (g *Gateway) Close() { g.transport.CloseIdleConnections() }

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if probe(r) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true}`)
		return
	}
	if (r.RequestURI == ToolsPath || r.RequestURI == ClientToolsPath) && g.c.Tools != nil {
		g.tools(w, r)
		return
	}
	to, f := parseTarget(r)
	if f != nil {
		f.write(w, "")
		return
	}
	dialect := to.at.dialect
	claim, f := g.claim(r)
	if f != nil {
		f.write(w, dialect)
		return
	}
	route, err := g.c.Routes.Route(r.Context(), claim, to.route)
	if err != nil {
		refuseFor(err, "route "+to.route).write(w, dialect)
		return
	}
	if dialect != "" && dialect != route.Dialect {
		refuse(notFound, "route %s does not have %s", to.route, to.at.path).write(w, dialect)
		return
	}
	c := &call{g: g, w: w, r: r, to: to, claim: claim, route: route}
	if f := c.serve(); f != nil {
		f.write(w, route.Dialect)
	}
}

// ToolsPath is where agents find the tool server, ClientToolsPath the one that has the tools
// of their thread's client.
const (
	ToolsPath       = "/mcp"
	ClientToolsPath = ToolsPath + "/client"
)

// tools lets the agent of an open turn call its tools. Not 401: clients would look for a
// login that there is none of.
func (g *Gateway) tools(w http.ResponseWriter, r *http.Request) {
	claim, f := g.claim(r)
	if f != nil {
		http.Error(w, f.text, http.StatusForbidden)
		return
	}
	g.c.Tools.ServeTools(w, r, claim)
}

// claim checks who asks.
func (g *Gateway) claim(r *http.Request) (Claim, *refusal) {
	token := tokenOf(r.Header)
	proof, proven := proofOf(r.Context())
	if token == "" || !proven {
		return Claim{}, refuse(unauthorized, "the gateway does not know this token")
	}
	claim, err := g.c.Tokens.Claim(r.Context(), sha256.Sum256([]byte(token)), proof)
	switch thole.CodeOf(err) {
	case "":
		return claim, nil
	case thole.CodeUnauthorized, thole.CodeNotFound, thole.CodeForbidden:
		return Claim{}, refuse(unauthorized, "the gateway does not know this token")
	case thole.CodeGone:
		return Claim{}, refuse(unauthorized, "no turn is open: the model can be called only during a turn of this thread")
	}
	g.c.Log.Error("check gateway token", "err", err)
	return Claim{}, refuse(unavailable, "the gateway cannot check tokens now")
}

// refuseFor converts an error of a port into an answer. Only our own errors are shown.
func refuseFor(err error, what string) *refusal {
	text := what + " cannot be used now"
	var e *thole.Error
	if errors.As(err, &e) {
		text = e.Error()
		if hint := thole.HintOf(err); hint != "" {
			text += " (" + hint + ")"
		}
	}
	switch thole.CodeOf(err) {
	case thole.CodeBudgetExceeded:
		return refuse(overBudget, "%s", text)
	case thole.CodeNotFound:
		return refuse(notFound, "%s", text)
	case thole.CodeInvalid, thole.CodeUnsupported, thole.CodeConflict, thole.CodeHeld:
		return refuse(invalid, "%s", text)
	case thole.CodeUnauthorized, thole.CodeForbidden: // a credential that is not taken any more, for a person to replace
		return refuse(unauthorized, "%s", text)
	case thole.CodeBusy, thole.CodeOverloaded:
		return &refusal{kind: overloaded, text: text, after: 5 * time.Second}
	}
	return refuse(unavailable, "%s", text)
}

// room counts the bytes of requests in memory. A thread that sends slowly takes no more
// than its share from the others.
type room struct {
	mu  sync.Mutex // guards what follows
	all int64
	of  map[thole.ThreadID]int64
}

// take counts n bytes more, or less, and reports whether there was room for them.
func (b *room) take(thread thole.ThreadID, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[thole.ThreadID]int64{}
	}
	b.all += n
	if b.of[thread] += n; b.of[thread] == 0 {
		delete(b.of, thread)
	}
	return b.all <= maxBodies && b.of[thread] <= maxShare
}

// readBody reads a whole request, within the memory that all requests share. free gives
// the memory back.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request, thread thole.ThreadID) (body []byte, free func(), f *refusal) {
	const step = 256 << 10
	var taken int64
	free = func() { g.bodies.take(thread, -taken); taken = 0 }
	if r.Header.Get("Content-Encoding") != "" {
		return nil, free, refuse(invalid, "the gateway does not read compressed requests")
	}
	if r.ContentLength > maxBody {
		return nil, free, refuse(tooLarge, "request body is longer than %d bytes", maxBody)
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	for {
		if len(body) == cap(body) { // counted before it is taken, and not by what the client announces
			size := min(max(2*int64(cap(body)), step), maxBody+1)
			if r.ContentLength >= int64(len(body)) {
				size = min(size, r.ContentLength+1)
			}
			more := size - taken
			taken = size
			if !g.bodies.take(thread, more) {
				return nil, free, &refusal{kind: overloaded, text: "too many requests are being read", after: 5 * time.Second}
			}
			body = append(make([]byte, 0, size), body...)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > maxBody:
			return nil, free, refuse(tooLarge, "request body is longer than %d bytes", maxBody)
		case errors.Is(err, io.EOF):
			return body, free, nil
		case err != nil:
			return nil, free, refuse(invalid, "request body ended early")
		}
	}
}

// settled returns a context for what must be recorded although the client has left.
func settled(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), settleTime)
}
