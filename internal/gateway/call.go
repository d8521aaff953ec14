package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tholehq/thole"
)

const (
	firstByteTime = 10 * time.Minute
	stallTime     = 10 * time.Minute // a client that reads nothing for so long is gone
)

var errFirstByte = errors.New("no answer within the time limit")

// call is one request on its way to an upstream and back.
type call struct {
	g     *Gateway
	w     http.ResponseWriter
	r     *http.Request
	to    target
	claim Claim
	route Route

	request *request // nil for a GET
	ledger  Call
	id      string // of the ledger
	tape    Recording
	meter   meter
	pass    *pass // of the upstream that has the call now

	result   Result
	lost     bool  // an upstream got the request and did not answer: it may cost something
	passed   bool  // an answer is being passed on
	received int64 // bytes of its body
	whole    bool  // it came to its end
}

// serve returns a refusal to be answered, nil when an answer was passed on. It panics with
// http.ErrAbortHandler when an answer was cut, so that the client sees the cut.
func (c *call) serve() *refusal {
	free := func() {}
	if c.to.at.method == http.MethodPost {
		var body []byte
		var f *refusal
		body, free, f = c.g.readBody(c.w, c.r, c.claim.Thread)
		defer func() { free() }()
		if f != nil {
			return f
		}
		if c.request, f = parseRequest(c.route.Dialect, body, c.route.Grants); f != nil {
			return f
		}
	}
	upstreams := c.upstreams()
	if len(upstreams) == 0 {
		return refuse(wrongModel, "model %.100q is not available on route %s", c.model(), c.to.route)
	}
	if c.request != nil {
		if f := c.begin(upstreams[0]); f != nil {
			return f
		}
		defer c.end()
	}
	defer func() {
		if c.pass != nil {
			c.pass.leave()
		}
	}()
	answer, f := c.first(upstreams)
	if f != nil {
		c.result.Status, c.result.Error = f.status(c.route.Dialect), f.text
		return f
	}
	defer answer.Body.Close()
	if c.request != nil {
		c.request.body = nil
		free()
	}
	c.forward(answer)
	return nil
}

func (c *call) model() string {
	if c.request == nil {
		return ""
	}
	return c.request.model
}

