// Package egress is the proxy through which everything in an executor's box reaches
// the network: HTTP CONNECT, plain HTTP and SOCKS5 on one listener. It decides by
// policy and by address, dials the address that it checked, and meters every
// connection. It resolves names itself, so a box needs no resolver.
//
// It refuses to look inside connections: no TLS is opened and no content is judged.
package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Policy says which targets connections may have.
type Policy string

const (
	None    Policy = "none"    // nothing, not even models
	Gateway Policy = "gateway" // models only
	List    Policy = "list"    // models, Names and Private
	Open    Policy = "open"    // models, Private and every public address
)

// Policies lists every policy, the strictest first.
var Policies = []Policy{None, Gateway, List, Open}

// Default is the policy where nobody chose one: on a machine of one's own, or on a
// server that a team shares.
func Default(team bool) Policy {
	if team {
		return List
	}
	return Open
}

// Config is what a proxy allows and how it dials. The zero value allows nothing.
type Config struct {
	Policy Policy
	// Names are the hosts of policy list: "example.com", "*.example.com" for every
	// name below it, either with ":443" for one port.
	Names []string
	// Private are the targets ("host:port", the host as clients write it) that may have a
	// loopback, private or reserved address. Metadata and link-local addresses are refused all the same.
	Private []string
	// Models are the model endpoints ("host:port"): they pass every policy but none
	// and may have any address that Private may.
	Models []string
	// Upstream returns the proxy that a URL goes through, nil for none: see Environment. An upstream gets
	// names, because it often has rules for them and resolves what this machine cannot.
	Upstream func(*url.URL) (*url.URL, error)
	// Log receives every connection when it has ended or was refused.
	// It is called from several goroutines and must not block.
	Log func(Connection)

	// Limits; zero means the default.
	MaxConnections int           // 512; further ones wait to be accepted
	Idle           time.Duration // 10 min without a byte in either direction
	Handshake      time.Duration // 15 s for a request's head

	// Dial, Resolve and Own replace the network in tests. Own returns the addresses of this machine.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Own     func() []netip.Addr
}

// Proxy serves listeners under one Config. All methods are safe for concurrent use.
type Proxy struct {
	c        Config
	rules    rules
	meter    meter
	slots    chan struct{}
	web      *http.Server
	accepted chan net.Conn // by the HTTP server
	ctx      context.Context
	cancel   context.CancelFunc
	roots    *x509.CertPool // that vouch for an upstream; nil: the system's
	tick     time.Duration  // how often byte counts of running connections are taken

	mu      sync.Mutex
	closed  bool
	held    map[io.Closer]bool // listeners and clients
	flows   map[*flow]bool     // open ways to a target
	running sync.WaitGroup
}

