package execclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/protocol/exec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is a server that says what a test wants.
type stub struct {
	mu       sync.Mutex
	conn     *jsonrpc.Conn
	session  string
	reads    atomic.Int32
	afterSeq atomic.Uint64
	read     exec.ReadResult
	refuse   atomic.Pointer[jsonrpc.Error] // answer to a resume
	down     atomic.Bool
	started  func(send func(method string, params any))
	wg       sync.WaitGroup
}

func (s *stub) dial(context.Context) (Stream, error) {
	if s.down.Load() {
		return nil, errors.New("connection refused")
	}
	a, b := inproc.Pipe()
	c := jsonrpc.NewConn(b, jsonrpc.Options{Handler: s})
	s.mu.Lock()
	s.conn = c
	s.mu.Unlock()
	s.wg.Go(func() { _ = c.Run(context.Background()) })
	return a, nil
}

func (s *stub) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn.Close("cut")
}

func (s *stub) Notification(*jsonrpc.Notification) {}

func (s *stub) Request(req *jsonrpc.Request) {
	switch req.Method {
	case exec.MethodInitialize:
		var p exec.InitializeParams
		_ = json.Unmarshal(req.Params, &p)
		if e := s.refuse.Load(); e != nil && p.ResumeSessionID != nil {
			_ = req.Error(e)
			return
		}
		_ = req.Reply(exec.InitializeResult{SessionID: s.session})
	case exec.MethodProcessStart:
		_ = req.Reply(map[string]string{"processId": "p"})
		if s.started != nil {
			s.started(func(method string, params any) { _ = req.Conn().Notify(context.Background(), method, params) })
		}
	case exec.MethodProcessRead:
		var p exec.ReadParams
		_ = json.Unmarshal(req.Params, &p)
		s.reads.Add(1)
		s.afterSeq.Store(*p.AfterSeq)
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = req.Reply(s.read)
	default:
		_ = req.Reply(exec.Empty{})
	}
}

func run(t *testing.T, s *stub, o Options, f func(ctx context.Context, c *Client, p *Process)) {
	t.Helper()
	s.session = "s"
	o.Dial = s.dial
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Start(ctx, exec.StartParams{ProcessID: "p", Argv: []string{"x"}, Cwd: "file:///"})
	if err != nil {
		t.Fatal(err)
	}
	f(ctx, c, p)
	_ = c.Close()
	s.cut()
	s.wg.Wait()
}

func out(seq uint64, data string) (string, exec.OutputParams) {
	return exec.NotifyOutput, exec.OutputParams{ProcessID: "p", Seq: seq, Stream: "stdout", Chunk: []byte(data)}
}

var no = false

func chunk(seq uint64, data string) exec.Chunk {
	return exec.Chunk{Seq: seq, Stream: "stdout", Chunk: []byte(data)}
}

func code(n int) *int { return &n }

func TestOutOfOrderIsPutRight(t *testing.T) {
	s := &stub{started: func(send func(string, any)) {
		send(exec.NotifyClosed, exec.ClosedParams{ProcessID: "p", Seq: 5})
		send(exec.NotifyExited, exec.ExitedParams{ProcessID: "p", Seq: 4, ExitCode: 2, SandboxDenied: &no})
		for _, seq := range []uint64{3, 2, 2, 1} {
			send(out(seq, fmt.Sprint(seq)))
		}
	}}
	run(t, s, Options{}, func(ctx context.Context, _ *Client, p *Process) {
		res, err := p.Wait(ctx)
		if err != nil || string(res.Stdout) != "123" || res.ExitCode != 2 || s.reads.Load() != 0 {
			t.Fatalf("%+v, %v, %d reads", res, err, s.reads.Load())
		}
	})
}

func TestOldServerCostsOneRead(t *testing.T) {
	s := &stub{read: exec.ReadResult{NextSeq: 4, Exited: true, ExitCode: code(1), Closed: true, SandboxDenied: true}}
	s.started = func(send func(string, any)) {
		send(out(1, "x"))
		send(exec.NotifyExited, exec.ExitedParams{ProcessID: "p", Seq: 2, ExitCode: 1})
		send(exec.NotifyClosed, exec.ClosedParams{ProcessID: "p", Seq: 3})
	}
	run(t, s, Options{}, func(ctx context.Context, _ *Client, p *Process) {
		res, err := p.Wait(ctx)
		if err != nil || string(res.Stdout) != "x" || !res.SandboxDenied || res.ExitCode != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		if s.reads.Load() != 1 || s.afterSeq.Load() != 1 {
			t.Fatalf("%d reads, after %d", s.reads.Load(), s.afterSeq.Load())
		}
	})
}

func TestAGapThatPersistsIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{read: exec.ReadResult{Chunks: []exec.Chunk{chunk(2, "b"), chunk(3, "c")}, NextSeq: 6, Exited: true, ExitCode: code(0), Closed: true}}
		s.started = func(send func(string, any)) {
			send(out(1, "a"))
			send(out(3, "c"))
			send(exec.NotifyExited, exec.ExitedParams{ProcessID: "p", Seq: 4, SandboxDenied: &no})
			send(exec.NotifyClosed, exec.ClosedParams{ProcessID: "p", Seq: 5})
		}
		run(t, s, Options{}, func(ctx context.Context, _ *Client, p *Process) {
			began := time.Now()
			res, err := p.Wait(ctx)
			if err != nil || string(res.Stdout) != "abc" || s.reads.Load() != 1 || res.Lost != 0 {
				t.Fatalf("%+v, %v, %d reads", res, err, s.reads.Load())
			}
			if d := time.Since(began); d != time.Second {
				t.Fatalf("repaired after %s", d)
			}
		})
	})
}

func TestAShortGapIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{}
		s.started = func(send func(string, any)) {
			send(out(2, "b"))
			time.Sleep(900 * time.Millisecond) // fake time
			send(out(1, "a"))
			send(exec.NotifyExited, exec.ExitedParams{ProcessID: "p", Seq: 3, SandboxDenied: &no})
			send(exec.NotifyClosed, exec.ClosedParams{ProcessID: "p", Seq: 4})
		}
		run(t, s, Options{}, func(ctx context.Context, _ *Client, p *Process) {
			res, err := p.Wait(ctx)
			if err != nil || string(res.Stdout) != "ab" || s.reads.Load() != 0 {
				t.Fatalf("%+v, %v, %d reads", res, err, s.reads.Load())
			}
		})
	})
}

func TestOutputBeyondTheWindowIsSaid(t *testing.T) {
	s := &stub{read: exec.ReadResult{Chunks: []exec.Chunk{chunk(9, "z")}, NextSeq: 12, Exited: true, ExitCode: code(0), Closed: true}}
	s.started = func(send func(string, any)) {
		send(out(1, "a"))
		send(exec.NotifyExited, exec.ExitedParams{ProcessID: "p", Seq: 10})
	}
	run(t, s, Options{GapAfter: time.Millisecond}, func(ctx context.Context, _ *Client, p *Process) {
		res, err := p.Wait(ctx)
		if err != nil || string(res.Stdout) != "az" || res.Lost != 7 {
			t.Fatalf("%+v, %v", res, err)
		}
	})
}

func TestALostSessionFailsVisibly(t *testing.T) {
	for name, c := range map[string]struct {
		refuse *jsonrpc.Error
		down   bool
		after  time.Duration
	}{
		"unknown session":  {jsonrpc.Errorf(exec.CodeInvalidRequest, "unknown session id s"), false, 0},
		"still attached":   {jsonrpc.Errorf(exec.CodeSessionAttached, "attached"), false, 25 * time.Second},
		"server is killed": {nil, true, 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stub{}
				run(t, s, Options{}, func(ctx context.Context, cl *Client, p *Process) {
					s.refuse.Store(c.refuse)
					s.down.Store(c.down)
					began := time.Now()
					s.cut()
					_, err := p.Wait(ctx)
					if !errors.Is(err, ErrLost) {
						t.Fatal(err)
					}
					if d := time.Since(began); d < c.after || d > c.after+time.Second {
						t.Fatalf("failed after %s, want %s", d, c.after)
					}
					if _, err := cl.Start(ctx, exec.StartParams{ProcessID: "q"}); !errors.Is(err, ErrLost) {
						t.Fatal(err)
					}
				})
			})
		})
	}
}

func TestResumeWaitsForTheOldConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{read: exec.ReadResult{Chunks: []exec.Chunk{chunk(1, "a")}, NextSeq: 4, Exited: true, ExitCode: code(0), Closed: true}}
		run(t, s, Options{}, func(ctx context.Context, c *Client, p *Process) {
			s.refuse.Store(jsonrpc.Errorf(exec.CodeSessionAttached, "attached"))
			s.cut()
			time.Sleep(time.Second) // fake time
			s.refuse.Store(nil)
			res, err := p.Wait(ctx)
			if err != nil || string(res.Stdout) != "a" || c.Resumed() != 1 || s.reads.Load() != 1 {
				t.Fatalf("%+v, %v, resumed %d, %d reads", res, err, c.Resumed(), s.reads.Load())
			}
		})
	})
}

func TestAServerWithoutSessionsIsRefused(t *testing.T) {
	s := &stub{}
	if _, err := Open(context.Background(), Options{Dial: s.dial}); err == nil {
		t.Fatal("accepted")
	}
	s.cut()
	s.wg.Wait()
}