// upstreams are those of the route that have the model. Those that asked to be left alone
// are tried last.
func (c *call) upstreams() []Upstream {
	list := slices.Clone(c.route.Upstreams)
	if c.request != nil {
		list = slices.DeleteFunc(list, func(u Upstream) bool { return !u.serves(c.request.model) })
	}
	now := time.Now()
	slices.SortStableFunc(list, func(a, b Upstream) int {
		return btoi(c.g.gates.paused(a, now)) - btoi(c.g.gates.paused(b, now))
	})
	return list
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// begin reserves what the call may cost.
func (c *call) begin(u Upstream) *refusal {
	now := time.Now()
	c.ledger = Call{Claim: c.claim, Route: c.to.route, Upstream: u.Name, Model: c.request.model, Path: c.to.at.path, At: now}
	if c.to.at.spends {
		c.ledger.InputEstimate, c.ledger.MaxOutput = inputEstimate(c.request.body), c.request.limit
	}
	var err error
	if c.id, err = c.g.c.Ledger.Begin(c.r.Context(), c.ledger); err == nil {
		if c.g.c.Recorder != nil {
			c.tape = c.g.c.Recorder.Record(c.ledger, c.request.body)
		}
		return nil
	}
	// What a budget refused is in the ledger, where the dispatcher reads it.
	if thole.CodeOf(err) != thole.CodeBudgetExceeded && c.r.Context().Err() == nil {
		c.g.c.Log.Error("reserve for a model call", "thread", c.claim.Thread, "turn", c.claim.Turn, "err", err)
	}
	return refuseFor(err, "the budget")
}

// end settles the call, also after a panic.
func (c *call) end() {
	r := &c.result
	r.EndedAt = time.Now()
	c.meter.end(c.whole)
	lost := unknownUsage(c.ledger, c.request.n, thole.Usage{}, 0, r.EndedAt.Sub(c.ledger.At))
	switch {
	case !c.to.at.spends, !c.passed && !c.lost, c.passed && r.Status >= 400 && !c.lost:
		r.Usage, r.Known = thole.Usage{Model: c.ledger.Model}, true
	case !c.passed || r.Status >= 400:
		r.Usage = lost
	case c.meter.final && !c.lost:
		r.Usage, r.Known = c.meter.usage, true
	case c.meter.final:
		r.Usage = lost.Plus(c.meter.usage)
	default:
		r.Usage = unknownUsage(c.ledger, c.request.n, c.meter.usage, c.received, r.EndedAt.Sub(c.ledger.At))
		if c.lost {
			r.Usage = lost.Plus(r.Usage)
		}
	}
	if r.Usage.Model == "" {
		r.Usage.Model = c.ledger.Model
	}
	if c.tape != nil {
		c.tape.End(*r)
	}
	ctx, cancel := settled(c.r.Context())
	defer cancel()
	if err := c.g.c.Ledger.End(ctx, c.id, *r); err != nil {
		c.g.c.Log.Error("settle a model call", "thread", c.claim.Thread, "turn", c.claim.Turn, "err", err)
	}
}

// first tries upstreams in order until one gives an answer that is worth passing on, and
// returns it. The last one's answer is.
func (c *call) first(upstreams []Upstream) (answer *http.Response, f *refusal) {
	for i, u := range upstreams {
		last := i == len(upstreams)-1
		c.result.Upstream = u.Name
		began := time.Now()
		var err error
		c.pass, err = c.g.gates.enter(c.r.Context(), u, c.claim.Thread, began)
		c.result.Waited += time.Since(began)
		if err != nil {
			if f = c.failure(u, err); last || c.r.Context().Err() != nil {
				return nil, f
			}
			continue
		}
		answer, err = c.try(u)
		if err != nil {
			c.pass.leave()
			// A lost login is for its owner to know, not for another account to pay.
			if f = c.failure(u, err); last || f.kind == unauthorized || c.r.Context().Err() != nil {
				return nil, f
			}
			continue
		}
		var after time.Duration
		if answer.StatusCode == http.StatusTooManyRequests {
			after = retryAfter(answer.Header, time.Now())
		}
		c.pass.answered(after, time.Now())
		if last || answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode < 500 {
			return answer, nil
		}
		c.warn("model service refused a call, trying the next", u, errors.New(answer.Status))
		_ = answer.Body.Close()
		c.pass.leave()
	}
	return nil, f
}

// try sends the request to one upstream, a second time with a renewed credential when the
// first was refused.
func (c *call) try(u Upstream) (*http.Response, error) {
	for refused := false; ; refused = true {
		answer, err := c.send(u, refused)
		switch {
		case err != nil:
			return nil, err
		case answer.StatusCode < 200 || answer.StatusCode > 599:
			_ = answer.Body.Close()
			return nil, refuse(badUpstream, "model service %s answered with status %d", u.Name, answer.StatusCode)
		case answer.StatusCode >= 300 && answer.StatusCode < 400:
			_ = answer.Body.Close()
			return nil, refuse(badUpstream, "model service %s answered with a redirect; its base URL must be the final one", u.Name)
		case answer.StatusCode != http.StatusUnauthorized:
			return answer, nil
		}
		_ = answer.Body.Close()
		if refused {
			if c.g.c.Refused != nil {
				c.g.c.Refused(c.r.Context(), c.claim, u)
			}
			// Not the answer itself: some services repeat parts of the key in it.
			return nil, refuse(unauthorized, "model service %s refused its credential", u.Name)
		}
	}
}

// send does one exchange up to the head of the answer.
func (c *call) send(u Upstream, refused bool) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	limit := u.FirstByte
	if limit <= 0 {
		limit = firstByteTime
	}
	late := time.AfterFunc(limit, func() { cancel(errFirstByte) })
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})

	var body io.Reader
	if c.request != nil {
		model := c.request.model
		if name := u.Rename[model]; name != "" {
			model = name
		}
		body = bytes.NewReader(c.request.named(model))
	}
	address := u.url(c.to)
	q, err := http.NewRequestWithContext(ctx, c.to.at.method, address.String(), body)
	if err == nil {
		q.Header = outgoing(c.r.Header, body != nil)
		if u.Sign != nil {
			err = u.Sign(ctx, q.Header, refused)
		}
		if err != nil {
			c.warn("credential of a model service", u, err)
			err = refuseFor(err, "the credential of model service "+u.Name)
		}
	}
	if err != nil {
		late.Stop()
		cancel(nil)
		return nil, err
	}
	var transport http.RoundTripper = c.g.transport
	if u.Client != nil && u.Client.Transport != nil {
		transport = u.Client.Transport
	}
	answer, err := transport.RoundTrip(q)
	if !late.Stop() && err == nil {
		_ = answer.Body.Close()
		err = errFirstByte
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		c.lost = c.lost || sent.Load()
		cancel(nil)
		return nil, err
	}
	answer.Body = &endingBody{ReadCloser: answer.Body, end: func() { cancel(nil) }}
	if secrets := secretsOf(q.Header); len(secrets) > 0 {
		answer.Body = &masked{ReadCloser: answer.Body, secrets: secrets}
	}
	return answer, nil
}

