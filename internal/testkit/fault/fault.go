// Package fault makes the calls of a port fail on purpose: before they had an
// effect, or after it, which is how a timeout looks when the work was done. Wrappers
// that implement a port over a Plan are generated:
//
//	//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port ../../queue -type Store -out queue_fault.go
//
// Enumerate then runs a piece of code with a fault at every call it makes. The
// package injects errors only; slowness and cuts belong to the real parts.
package fault

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

// When says on which side of the effect a call fails.
type When string

const (
	Before When = "before" // the port was not called
	After  When = "after"  // the port was called and its success is kept from the caller
)

// Err is what an injected failure returns.
var Err = errors.New("injected fault")

// Plan counts the calls of one or several wrapped ports and fails one of them.
// The zero Plan fails none. It is safe for concurrent use.
type Plan struct {
	At     int    // which call fails, counted from 1 over all methods; 0: none
	Method string // count only this method, e.g. "Store.Claim"; "": all
	When   When
	Err    error // default Err

	mu    sync.Mutex // guards what follows
	calls []string
	fired bool
}

// Enter counts a call and returns its number and the error to fail it with before
// the effect. Only generated wrappers call it.
func (p *Plan) Enter(method string) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Method != "" && p.Method != method {
		return 0, nil
	}
	p.calls = append(p.calls, method)
	return len(p.calls), p.fault(len(p.calls), Before)
}

// Leave returns the error to fail call n with after its effect.
func (p *Plan) Leave(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault(n, After)
}

func (p *Plan) fault(n int, when When) error {
	if n == 0 || n != p.At || when != p.When {
		return nil
	}
	p.fired = true
	if p.Err != nil {
		return p.Err
	}
	return fmt.Errorf("%s: %w %s its effect", p.calls[n-1], Err, when)
}

// Calls are the counted calls so far.
func (p *Plan) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.calls...)
}

// Fired reports whether the planned fault happened.
func (p *Plan) Fired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired
}

// Enumerate runs scenario once without a fault, and then once for each call it
// made and each side of the effect. The scenario builds everything again, wraps its
// ports with the plan, and checks its invariants itself; it must make its calls in
// the same order each time up to the fault.
func Enumerate(t *testing.T, scenario func(t *testing.T, p *Plan)) {
	t.Helper()
	clean := &Plan{}
	t.Run("no fault", func(t *testing.T) { scenario(t, clean) })
	calls := clean.Calls()
	if len(calls) == 0 {
		t.Fatal("the scenario made no call through a wrapper")
	}
	for i, method := range calls {
		for _, when := range []When{Before, After} {
			t.Run(fmt.Sprintf("%s %s %d", when, method, i+1), func(t *testing.T) {
				p := &Plan{At: i + 1, When: when}
				scenario(t, p)
				if !p.Fired() {
					t.Error("the planned fault never happened: the scenario is not the same each time")
				}
			})
		}
	}
}
