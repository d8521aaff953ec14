package egress

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Verdict is what became of a connection.
type Verdict string

const (
	Allowed Verdict = "allowed"
	Refused Verdict = "refused" // by policy or address
	Failed  Verdict = "failed"  // allowed, but the target could not be reached
)

// Connection is one connection as it ended.
type Connection struct {
	Protocol       string // connect, http, socks5, forward
	Host           string // as the client named it, in lower case
	Port           int
	Address        string // what was dialled, "" for nothing
	Sent, Received int64  // bytes to and from the target
	Start          time.Time
	Duration       time.Duration
	Verdict        Verdict
	Why            string // of a refusal or failure
}

// Total is what went to one target with one verdict.
type Total struct {
	Host        string    `json:"host"` // "" for the targets beyond the first MaxTotals
	Port        int       `json:"port"`
	Address     string    `json:"address,omitempty"` // the last one dialled
	Verdict     Verdict   `json:"verdict"`
	Why         string    `json:"why,omitempty"` // of the last refusal or failure
	Connections int64     `json:"connections"`   // begun
	Sent        int64     `json:"sent"`
	Received    int64     `json:"received"`
	First       time.Time `json:"first"` // the first sign of it
	Last        time.Time `json:"last"`
}

// MaxTotals is how many totals are kept apart; what comes later is added to one more per verdict.
const MaxTotals = 128

type totalKey struct {
	host    string
	port    int
	verdict Verdict
}

// meter adds up connections per target. Its memory is bounded whatever an agent does.
type meter struct {
	mu     sync.Mutex
	totals map[totalKey]*Total
}

func (m *meter) add(c Connection, begun, sent, received int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := totalKey{c.Host, c.Port, c.Verdict}
	if m.totals[key] == nil && len(m.totals) >= MaxTotals {
		key = totalKey{verdict: c.Verdict}
	}
	t := m.totals[key]
	if t == nil {
		if m.totals == nil {
			m.totals = map[totalKey]*Total{}
		}
		t = &Total{Host: key.host, Port: key.port, Verdict: key.verdict, First: time.Now()}
		m.totals[key] = t
	}
	if key.host != "" {
		t.Address, t.Why = c.Address, c.Why
	}
	t.Last = time.Now()
	t.Connections += begun
	t.Sent += sent
	t.Received += received
}

// Totals returns what was counted since the last Take, by target. Bytes of a running connection
// are in it up to a second late.
func (p *Proxy) Totals() []Total { return p.meter.list(false) }

// Take returns the totals and starts again at zero. A connection that goes on is counted in
// the next totals with the bytes that it moves from then on, and not as begun.
func (p *Proxy) Take() []Total { return p.meter.list(true) }

func (m *meter) list(clear bool) []Total {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]Total, 0, len(m.totals))
	for _, t := range m.totals {
		out = append(out, *t)
	}
	if clear {
		m.totals = nil
	}
	slices.SortFunc(out, func(a, b Total) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Verdict, b.Verdict))
	})
	return out
}

// flow is one connection while it lasts.
type flow struct {
	p  *Proxy
	to target
	s  *stream
	mu sync.Mutex
	Connection
}

// begin opens a target and records what came of it. The caller ends the flow of an open stream.
func (p *Proxy) begin(ctx context.Context, protocol string, t target) (*stream, *flow, error) {
	return p.beginWith(protocol, t, func() (*stream, error) { return p.open(ctx, t, protocol == "http") })
}

func (p *Proxy) beginWith(protocol string, t target, open func() (*stream, error)) (*stream, *flow, error) {
	start := time.Now()
	s, err := open()
	f := p.record(start, protocol, t, s, err)
	if err != nil {
		f.end()
		return nil, f, err
	}
	f.to, f.s = t, s
	p.mu.Lock()
	p.flows[f] = true
	p.mu.Unlock()
	if r := p.rules.byName(t); r != nil { // narrowed while it was opened
		_ = s.Close()
		f.end()
		return nil, f, r
	}
	return s, f, nil
}

// reject records a target that cannot even be parsed.
func (p *Proxy) reject(protocol string, t target, why error) {
	p.record(time.Now(), protocol, t, nil, &Refusal{Why: why.Error()}).end()
}

func (p *Proxy) record(start time.Time, protocol string, t target, s *stream, err error) *flow {
	f := &flow{p: p, Connection: Connection{Protocol: protocol, Host: t.host, Port: int(t.port), Start: start, Verdict: Allowed}}
	if s != nil {
		f.Address = s.address
	}
	if err != nil {
		f.Verdict, f.Why = Failed, err.Error()
		var refusal *Refusal
		if errors.As(err, &refusal) {
			f.Verdict, f.Why = Refused, refusal.Why
		}
	}
	p.meter.add(f.Connection, 1, 0, 0)
	return f
}

func (f *flow) sent(n int64)     { f.count(n, 0) }
func (f *flow) received(n int64) { f.count(0, n) }

func (f *flow) count(sent, received int64) {
	f.mu.Lock()
	f.Sent += sent
	f.Received += received
	c := f.Connection
	f.mu.Unlock()
	f.p.meter.add(c, 0, sent, received)
}

// end logs the connection. It is called once.
func (f *flow) end() {
	f.p.mu.Lock()
	delete(f.p.flows, f)
	f.p.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Duration = time.Since(f.Start)
	if f.p.c.Log != nil {
		f.p.c.Log(f.Connection)
	}
}