// endingBody ends the context of an exchange with its body.
type endingBody struct {
	io.ReadCloser
	end func()
}

func (b *endingBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// failure converts an error before an answer. Addresses and what a transport says of them
// are logged and not shown.
func (c *call) failure(u Upstream, err error) *refusal {
	var f *refusal
	switch {
	case errors.As(err, &f):
		return f
	case c.r.Context().Err() != nil:
		return refuse(unavailable, "the client left")
	case errors.Is(err, errFull):
		return &refusal{kind: overloaded, text: err.Error(), after: 5 * time.Second}
	case errors.Is(err, errFirstByte):
		f = refuse(lateUpstream, "model service %s did not answer in time", u.Name)
	default:
		f = refuse(badUpstream, "model service %s cannot be reached", u.Name)
	}
	c.warn("model service gave no answer", u, err)
	return f
}

func (c *call) warn(text string, u Upstream, err error) {
	c.g.c.Log.Warn(text, "thread", c.claim.Thread, "turn", c.claim.Turn, "err", fmt.Errorf("%s: %w", u, err))
}

// retryAfter reads how long a 429 asks to wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// forward passes an answer on, each piece as it comes.
func (c *call) forward(answer *http.Response) {
	c.passed, c.result.Status, c.result.FirstByteAt = true, answer.StatusCode, time.Now()
	h := c.w.Header()
	down.copy(h, answer.Header)
	if h["Content-Type"] == nil {
		h["Content-Type"] = nil // keeps the server from guessing
	}
	known := answer.ContentLength >= 0
	if known {
		h.Set("Content-Length", strconv.FormatInt(answer.ContentLength, 10))
	}
	c.meter.dialect = c.route.Dialect
	readable := answer.Header.Get("Content-Encoding") == "" && answer.StatusCode < 300
	c.w.WriteHeader(answer.StatusCode)
	control := http.NewResponseController(c.w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	var deadline time.Time

	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	if !known {
		_ = control.Flush()
	}
	for {
		n, err := answer.Body.Read(buffer[:])
		if n > 0 {
			piece := buffer[:n]
			c.received += int64(n)
			if readable {
				c.meter.read(piece)
			}
			if now := time.Now(); deadline.Sub(now) < stallTime/2 {
				deadline = now.Add(stallTime)
				_ = control.SetWriteDeadline(deadline)
			}
			_, failed := c.w.Write(piece)
			if failed == nil && !known {
				failed = control.Flush()
			}
			if c.tape != nil {
				_, _ = c.tape.Write(piece)
			}
			if failed != nil {
				c.result.Error = "the client left"
				panic(http.ErrAbortHandler)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			c.whole = true
			return
		case err != nil && c.r.Context().Err() != nil:
			c.result.Error = "the client left"
			panic(http.ErrAbortHandler)
		case err != nil:
			_ = control.Flush() // the client sees as much of it as it would without us
			c.result.Error = fmt.Sprintf("model service %s broke off its answer", c.result.Upstream)
			panic(http.ErrAbortHandler)
		}
	}
}
