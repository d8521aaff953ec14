package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// narrowRig is a proxy whose every name is a public address, led to one echo server.
func narrowRig(t *testing.T, c Config) (p *Proxy, at string) {
	t.Helper()
	echo := serveTCP(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	c.Dial = dialTo(echo)
	c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Serve(l) }()
	return p, l.Addr().String()
}

func connectTo(t *testing.T, proxy, target string) (status string, rest *bufio.Reader, conn net.Conn) {
	t.Helper()
	conn = dialTest(t, proxy)
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\n\r\n", target)
	rest = bufio.NewReader(conn)
	status, err := rest.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(status)[1], rest, conn
}

// A thread reaches what both its own policy and the configuration's allow.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		ceiling Config
		policy  Policy
		allow   []string
		pass    string // of the targets below, by their letters
	}{
		{Config{Policy: Open}, Open, nil, "abcm"},
		{Config{Policy: Open}, List, []string{"a.com", "*.b.com:443"}, "abm"},
		{Config{Policy: Open}, List, []string{"b.com"}, "m"},
		{Config{Policy: Open}, Gateway, nil, "m"},
		{Config{Policy: Open}, None, nil, ""},
		{Config{Policy: List, Names: []string{"a.com"}}, Open, nil, "am"},
		{Config{Policy: List, Names: []string{"a.com"}}, List, []string{"a.com", "c.com"}, "am"},
		{Config{Policy: Gateway}, Open, nil, "m"},
		{Config{Policy: None}, Open, nil, ""},
	} {
		c.ceiling.Models = []string{"m.com:443"}
		p, at := narrowRig(t, c.ceiling)
		if err := p.Narrow(c.policy, c.allow); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, target := range []string{"a.com:443", "x.b.com:443", "c.com:443", "m.com:443"} {
			if status, _, _ := connectTo(t, at, target); status == "200" {
				got += strings.TrimPrefix(target, "x.")[:1]
			} else if status != "403" {
				t.Errorf("%s: %s", target, status)
			}
		}
		if got != c.pass {
			t.Errorf("%v narrowed to %s %v lets %q pass, want %q", c.ceiling.Policy, c.policy, c.allow, got, c.pass)
		}
	}
}

