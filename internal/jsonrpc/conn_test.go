package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handler is a jsonrpc.Handler of two functions.
type handler struct {
	req  func(*jsonrpc.Request)
	note func(*jsonrpc.Notification)
}

func (h handler) Request(r *jsonrpc.Request) {
	if h.req != nil {
		h.req(r)
	}
}

func (h handler) Notification(n *jsonrpc.Notification) {
	if h.note != nil {
		h.note(n)
	}
}

func echo(r *jsonrpc.Request) { _ = r.Reply(r.Params) }

// run serves c until the test ends and checks that Run comes back.
func run(t *testing.T, s jsonrpc.Stream, o jsonrpc.Options) *jsonrpc.Conn {
	t.Helper()
	c := jsonrpc.NewConn(s, o)
	done := make(chan error, 1)
	go func() { done <- c.Run(context.Background()) }()
	t.Cleanup(func() {
		c.Close("test over")
		<-done
	})
	return c
}

func pair(t *testing.T, a, b jsonrpc.Options) (*jsonrpc.Conn, *jsonrpc.Conn) {
	t.Helper()
	x, y := inproc.Pipe()
	return run(t, x, a), run(t, y, b)
}

// raw is a peer that speaks bytes.
type raw struct {
	t *testing.T
	s jsonrpc.Stream
}

func rawPeer(t *testing.T, o jsonrpc.Options) (raw, *jsonrpc.Conn) {
	t.Helper()
	x, y := inproc.Pipe()
	c := run(t, y, o)
	t.Cleanup(func() { _ = x.Close("") })
	return raw{t, x}, c
}

func (r raw) send(msg string) {
	r.t.Helper()
	if err := r.s.Write(context.Background(), []byte(msg)); err != nil {
		r.t.Fatalf("send %s: %v", msg, err)
	}
}

func (r raw) want(msg string) {
	r.t.Helper()
	got, err := r.s.Read(context.Background())
	if err != nil || string(got) != msg {
		r.t.Fatalf("read %s, %v; want %s", got, err, msg)
	}
}