// New returns a proxy that serves nothing yet. An entry of Names, Private or Models that
// is not in the form above is an error: a rule that is dropped in silence would refuse or allow too much.
func New(c Config) (*Proxy, error) {
	r, err := newRules(c)
	if err != nil {
		return nil, err
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 512
	}
	if c.Idle == 0 {
		c.Idle = 10 * time.Minute
	}
	if c.Handshake == 0 {
		c.Handshake = 15 * time.Second
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.Own == nil {
		c.Own = interfaceAddresses
	}
	p := &Proxy{c: c, rules: r, slots: make(chan struct{}, c.MaxConnections), tick: min(time.Second, c.Idle), accepted: make(chan net.Conn), held: map[io.Closer]bool{}, flows: map[*flow]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.web = newWeb(p)
	p.running.Go(func() { _ = p.web.Serve(handoff{p}) })
	return p, nil
}

// Allow adds model endpoints to those of Config.
func (p *Proxy) Allow(models ...string) error { return p.rules.allow(models) }

// Models lists the model endpoints.
func (p *Proxy) Models() []string {
	var out []string
	for _, all := range []*sync.Map{p.rules.models, p.rules.leads} {
		all.Range(func(k, _ any) bool { out = append(out, k.(string)); return true })
	}
	slices.Sort(out)
	return out
}

// Serve accepts connections from l until Close or an error of l, and closes l. It returns
// nil after Close. One proxy serves any number of listeners.
func (p *Proxy) Serve(l net.Listener) error { return p.accept(l, p.serve) }

// Pass is Serve for clients that know of no proxy: each connection goes to one target, if
// the policy lets it.
func (p *Proxy) Pass(l net.Listener, to string) error {
	t, err := parseTarget(to)
	if err != nil {
		return err
	}
	return p.accept(l, func(c *client) {
		p.carry(c, func() (*stream, *flow, error) { return p.begin(p.ctx, "forward", t) })
	})
}

// Lead is Pass to something that is no address: open connects to it, and it counts as
// a model under its name. The name stands for it here alone: a client that asks the
// proxy for a host of that name is not led there.
func (p *Proxy) Lead(l net.Listener, name string, open func(context.Context) (net.Conn, error)) error {
	t, err := parseTarget(name)
	if err != nil {
		return err
	}
	p.rules.leads.Store(t.String(), true)
	t.lead = true
	return p.accept(l, func(c *client) {
		p.carry(c, func() (*stream, *flow, error) {
			return p.beginWith("forward", t, func() (*stream, error) {
				if r := p.rules.byName(t); r != nil {
					return nil, r
				}
				conn, err := open(p.ctx)
				if err != nil {
					return nil, err
				}
				return &stream{Conn: conn}, nil
			})
		})
	})
}

// carry takes one connection to what begin opens.
func (p *Proxy) carry(c *client, begin func() (*stream, *flow, error)) {
	defer p.running.Done()
	defer c.Close()
	s, f, err := begin()
	if err != nil {
		return
	}
	defer f.end()
	defer s.Close()
	p.relay(c.Conn, nil, s, f)
}

func (p *Proxy) accept(l net.Listener, serve func(*client)) error {
	defer func() {
		_ = l.Close()
		p.mu.Lock()
		delete(p.held, l)
		p.mu.Unlock()
	}()
	p.mu.Lock()
	p.held[l] = true
	p.mu.Unlock()
	if !p.enter() {
		return nil
	}
	defer p.running.Done()
	for {
		select {
		case p.slots <- struct{}{}:
		case <-p.ctx.Done():
			return nil
		}
		raw, err := l.Accept()
		if err != nil {
			<-p.slots
			if p.isClosed() {
				return nil
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() {
				time.Sleep(10 * time.Millisecond) // out of descriptors: others close meanwhile
				continue
			}
			return err
		}
		c := &client{Conn: raw, p: p}
		p.mu.Lock()
		p.held[c] = true
		p.mu.Unlock()
		if !p.enter() {
			_ = c.Close()
			return nil
		}
		go serve(c)
	}
}

// serve lets the first byte decide: 5 opens SOCKS5, everything else is HTTP.
func (p *Proxy) serve(c *client) {
	defer p.running.Done()
	_ = c.SetReadDeadline(time.Now().Add(p.c.Handshake))
	var first [1]byte
	if _, err := c.Conn.Read(first[:]); err != nil {
		c.Close()
		return
	}
	if first[0] == socksVersion {
		defer c.Close()
		p.serveSOCKS(c)
		return
	}
	c.early = first[:]
	select {
	case p.accepted <- c:
	case <-p.ctx.Done():
		c.Close()
	}
}

// enter reports whether the proxy is open, and makes Close wait for running.Done.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.running.Add(1)
	return true
}

func (p *Proxy) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Close ends every listener and connection and returns when Log will not be called any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.held))
	p.mu.Unlock()
	p.cancel()
	for _, c := range open {
		_ = c.Close()
	}
	err := p.web.Close()
	p.running.Wait()
	return err
}

// client is a connection from the box. It holds one of the proxy's slots until it is closed.
type client struct {
	net.Conn
	p     *Proxy
	early []byte // read already
	once  sync.Once
}

func (c *client) Read(b []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(b, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

func (c *client) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.p.mu.Lock()
		delete(c.p.held, c)
		c.p.mu.Unlock()
		<-c.p.slots
	})
	return err
}

// handoff is the listener that gives accepted connections to the HTTP server.
type handoff struct{ p *Proxy }

func (h handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.p.accepted:
		return c, nil
	case <-h.p.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (h handoff) Close() error   { return nil }
func (h handoff) Addr() net.Addr { return &net.TCPAddr{} }

func interfaceAddresses() (out []netip.Addr) {
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}
