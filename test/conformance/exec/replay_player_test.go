//go:build linux

package exec_test

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tholehq/thole/protocol/exec"
)

// player is one connection of a replay and what arrived on it.
type player struct {
	*wire
	answers map[string]message
	errs    []message // under id -1
	procs   map[string]*progress
	bodies  map[string]*body // streamed http bodies, by request
	other   []message
	sent    map[string]string // by id, as sent
}

// body is a streamed http body: ours, and the recorded one.
type body struct {
	got, want    string
	done, failed bool
	seq          uint64
}

// progress is what is known of a process: ours, and the recorded one.
type progress struct {
	got, want  map[string]string // stream → bytes
	seqs       []uint64
	exit       *exec.ExitedParams
	closed     bool
	wantExit   *exec.ExitedParams
	wantClosed bool
}

// answer waits for the answer to a request.
func (p *player) answer(id string) message {
	p.t.Helper()
	p.until(patience, func() bool { _, ok := p.answers[id]; return ok }, "answer to "+id)
	got := p.answers[id]
	delete(p.answers, id)
	return got
}

func (p *player) body(id string) *body {
	if p.bodies[id] == nil {
		p.bodies[id] = &body{}
	}
	return p.bodies[id]
}

func (p *player) proc(id string) *progress {
	if p.procs[id] == nil {
		p.procs[id] = &progress{got: map[string]string{}, want: map[string]string{}}
	}
	return p.procs[id]
}

// take handles one arrived message.
func (p *player) take(m message) {
	switch {
	case m.Method == "":
		if string(m.ID) == "-1" {
			p.errs = append(p.errs, m)
			return
		}
		p.answers[string(m.ID)] = m
	case strings.HasPrefix(m.Method, "process/"):
		var out exec.OutputParams
		_ = json.Unmarshal(m.Params, &out)
		pr := p.proc(out.ProcessID)
		if pr.closed {
			p.t.Errorf("%s after closed of %s", m.Method, out.ProcessID)
		}
		pr.seqs = append(pr.seqs, out.Seq)
		switch m.Method {
		case exec.NotifyOutput:
			pr.got[out.Stream] += string(out.Chunk)
		case exec.NotifyExited:
			pr.exit = new(exec.ExitedParams)
			_ = json.Unmarshal(m.Params, pr.exit)
		case exec.NotifyClosed:
			pr.closed = true
		}
	case m.Method == exec.NotifyBodyDelta:
		var d exec.BodyDeltaParams
		_ = json.Unmarshal(m.Params, &d)
		b := p.body(d.RequestID)
		if b.seq++; d.Seq != b.seq {
			p.t.Errorf("body %s: delta %d, want %d", d.RequestID, d.Seq, b.seq)
		}
		b.got += string(d.Delta)
		b.done, b.failed = d.Done, d.Error != nil
	default:
		p.other = append(p.other, m)
	}
}

// patience is how long something that must happen may take on a busy machine.
const patience = 30 * time.Second

// soft takes messages until cond holds or time is up.
func (p *player) soft(within time.Duration, cond func() bool) bool {
	deadline := time.After(within)
	for !cond() {
		select {
		case m := <-p.in:
			p.take(m)
		case <-deadline:
			return false
		}
	}
	return true
}

func (p *player) until(within time.Duration, cond func() bool, what string) {
	p.t.Helper()
	if !p.soft(within, cond) {
		p.t.Fatalf("no %s", what)
	}
}
