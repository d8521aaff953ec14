package execclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/exec"
)

// arrive takes an event from the wire, in any order.
func (p *Process) arrive(ev Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ev.Seq <= p.last || p.ended || p.lagging {
		return
	}
	if _, dup := p.pending[ev.Seq]; dup {
		return
	}
	if len(p.pending) >= maxEvents || p.ahead+len(ev.Data) > maxBytes {
		p.clearPending() // the read brings it all
		p.repairLocked()
		return
	}
	p.pending[ev.Seq] = ev
	p.ahead += len(ev.Data)
	p.advance()
}

// advance moves what is in order from pending to the queue and watches a gap.
func (p *Process) advance() {
	for !p.repairing && !p.ended {
		ev, ok := p.pending[p.last+1]
		if !ok {
			break
		}
		if ev.Kind == Exited && ev.legacy { // an old server: one read returns the rest
			p.repairLocked()
			break
		}
		delete(p.pending, ev.Seq)
		p.ahead -= len(ev.Data)
		if !p.push(ev) {
			return
		}
	}
	if len(p.pending) == 0 || p.repairing || p.ended {
		if p.gap != nil {
			p.gap.Stop()
			p.gap = nil
		}
	} else if p.gap == nil {
		p.gap = time.AfterFunc(p.c.opts.GapAfter, p.gapPersists)
	}
}

func (p *Process) gapPersists() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gap != nil {
		p.gap = nil
		if len(p.pending) > 0 {
			p.repairLocked()
		}
	}
}

// push queues an event for the consumer. It reports false when the consumer lags
// and the event was not taken.
func (p *Process) push(ev Event) bool {
	if ev.Kind == Output && (len(p.queue) >= maxEvents || p.bytes+len(ev.Data) > maxBytes && len(p.queue) > 0) {
		p.lagging = true
		p.clearPending()
		return false
	}
	p.queue = append(p.queue, ev)
	p.bytes += len(ev.Data)
	p.last = max(p.last, ev.Seq)
	switch ev.Kind {
	case Exited:
		p.exited = true
	case Closed, Failed:
		p.ended = true
		p.clearPending()
		p.c.wg.Go(func() { p.c.forget(p) })
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return true
}

func (p *Process) clearPending() {
	clear(p.pending)
	p.ahead = 0
}

func (p *Process) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.push(Event{Kind: Failed, Seq: p.last, Err: err})
	}
}

// repair brings the process up to date with one read.
func (p *Process) repair() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repairLocked()
}

func (p *Process) repairLocked() {
	if p.ended || p.lagging {
		return // a lagging process repairs when its consumer has caught up
	}
	if p.repairing {
		p.again = true
		return
	}
	p.repairing = true
	p.reads++
	after := p.last
	p.c.wg.Go(func() {
		var res exec.ReadResult
		zero := uint64(0)
		err := p.c.repeat(p.c.ctx, exec.MethodProcessRead, exec.ReadParams{ProcessID: p.ID, AfterSeq: &after, WaitMs: &zero}, &res)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.repairing = false
		if err != nil {
			var refused *jsonrpc.Error
			if errors.As(err, &refused) && !p.ended {
				p.push(Event{Kind: Failed, Seq: p.last, Err: fmt.Errorf("%w: %w", ErrLost, err)})
			}
			return
		}
		p.apply(&res)
		if p.again {
			p.again = false
			if len(p.pending) > 0 {
				p.repairLocked()
			}
		}
		p.advance()
	})
}

// apply turns a read into events. Numbers in the answer's range that are neither
// a chunk nor the exit nor the close are output the server no longer has.
func (p *Process) apply(res *exec.ReadResult) {
	if res.NextSeq <= p.last+1 && !res.Closed {
		return
	}
	missing := int(res.NextSeq-1) - int(p.last)
	fresh := res.Chunks[:0]
	for _, ch := range res.Chunks {
		if ch.Seq > p.last {
			fresh = append(fresh, ch)
		}
	}
	missing -= len(fresh)
	if res.Exited && !p.exited {
		missing--
	}
	if res.Closed {
		missing--
	}
	if missing > 0 {
		p.push(Event{Kind: Lost, Seq: p.last + uint64(missing), Count: missing})
	}
	for _, ch := range fresh {
		ev := Event{Kind: Output, Seq: ch.Seq, Stream: ch.Stream, Data: ch.Chunk}
		p.queue = append(p.queue, ev) // the server's window bounds it
		p.bytes += len(ev.Data)
		p.last = ch.Seq
	}
	if res.Exited && !p.exited {
		ev := Event{Kind: Exited, Seq: p.last, SandboxDenied: res.SandboxDenied}
		if res.ExitCode != nil {
			ev.ExitCode = *res.ExitCode
		}
		p.push(ev)
	}
	if res.Failure != nil && *res.Failure != "" {
		p.push(Event{Kind: Failed, Seq: p.last, Err: errors.New(*res.Failure)})
		return
	}
	if res.Closed {
		p.push(Event{Kind: Closed, Seq: res.NextSeq - 1})
	}
	p.last = max(p.last, res.NextSeq-1)
	for seq, ev := range p.pending {
		if seq <= p.last {
			p.ahead -= len(ev.Data)
			delete(p.pending, seq)
		}
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