func TestCallBothWays(t *testing.T) {
	a, b := pair(t, jsonrpc.Options{Handler: handler{req: echo}}, jsonrpc.Options{Handler: handler{req: echo}})
	for _, c := range []*jsonrpc.Conn{a, b} {
		var got map[string]int
		if err := c.Call(t.Context(), "m", map[string]int{"n": 7}, &got); err != nil || got["n"] != 7 {
			t.Fatalf("got %v, %v", got, err)
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	a, _ := pair(t, jsonrpc.Options{}, jsonrpc.Options{IngressLimit: 1000, Handler: handler{req: func(r *jsonrpc.Request) { go echo(r) }}})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			var got int
			if err := a.Call(t.Context(), "m", i, &got); err != nil || got != i {
				t.Errorf("call %d: %d, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	if st := a.Stats(); st != (jsonrpc.Stats{}) {
		t.Fatalf("left in flight: %+v", st)
	}
}

func TestWire(t *testing.T) {
	p, c := rawPeer(t, jsonrpc.Options{Handler: handler{req: func(r *jsonrpc.Request) {
		switch r.Method {
		case "fail":
			_ = r.Error(&jsonrpc.Error{Code: -32602, Message: "no", Data: json.RawMessage(`{"a":1}`)})
		case "trace":
			_ = r.Reply(r.Trace)
		case "null":
			_ = r.Reply(nil)
		default:
			_ = r.Reply(r.Params)
		}
	}}})
	for _, tc := range [][2]string{
		{`{"id":1,"method":"m","params":{"x":"<&>"}}`, `{"id":1,"result":{"x":"<&>"}}`},
		{`{"jsonrpc":"2.0","id":"1","method":"m","params":[]}`, `{"id":"1","result":[]}`},
		{`{"id":-9223372036854775808,"method":"m"}`, `{"id":-9223372036854775808,"result":null}`},
		{`{"id":"a\"b\u00e9","method":"null"}`, `{"id":"a\"bé","result":null}`},
		{`{"id":2,"method":"fail"}`, `{"error":{"code":-32602,"message":"no","data":{"a":1}},"id":2}`},
		{`{"id":3,"method":"trace","trace":{"traceparent":"00-x"}}`, `{"id":3,"result":{"traceparent":"00-x"}}`},
		{"{\"id\":4,\"method\":\"m\",\"params\":{\n\"x\": 1}}", `{"id":4,"result":{"x":1}}`},
	} {
		p.send(tc[0])
		p.want(tc[1])
	}
	if err := c.Notify(t.Context(), "n", map[string]int{"a": 1}, jsonrpc.Member{Name: "emittedAtMs", Value: json.RawMessage("5")}); err != nil {
		t.Fatal(err)
	}
	p.want(`{"method":"n","params":{"a":1},"emittedAtMs":5}`)
}

func TestReplyComesBeforeItsNotifications(t *testing.T) {
	frame, err := jsonrpc.EncodeNotification("after", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, c := rawPeer(t, jsonrpc.Options{OutboundLimit: 8, Overflow: jsonrpc.OverflowBlock, Handler: handler{req: func(r *jsonrpc.Request) { _ = r.ReplyThen(1, frame, frame) }}})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { // another goroutine keeps sending
		for c.Notify(ctx, "noise", nil) == nil && ctx.Err() == nil {
		}
	})
	defer wg.Wait()
	defer stop()
	for i := range 50 {
		p.send(fmt.Sprintf(`{"id":%d,"method":"m"}`, i))
		want := []string{fmt.Sprintf(`{"id":%d,"result":1}`, i), `{"method":"after"}`, `{"method":"after"}`}
		for len(want) > 0 {
			got, err := p.s.Read(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if string(got) == `{"method":"noise"}` && len(want) == 3 {
				continue
			}
			if string(got) != want[0] {
				t.Fatalf("got %s, want %s", got, want[0])
			}
			want = want[1:]
		}
	}
}

func TestAnswerOnceAndUnencodable(t *testing.T) {
	errs := make(chan error, 3)
	p, _ := rawPeer(t, jsonrpc.Options{Handler: handler{req: func(r *jsonrpc.Request) {
		errs <- r.Reply(make(chan int))
		errs <- r.Error(jsonrpc.Errorf(jsonrpc.CodeInternal, "bad result"))
		errs <- r.Reply(1)
	}}})
	p.send(`{"id":1,"method":"m"}`)
	p.want(`{"error":{"code":-32603,"message":"bad result"},"id":1}`)
	if err := <-errs; err == nil {
		t.Error("a channel was encoded")
	}
	if err := <-errs; err != nil {
		t.Error(err)
	}
	if err := <-errs; !errors.Is(err, jsonrpc.ErrAnswered) {
		t.Error(err)
	}
}

func TestIngressBound(t *testing.T) {
	gate, entered := make(chan struct{}), make(chan struct{}, 8)
	answer := make(chan error, 1)
	p, c := rawPeer(t, jsonrpc.Options{
		IngressLimit: 2,
		Handler:      handler{req: func(r *jsonrpc.Request) { entered <- struct{}{}; <-gate; echo(r) }},
	})
	p.send(`{"id":1,"method":"m"}`)
	<-entered // 1 is with the handler; 2 and 3 fill the queue
	for _, id := range []string{"2", "3", "4"} {
		p.send(`{"id":` + id + `,"method":"m"}`)
	}
	p.want(`{"error":{"code":-32001,"message":"Server overloaded; retry later."},"id":4}`)
	if _, err := c.Go(t.Context(), "ask", nil, func(_ json.RawMessage, err error) { answer <- err }); err != nil {
		t.Fatal(err)
	}
	p.want(`{"id":1,"method":"ask"}`)
	p.send(`{"id":1,"result":null}`) // answers pass
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	close(gate)
	for _, id := range []string{"1", "2", "3"} {
		p.want(`{"id":` + id + `,"result":null}`)
	}
}

func TestNotificationsWaitForRoomInOrder(t *testing.T) {
	gate, got := make(chan struct{}), make(chan string, 100)
	p, _ := rawPeer(t, jsonrpc.Options{IngressLimit: 2, Handler: handler{note: func(n *jsonrpc.Notification) {
		<-gate
		got <- n.Method + string(n.Member("at"))
	}}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 50 {
			p.send(fmt.Sprintf(`{"method":"n%d","at":%d}`, i, i))
		}
	}()
	close(gate)
	for i := range 50 {
		if m := <-got; m != fmt.Sprintf("n%d%d", i, i) {
			t.Fatalf("notification %d was %s", i, m)
		}
	}
	<-done
}

func TestOutboundBound(t *testing.T) {
	f, _ := jsonrpc.EncodeNotification("n", strings.Repeat("x", 100))
	fill := func(c *jsonrpc.Conn) (n int) {
		for n = 0; n < 1000; n++ {
			if err := c.TrySend(f); err != nil {
				if !errors.Is(err, jsonrpc.ErrFull) {
					t.Fatal(err)
				}
				return n
			}
		}
		t.Fatal("the queue never filled")
		return
	}
	t.Run("messages, close", func(t *testing.T) {
		_, c := rawPeer(t, jsonrpc.Options{OutboundLimit: 10})
		if n := fill(c); n < 10 || n > 12 { // one in the pipe, one in the writer's hands
			t.Fatalf("%d fitted", n)
		}
		if c.Err() != nil {
			t.Fatal("TrySend closed the connection")
		}
		err := c.Notify(t.Context(), "n", nil)
		var end *jsonrpc.CloseError
		if !errors.As(err, &end) || end.Reason != jsonrpc.ReasonSlowPeer {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("bytes, block", func(t *testing.T) {
		p, c := rawPeer(t, jsonrpc.Options{OutboundBytes: 1000, Overflow: jsonrpc.OverflowBlock})
		n := fill(c)
		if n < 7 || n > 11 {
			t.Fatalf("%d fitted", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		// The writer may take one more message into its hands, which makes room.
		err := c.Notify(ctx, "n", nil)
		more := 0
		for ; err == nil && more < 4; err = c.Notify(ctx, "n", nil) {
			more++
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Notify(context.Background(), "last", nil) }()
		for range n {
			p.want(string(f.Bytes()))
		}
		for range more {
			p.want(`{"method":"n"}`)
		}
		p.want(`{"method":"last"}`)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := c.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPeerThatAsksButNeverReads(t *testing.T) {
	for _, how := range []jsonrpc.Overflow{jsonrpc.OverflowClose, jsonrpc.OverflowBlock} {
		p, c := rawPeer(t, jsonrpc.Options{OutboundLimit: 4, IngressLimit: 1, Overflow: how, Handler: handler{req: echo}})
		var err error
		for i := 0; err == nil && i < 5000; i++ {
			err = p.s.Write(t.Context(), []byte(`{"id":1,"method":"m"}`))
		}
		if err == nil {
			t.Fatal("the connection bore it for ever")
		}
		<-c.Done()
		var end *jsonrpc.CloseError
		if !errors.As(c.Err(), &end) || end.Reason != jsonrpc.ReasonSlowPeer {
			t.Fatal(c.Err())
		}
	}
}

func TestLostConnectionIsNoAnswer(t *testing.T) {
	p, c := rawPeer(t, jsonrpc.Options{})
	got := make(chan error, 2)
	go func() { got <- c.Call(context.Background(), "m", nil, nil) }()
	if err := c.GoID(t.Context(), jsonrpc.StringID("ask-1"), "ask", nil, func(_ json.RawMessage, err error) { got <- err }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.s.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_ = p.s.Close("")
	for range 2 {
		err := <-got
		var answer *jsonrpc.Error
		if !errors.Is(err, jsonrpc.ErrClosed) || !errors.Is(err, io.EOF) || errors.As(err, &answer) {
			t.Fatalf("got %v", err)
		}
	}
	if err := c.Call(t.Context(), "m", nil, nil); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Fatal(err)
	}
}

func TestReactions(t *testing.T) {
	bad := []string{``, `{`, `[]`, `1`, `{"id":null,"method":"m"}`, `{"id":1.5,"method":"m"}`, `{"id":1}`, `{"id":1,"id":2,"method":"m"}`, "\xff", `{"method":1}`, `{"id":9223372036854775808,"method":"m"}`}
	t.Run("answer", func(t *testing.T) {
		p, _ := rawPeer(t, jsonrpc.Options{Handler: handler{req: echo}, OnMalformed: func(e *jsonrpc.DecodeError) jsonrpc.Reaction {
			return jsonrpc.Answer(jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "bad"))
		}})
		for _, m := range bad {
			p.send(m)
			p.want(`{"error":{"code":-32600,"message":"bad"},"id":-1}`)
		}
		p.send(`{"id":1,"method":"m"}`)
		p.want(`{"id":1,"result":null}`)
	})
	t.Run("ignore", func(t *testing.T) {
		p, _ := rawPeer(t, jsonrpc.Options{Handler: handler{req: echo}, OnMalformed: func(*jsonrpc.DecodeError) jsonrpc.Reaction { return jsonrpc.Ignore() }})
		for _, m := range append(bad, `{"id":77,"result":1}`) {
			p.send(m)
		}
		p.send(`{"id":1,"method":"m"}`)
		p.want(`{"id":1,"result":null}`)
	})
	t.Run("close", func(t *testing.T) {
		p, c := rawPeer(t, jsonrpc.Options{})
		p.send(`{`)
		<-c.Done()
		p2, c2 := rawPeer(t, jsonrpc.Options{OnUnknownResponse: func(jsonrpc.Message) jsonrpc.Reaction { return jsonrpc.CloseWith("foreign answer") }})
		p2.send(`{"error":{"code":1,"message":"x"},"id":9}`)
		<-c2.Done()
		var end *jsonrpc.CloseError
		if !errors.As(c2.Err(), &end) || end.Reason != "foreign answer" {
			t.Fatal(c2.Err())
		}
	})
}

func TestRunEndsWithContext(t *testing.T) {
	x, y := inproc.Pipe()
	defer func() { _ = x.Close("") }()
	ctx, cancel := context.WithCancel(t.Context())
	c := jsonrpc.NewConn(y, jsonrpc.Options{})
	cancel()
	if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestCloseBeforeRun(t *testing.T) {
	_, y := inproc.Pipe()
	c := jsonrpc.NewConn(y, jsonrpc.Options{})
	c.Close("never mind")
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A peer that is given up because it does not read hears why once it has read the
// message that was under way; what is queued after that is not sent.
func TestSlowPeerHearsTheReason(t *testing.T) {
	frame, err := jsonrpc.EncodeNotification("n", nil)
	if err != nil {
		t.Fatal(err)
	}
	x, y := inproc.Pipe()
	s := &reasoned{Stream: y, closed: make(chan string, 1)}
	c := run(t, s, jsonrpc.Options{Farewell: time.Hour})
	for range 10 {
		if err := c.TrySend(frame); err != nil {
			t.Fatal(err)
		}
	}
	for s.writes.Load() < 2 { // the pipe holds one, the next waits for the reader
		runtime.Gosched()
	}
	c.CloseSlow("too slow")
	<-c.Done()
	select {
	case <-s.closed:
		t.Fatal("closed before the peer had read what was under way")
	default:
	}
	for range 2 {
		if _, err := x.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-s.closed; got != "too slow" || s.writes.Load() != 2 {
		t.Fatalf("closed for %q after %d messages", got, s.writes.Load())
	}
}

// A Close while a slow peer may still read ends that at once.
func TestCloseOfASlowPeer(t *testing.T) {
	frame, _ := jsonrpc.EncodeNotification("n", nil)
	_, y := inproc.Pipe()
	c := run(t, y, jsonrpc.Options{Farewell: time.Hour}) // which waits for its end
	for range 10 {
		_ = c.TrySend(frame)
	}
	c.CloseSlow("too slow")
}

// reasoned is a stream that counts writes and keeps why it was closed.
type reasoned struct {
	jsonrpc.Stream
	writes atomic.Int32
	closed chan string
}

func (s *reasoned) Write(ctx context.Context, m []byte) error {
	s.writes.Add(1)
	return s.Stream.Write(ctx, m)
}

func (s *reasoned) Close(reason string) error {
	select {
	case s.closed <- reason:
	default:
	}
	return s.Stream.Close(reason)
}