// Narrowing ends open connections that are refused then, and no others; widening again lets new ones in.
func TestNarrowCuts(t *testing.T) {
	p, at := narrowRig(t, Config{Policy: Open, Models: []string{"m.com:443"}})
	open := func(target string) (net.Conn, *bufio.Reader) {
		t.Helper()
		status, rest, conn := connectTo(t, at, target)
		if status != "200" {
			t.Fatalf("%s: %s", target, status)
		}
		_, _ = rest.ReadString('\n')
		return conn, rest
	}
	echoes := func(conn net.Conn, rest *bufio.Reader) bool {
		if _, err := fmt.Fprintln(conn, "x"); err != nil {
			return false
		}
		got, err := rest.ReadString('\n')
		return err == nil && got == "x\n"
	}
	a, ra := open("a.com:443")
	m, rm := open("m.com:443")
	if !echoes(a, ra) || !echoes(m, rm) {
		t.Fatal("no echo")
	}
	if err := p.Narrow(Gateway, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ra.ReadByte(); err == nil { // it ends: nothing is waited for
		t.Error("a connection that is refused now goes on")
	}
	if !echoes(m, rm) {
		t.Error("the model's connection was cut")
	}
	if status, rest, _ := connectTo(t, at, "a.com:443"); status != "403" {
		t.Errorf("a new connection: %s", status)
	} else if text, _ := io.ReadAll(rest); !strings.Contains(string(text), `the network of this thread is "gateway"; a person can change it: thole thread network`) {
		t.Errorf("refused with %q", text)
	}
	if err := p.Narrow(Open, nil); err != nil {
		t.Fatal(err)
	}
	if b, rb := open("a.com:443"); !echoes(b, rb) {
		t.Error("no echo after it was widened")
	}
}

// Pass leads to one target, by the same policy and with the same counts.
func TestPass(t *testing.T) {
	p, _ := narrowRig(t, Config{Policy: Gateway, Models: []string{"localhost:4000"}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Pass(l, "localhost:4000") }()
	talk := func() string {
		c := dialTest(t, l.Addr().String())
		fmt.Fprintln(c, "x")
		got, _ := bufio.NewReader(c).ReadString('\n')
		return got
	}
	if got := talk(); got != "x\n" {
		t.Errorf("the model said %q", got)
	}
	if err := p.Narrow(None, nil); err != nil {
		t.Fatal(err)
	}
	if got := talk(); got != "" {
		t.Errorf("under none the model said %q", got)
	}
	var verdicts []string
	for _, total := range p.Totals() {
		verdicts = append(verdicts, fmt.Sprintf("%s:%d %s %d", total.Host, total.Port, total.Verdict, total.Connections))
	}
	if got := strings.Join(verdicts, ", "); got != "localhost:4000 allowed 1, localhost:4000 refused 1" {
		t.Errorf("counted %s", got)
	}
}

// What Lead opens counts as a model under its name, and a host of that name does not.
func TestLead(t *testing.T) {
	p, at := narrowRig(t, Config{Policy: Gateway})
	echo := serveTCP(t, func(c *net.TCPConn) {
		_, _ = io.Copy(c, c)
		_ = c.CloseWrite()
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Lead(l, "gateway:3129", func(context.Context) (net.Conn, error) { return net.Dial("tcp", echo) })
	}()
	talk := func() string { // an end of what is sent is passed on, and so is the end of the answer
		c := dialTest(t, l.Addr().String())
		fmt.Fprint(c, "x")
		_ = c.(*net.TCPConn).CloseWrite()
		got, _ := io.ReadAll(c)
		return string(got)
	}
	if got := talk(); got != "x" {
		t.Errorf("behind the lead: %q", got)
	}
	if models := p.Models(); len(models) != 1 || models[0] != "gateway:3129" {
		t.Errorf("models %v", models)
	}
	if status, _, _ := connectTo(t, at, "gateway:3129"); status != "403" {
		t.Errorf("a host of that name: %s", status)
	}
	open := dialTest(t, l.Addr().String())
	fmt.Fprint(open, "x")
	if _, err := open.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := p.Narrow(None, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := open.Read(make([]byte, 1)); err == nil {
		t.Errorf("an open connection goes on under none: %d bytes", n)
	}
	if got := talk(); got != "" {
		t.Errorf("under none: %q", got)
	}
	var counted []string
	for _, total := range p.Totals() {
		counted = append(counted, fmt.Sprintf("%s:%d %s %d", total.Host, total.Port, total.Verdict, total.Connections))
	}
	if got := strings.Join(counted, ", "); got != "gateway:3129 allowed 2, gateway:3129 refused 2" {
		t.Errorf("counted %s", got)
	}
}

// A thread's policy may allow no more than the configuration does.
func TestCheckNarrow(t *testing.T) {
	list := Config{Policy: List, Names: []string{"a.com", "*.b.com", "c.com:443"}, Private: []string{"db:5432"}}
	for _, c := range []struct {
		ceiling Config
		policy  Policy
		allow   []string
		wrong   string
	}{
		{Config{Policy: Open}, Open, nil, ""},
		{Config{Policy: Open}, List, []string{"x.com", "*.y.com:443"}, ""},
		{Config{Policy: Gateway}, List, nil, "allows more than egress.policy"},
		{Config{Policy: Gateway}, None, nil, ""},
		{list, Open, nil, "allows more"},
		{list, List, []string{"a.com", "a.com:80", "x.b.com", "*.x.b.com", "c.com:443", "db:5432"}, ""},
		{list, List, []string{"b.com"}, "b.com is not in egress.names"},
		{list, List, []string{"*.a.com"}, "*.a.com is not in egress.names"},
		{list, List, []string{"c.com"}, "c.com is not in egress.names"},
		{list, List, []string{"xb.com"}, "xb.com is not"},
		{Config{Policy: Open}, Gateway, []string{"x.com"}, "takes no names"},
		{Config{Policy: Open}, "some", nil, "invalid network policy"},
		{Config{Policy: Open}, List, []string{"x.com/y"}, "invalid"},
		{Config{Policy: Open}, List, make([]string, 300), "too many"},
	} {
		err := c.ceiling.CheckNarrow(c.policy, c.allow)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s %v under %s: %v, want %q", c.policy, c.allow, c.ceiling.Policy, err, c.wrong)
		}
	}
}
