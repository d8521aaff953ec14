package execclient

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/tholehq/thole/protocol/exec"
)

// Bounds of what waits in a Process. Beyond the queue's the process lags and
// catches up with one read; beyond the pending ones a gap is repaired at once.
const (
	maxEvents = 256
	maxBytes  = 1 << 20
)

// Process is a started process. One goroutine may call Next; the rest is safe
// for concurrent use.
type Process struct {
	c           *Client
	ID          string
	SandboxType string // "" when an old server did not say

	mu        sync.Mutex       // guards the rest
	last      uint64           // highest sequence number delivered to queue
	pending   map[uint64]Event // arrived ahead of a gap
	queue     []Event
	bytes     int // in queue
	ahead     int // bytes in pending
	exited    bool
	ended     bool // Closed or Failed is queued
	lagging   bool // events are dropped until the queue is empty
	repairing bool
	again     bool // another repair became due meanwhile
	reads     int
	gap       *time.Timer
	wake      chan struct{} // capacity 1
	nextWrite uint64
}

// Start starts a process. Its events wait in the Process from the first one on.
// When the connection is lost before the answer, whatever was started is
// terminated and the error says so.
func (c *Client) Start(ctx context.Context, params exec.StartParams) (*Process, error) {
	p := &Process{c: c, ID: params.ProcessID, pending: map[uint64]Event{}, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	switch {
	case c.err != nil:
		c.mu.Unlock()
		return nil, c.err
	case c.procs[p.ID] != nil:
		c.mu.Unlock()
		return nil, fmt.Errorf("execclient: process %s already exists", p.ID)
	}
	c.procs[p.ID] = p
	c.mu.Unlock()
	if params.Env == nil {
		params.Env = map[string]string{}
	}
	var res exec.StartResult
	err := c.Call(ctx, exec.MethodProcessStart, params, &res)
	if err == nil {
		p.SandboxType = res.SandboxType
		return p, nil
	}
	c.forget(p)
	var refused *Error
	if !errors.As(err, &refused) { // it may run all the same
		err = errors.Join(err, c.abandon(p.ID))
	}
	return nil, err
}

// abandon terminates a process whose start got no answer.
func (c *Client) abandon(id string) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.RecoverFor)
	defer cancel()
	return c.repeat(ctx, exec.MethodProcessTerminate, exec.ProcessParams{ProcessID: id}, nil)
}

func (c *Client) forget(p *Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.procs[p.ID] == p {
		delete(c.procs, p.ID)
	}
}

// Next returns the next event; after Closed or Failed there is none and it
// returns an error.
func (p *Process) Next(ctx context.Context) (Event, error) {
	for {
		p.mu.Lock()
		if len(p.queue) > 0 {
			ev := p.queue[0]
			p.queue[0] = Event{}
			p.queue = p.queue[1:]
			p.bytes -= len(ev.Data)
			if len(p.queue) == 0 && p.lagging {
				p.lagging = false
				p.repairLocked()
			}
			p.mu.Unlock()
			return ev, nil
		}
		if p.ended {
			p.mu.Unlock()
			return Event{}, errors.New("execclient: no more events")
		}
		p.mu.Unlock()
		select {
		case <-p.wake:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// Result is a finished process.
type Result struct {
	Stdout, Stderr []byte // a terminal's output is in Stdout
	ExitCode       int
	SandboxDenied  bool
	Lost           int // events of output that are gone
}

// Wait collects the events up to the end.
func (p *Process) Wait(ctx context.Context) (Result, error) {
	var r Result
	for {
		ev, err := p.Next(ctx)
		if err != nil {
			return r, err
		}
		switch ev.Kind {
		case Output:
			if ev.Stream == exec.StreamStderr {
				r.Stderr = append(r.Stderr, ev.Data...)
			} else {
				r.Stdout = append(r.Stdout, ev.Data...)
			}
		case Lost:
			r.Lost += ev.Count
		case Exited:
			r.ExitCode, r.SandboxDenied = ev.ExitCode, ev.SandboxDenied
		case Closed:
			return r, nil
		case Failed:
			return r, ev.Err
		}
	}
}

// Write writes to the process's stdin. It is repeated after a lost connection
// under the same id, so the bytes arrive once.
func (p *Process) Write(ctx context.Context, data []byte) error {
	p.mu.Lock()
	p.nextWrite++
	id := strconv.FormatUint(p.nextWrite, 10)
	p.mu.Unlock()
	var res exec.WriteResult
	err := p.c.repeat(ctx, exec.MethodProcessWrite, exec.WriteParams{ProcessID: p.ID, Chunk: data, WriteID: id}, &res)
	if err == nil && res.Status != exec.WriteAccepted {
		err = fmt.Errorf("execclient: write to %s: %s", p.ID, res.Status)
	}
	return err
}

// Interrupt signals the process group.
func (p *Process) Interrupt(ctx context.Context) error {
	return p.c.Call(ctx, exec.MethodProcessSignal, exec.SignalParams{ProcessID: p.ID, Signal: exec.SignalInterrupt}, nil)
}

// Resize sets the terminal's size, where the server can.
func (p *Process) Resize(ctx context.Context, rows, cols uint16) error {
	return p.c.Call(ctx, exec.MethodProcessResize, exec.ResizeParams{ProcessID: p.ID, Rows: rows, Cols: cols}, nil)
}

// Terminate kills the process group and reports whether the process was running.
func (p *Process) Terminate(ctx context.Context) (bool, error) {
	var res exec.TerminateResult
	err := p.c.repeat(ctx, exec.MethodProcessTerminate, exec.ProcessParams{ProcessID: p.ID}, &res)
	return res.Running, err
}

// Reads counts the repairs so far.
func (p *Process) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}
