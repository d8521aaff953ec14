//go:build linux

package exec_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/protocol/exec"
)

// recordedStub plays the server's side of a recording made with the real client:
// our client must get out of it what the real one got, or more.
type recordedStub struct {
	t       *testing.T
	init    []json.RawMessage // answers to initialize, in order
	start   json.RawMessage
	process string
	parts   [][]message // notifications, divided by cuts
	reads   []json.RawMessage

	mu    sync.Mutex
	part  int
	asked []uint64 // afterSeq of every read
	wg    sync.WaitGroup
}

func loadStub(t *testing.T, name string) *recordedStub {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &recordedStub{t: t, parts: [][]message{nil}}
	methods := map[string]string{}
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l line
		var m message
		if json.Unmarshal(scan.Bytes(), &l) != nil || json.Unmarshal(l.Msg, &m) != nil {
			continue
		}
		switch {
		case l.Dir == "note" && strings.Contains(string(l.Msg), "serverClosed"):
			s.parts = append(s.parts, nil)
		case l.Dir == "c2s":
			methods[l.Conn+string(m.ID)] = m.Method
		case l.Dir == "s2c" && m.Method != "":
			var p exec.ProcessParams
			_ = json.Unmarshal(m.Params, &p)
			s.process = p.ProcessID
			s.parts[len(s.parts)-1] = append(s.parts[len(s.parts)-1], m)
		case l.Dir == "s2c":
			switch methods[l.Conn+string(m.ID)] {
			case exec.MethodInitialize:
				s.init = append(s.init, m.Result)
			case exec.MethodProcessStart:
				s.start = m.Result
			case exec.MethodProcessRead:
				s.reads = append(s.reads, m.Result)
			}
		}
	}
	return s
}

func (s *recordedStub) dial(context.Context) (execclient.Stream, error) {
	a, b := inproc.Pipe()
	c := jsonrpc.NewConn(b, jsonrpc.Options{Handler: s})
	s.wg.Go(func() { _ = c.Run(context.Background()) })
	return a, nil
}

func (s *recordedStub) Notification(*jsonrpc.Notification) {}

func (s *recordedStub) Request(req *jsonrpc.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch req.Method {
	case exec.MethodInitialize:
		_ = req.Reply(s.init[0])
		if len(s.init) > 1 {
			s.init = s.init[1:]
		}
	case exec.MethodProcessStart:
		_ = req.Reply(s.start)
		s.play(req.Conn())
	case exec.MethodProcessRead:
		var p exec.ReadParams
		_ = json.Unmarshal(req.Params, &p)
		s.asked = append(s.asked, *p.AfterSeq)
		if len(s.reads) > 0 {
			_ = req.Reply(s.reads[0])
			s.reads = s.reads[1:]
		} else {
			_ = req.Reply(s.retained(*p.AfterSeq))
		}
		if s.part > 0 {
			s.play(req.Conn())
		}
	default:
		_ = req.Reply(exec.TerminateResult{})
	}
}

// play sends the notifications up to the next cut.
func (s *recordedStub) play(c *jsonrpc.Conn) {
	if s.part >= len(s.parts) {
		return
	}
	for _, m := range s.parts[s.part] {
		_ = c.Notify(context.Background(), m.Method, m.Params)
	}
	s.part++
	if s.part < len(s.parts) && len(s.parts[s.part]) > 0 {
		// The client answers a request it does not know after what it got before.
		_ = c.Call(context.Background(), "stub/sync", nil, nil)
		c.Close("cut")
	}
}

// retained answers a read that the real client never made: the chunk that the
// recording left out of its notifications.
func (s *recordedStub) retained(after uint64) exec.ReadResult {
	zero := 0
	res := exec.ReadResult{NextSeq: 7, Exited: true, ExitCode: &zero, Closed: true}
	for seq, text := range map[uint64]string{2: "one\n", 3: "two\n", 4: "three\n"} {
		if seq > after {
			res.Chunks = append(res.Chunks, exec.Chunk{Seq: seq, Stream: exec.StreamStdout, Chunk: []byte(text)})
		}
	}
	for i := range res.Chunks { // in order
		for j := range i {
			if res.Chunks[j].Seq > res.Chunks[i].Seq {
				res.Chunks[i], res.Chunks[j] = res.Chunks[j], res.Chunks[i]
			}
		}
	}
	return res
}

func TestClientAgainstRecordedStubs(t *testing.T) {
	const two, three = "one\ntwo\n", "one\ntwo\nthree\n"
	for name, c := range map[string]struct {
		out    string
		reads  []uint64
		denied bool
	}{
		"41_stub_minimal":         {out: three},
		"42_stub_legacy_nodenied": {out: three, reads: []uint64{7}},
		"43_stub_out_of_order":    {out: three},
		"44_stub_gap":             {out: three, reads: []uint64{1}}, // the real client hangs here
		"45_stub_cut_resume":      {out: three, reads: []uint64{2}},
		"46_stub_noinfo":          {out: two},
		"47_stub_denied":          {out: two, denied: true},
		"48_stub_oldver":          {out: two},
		"49_stub_info":            {out: two},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := loadStub(t, name)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			r, err := execclient.Open(ctx, execclient.Options{Dial: s.dial})
			if err != nil {
				t.Fatal(err)
			}
			defer s.wg.Wait()
			defer r.Close()
			p, err := r.Start(ctx, exec.StartParams{ProcessID: s.process, Argv: []string{"x"}, Cwd: "file:///"})
			if err != nil {
				t.Fatal(err)
			}
			res, err := p.Wait(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if out := string(res.Stdout); out != c.out {
				t.Errorf("output %q", out)
			}
			if res.SandboxDenied != c.denied || res.ExitCode != 0 || res.Lost != 0 {
				t.Errorf("%+v", res)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.asked) != len(c.reads) || len(c.reads) > 0 && s.asked[0] != c.reads[0] {
				t.Errorf("reads after %v, want %v", s.asked, c.reads)
			}
		})
	}
	t.Run("40_stub_seed", func(t *testing.T) {
		s := loadStub(t, "40_stub_seed")
		defer s.wg.Wait()
		if _, err := execclient.Open(t.Context(), execclient.Options{Dial: s.dial}); err == nil || errors.Is(err, context.Canceled) {
			t.Fatalf("a server without sessions: %v", err)
		}
	})
}
