//go:build linux

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/gateway"
)

// gatewayParts are ports that cost nothing: what is measured is the gateway.
type gatewayParts struct{ base *url.URL }

func (gatewayParts) Claim(context.Context, [32]byte, [32]byte) (gateway.Claim, error) {
	return gateway.Claim{Thread: "t", Turn: "u"}, nil
}

func (p gatewayParts) Route(context.Context, gateway.Claim, string) (gateway.Route, error) {
	sign := func(_ context.Context, h http.Header, _ bool) error { h.Set("X-Api-Key", "k"); return nil }
	return gateway.Route{Dialect: gateway.Anthropic, Upstreams: []gateway.Upstream{{Name: "up", Base: p.base, Sign: sign}}}, nil
}
func (gatewayParts) Begin(context.Context, gateway.Call) (string, error) { return "1", nil }
func (gatewayParts) End(context.Context, string, gateway.Result) error   { return nil }

func serveGateway(t *testing.T, base string) (socket string) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(t.TempDir(), "g.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	parts := gatewayParts{base: u}
	g := gateway.New(gateway.Config{Tokens: parts, Routes: parts, Ledger: parts})
	srv := gateway.NewServer(g)
	go func() { _ = srv.Serve(gateway.ListenProof(l)) }()
	t.Cleanup(func() { _ = srv.Close(); g.Close() })
	return socket
}

// modelRequest is as long as the first request of an agent.
var modelRequest = `{"model":"m","max_tokens":32000,"stream":true,"tools":[` +
	strings.Repeat(`{"name":"tool","description":"`+strings.Repeat("words about a tool ", 150)+`","input_schema":{"type":"object","properties":{"a":{"type":"string"}}}},`, 20) +
	`{"name":"last"}],"messages":[{"role":"user","content":"` + strings.Repeat("words of a person ", 1500) + `"}]}`

// TestGatewayLatency: the time until the first event of an answer, through the gateway and
// without it.
func TestGatewayLatency(t *testing.T) {
	samples := 200
	if Long() {
		samples = 2000
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n")
	}))
	t.Cleanup(up.Close)
	socket := serveGateway(t, up.URL+"/v1")
	through := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			_, err = io.WriteString(c, gateway.ProofLine("x"))
		}
		return c, err
	}}}
	t.Cleanup(through.CloseIdleConnections)
	direct := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(direct.CloseIdleConnections)
	one := func(client *http.Client, address string) float64 {
		q, err := http.NewRequest(http.MethodPost, address, strings.NewReader(modelRequest))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer t")
		began := time.Now()
		resp, err := client.Do(q)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		_, err = resp.Body.Read(make([]byte, 1))
		took := time.Since(began)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return float64(took.Microseconds())
	}
	Case{
		Name: "gateway: time added to the first event of an answer, p50", Unit: "µs", Peer: "the bound", Promise: 1, Loose: 4,
		Ours: func() float64 {
			var with, without []float64
			for range samples {
				with = append(with, one(through, "http://gw/r/v1/messages"))
				without = append(without, one(direct, up.URL+"/v1/messages"))
			}
			return middle(with) - middle(without)
		},
		Theirs: func() float64 { return 1000 },
		Note:   fmt.Sprintf("The same request of %d kB directly and through the gateway, in turns; the difference of the medians. Client, gateway and model are one process; tokens, routes and the ledger cost nothing here.", len(modelRequest)/1000),
	}.Run(t)
}

// TestGatewayStreams: what many slow streams cost the gateway. Models and clients live in
// another process.
func TestGatewayStreams(t *testing.T) {
	streams, seconds := 200, 2
	if Long() {
		streams, seconds = 1000, 5
	}
	child := exec.Command(os.Args[0], "-test.run=TestGatewayStreamsChild", "-test.v")
	child.Env = []string{"THOLE_STREAMS=" + strconv.Itoa(streams)}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := child.StdinPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	lines := bufio.NewScanner(out)
	await := func(word string) string {
		for lines.Scan() {
			if _, rest, ok := strings.Cut(lines.Text(), word); ok {
				return strings.TrimSpace(rest)
			}
		}
		t.Fatalf("the child ended before it said %s", word)
		return ""
	}
	_, _ = fmt.Fprintln(in, serveGateway(t, await("UPSTREAM")))
	await("READY")
	arrived := func() float64 {
		_, _ = fmt.Fprintln(in)
		n, err := strconv.ParseFloat(await("ARRIVED"), 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	Case{
		Name: fmt.Sprintf("gateway: %d streams of 20 events a second, CPU of the gateway", streams), Unit: "cores", Peer: "one core", Promise: 0.3, Loose: 1,
		Ours: func() float64 {
			events, from, began := arrived(), cpu(), time.Now()
			time.Sleep(time.Duration(seconds) * time.Second)
			used, took := cpu()-from, time.Since(began)
			rate := (arrived() - events) / took.Seconds() / float64(streams)
			t.Logf("%.1f events a second in each stream", rate)
			// A busy machine sends fewer events, which would count in the gateway's favour.
			if Long() && rate < 19 {
				t.Fatalf("only %.1f events a second arrived: the machine is too busy to measure", rate)
			}
			return float64(used) / float64(took)
		},
		Theirs: func() float64 { return 1 },
		Note:   "Models and clients are in a process of their own, which counts what arrives. Each event is read, looked through for usage, written and flushed by itself. Half of the time is the system calls of that, one read and one write for each event; collecting events would hold them back.",
	}.Run(t)
}

// TestGatewayStreamsChild is the process of models and clients.
func TestGatewayStreamsChild(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("THOLE_STREAMS"))
	if n == 0 {
		t.Skip("started by TestGatewayStreams")
	}
	event := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"some words of an answer\"}}\n\n")
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for r.Context().Err() == nil {
			_, _ = w.Write(event)
			_ = http.NewResponseController(w).Flush()
			<-tick.C
		}
	}))
	defer up.Close()
	fmt.Println("UPSTREAM", up.URL+"/v1")
	asked := bufio.NewReader(os.Stdin)
	socket, err := asked.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var arrived atomic.Int64 // bytes
	var ready, all sync.WaitGroup
	for i := range n {
		ready.Add(1)
		all.Go(func() {
			conn, err := net.Dial("unix", strings.TrimSpace(socket))
			if err != nil {
				t.Error(err)
				ready.Done()
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprintf(conn, "%sPOST /r/v1/messages HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer t\r\nContent-Length: 44\r\n\r\n%s",
				gateway.ProofLine(strconv.Itoa(i%8)), `{"model":"m","max_tokens":100,"stream":true}`)
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			ready.Done()
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%v, %v", resp, err)
				return
			}
			_, _ = io.Copy(counted{&arrived}, resp.Body)
		})
	}
	ready.Wait()
	fmt.Println("READY")
	for {
		if _, err := asked.ReadString('\n'); err != nil {
			break
		}
		fmt.Println("ARRIVED", arrived.Load()/int64(len(event)))
	}
	all.Wait()
}

type counted struct{ n *atomic.Int64 }

func (c counted) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
