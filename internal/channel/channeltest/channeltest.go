// Package channeltest is a channel whose other end is a scripted host of threads.
// It can lose answers, answer late, lie about the moment, break the stream and
// show events out of order, and it keeps the truth: what the host really took.
package channeltest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
)

// Fate is what happens to one proposal.
type Fate struct {
	// Busy, Forbid: what the probe says; then nothing is proposed.
	Busy, Forbid bool
	// Take: the host really takes the proposal as a turn.
	Take bool
	// Lose: the answer never arrives. Otherwise it says what happened.
	Lose bool
	// Blind: the marker of a taken proposal cannot be found again.
	Blind bool
	// Mute: after a lost answer the host is silent until Wake is called.
	Mute bool
	// Cut breaks the stream once: Observe fails with ErrLost after the events.
	Cut bool
	// Events is what becomes visible of the turn, in order.
	Events []thole.TurnEvent
	// Hang: Observe shows the events and then waits until its context ends.
	Hang bool
	// Foreign shows each event first for another turn of the thread.
	Foreign bool
}

// Turn is what the host really took.
type Turn struct {
	ID       thole.TurnID
	Proposal channel.Proposal
	fate     Fate
}

// Host is the other end. Decide is called once per probe and once per proposal,
// under the host's lock, with the number of the call on that batch.
type Host struct {
	Decide func(batch thole.BatchID, probe bool, n int) Fate

	mu     sync.Mutex
	awake  chan struct{}
	calls  map[string]int
	turns  map[string]*Turn // by request
	byTurn map[thole.TurnID]*Turn
	taken  map[thole.BatchID]int
	sent   map[thole.BatchID]int
	log    []string
}

// New makes a host. A nil decide takes and completes everything.
func New(decide func(batch thole.BatchID, probe bool, n int) Fate) *Host {
	if decide == nil {
		decide = func(thole.BatchID, bool, int) Fate {
			return Fate{Take: true, Events: []thole.TurnEvent{thole.TurnEventStarted, thole.TurnEventCompleted}}
		}
	}
	return &Host{
		Decide: decide, awake: make(chan struct{}), calls: map[string]int{}, turns: map[string]*Turn{}, byTurn: map[thole.TurnID]*Turn{},
		taken: map[thole.BatchID]int{}, sent: map[thole.BatchID]int{},
	}
}

var _ channel.Channel = (*Host)(nil)

func (h *Host) fate(batch thole.BatchID, probe bool) Fate {
	key := fmt.Sprint(batch, probe)
	h.calls[key]++
	return h.Decide(batch, probe, h.calls[key])
}

// Probe implements channel.Channel.
func (h *Host) Probe(ctx context.Context, q channel.Query) (channel.Readiness, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return channel.Readiness{}, err
	}
	if q.Batch == "" { // a forecast
		return channel.Readiness{Verdict: channel.Now, Mode: thole.ModeTurnStart}, nil
	}
	f := h.fate(q.Batch, true)
	switch {
	case f.Forbid:
		return channel.Readiness{Verdict: channel.Never, Why: channel.ReasonPolicy, Reason: "forbidden"}, nil
	case f.Busy:
		return channel.Readiness{Verdict: channel.NotNow, Why: channel.ReasonBusy, Reason: "busy"}, nil
	}
	return channel.Readiness{Verdict: channel.Now, Mode: thole.ModeTurnStart, Attachment: "att", Epoch: 1, Reason: "idle"}, nil
}

var errLost = errors.New("the connection ended before the answer")

// Propose implements channel.Channel.
func (h *Host) Propose(ctx context.Context, p channel.Proposal) (channel.Answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent[p.Batch]++
	if h.turns[p.Request] != nil {
		h.log = append(h.log, "proposed twice: "+p.Request)
	}
	f := h.fate(p.Batch, false)
	if f.Take {
		t := &Turn{ID: thole.TurnID("turn-" + p.Request), Proposal: p, fate: f}
		h.turns[p.Request], h.byTurn[t.ID] = t, t
		h.taken[p.Batch]++
	}
	if f.Lose {
		return channel.Answer{}, errLost
	}
	if !f.Take {
		return channel.Answer{Acceptance: thole.Rejected, Evidence: "the host refused"}, nil
	}
	return channel.Answer{Acceptance: thole.Accepted, Turn: h.turns[p.Request].ID, Attachment: p.Attachment, Epoch: p.Epoch, Evidence: "response"}, nil
}

// Observe implements channel.Channel.
func (h *Host) Observe(ctx context.Context, w channel.Watch, see func(channel.Sighting) error) error {
	h.mu.Lock()
	t := h.turns[w.Request]
	h.mu.Unlock()
	say := func(s channel.Sighting) error {
		s.Attachment, s.Epoch, s.Evidence = w.Attachment, w.Epoch, "event stream"
		return see(s)
	}
	if w.Turn == "" {
		if t != nil && t.fate.Mute {
			select {
			case <-h.awake:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		switch {
		case t == nil:
			// Never taken, and the host can prove it.
			return say(channel.Sighting{Acceptance: thole.Rejected})
		case t.fate.Blind:
			return channel.ErrLost
		}
		if err := say(channel.Sighting{Acceptance: thole.Accepted, Turn: t.ID}); err != nil {
			return err
		}
	}
	if t == nil {
		return channel.ErrLost
	}
	for _, e := range t.fate.Events {
		if t.fate.Foreign {
			if err := say(channel.Sighting{Event: e, Turn: "someone-elses"}); err != nil {
				return err
			}
		}
		if err := say(channel.Sighting{Event: e, Turn: t.ID}); err != nil {
			return err
		}
		if e.Terminal() {
			return nil
		}
	}
	if t.fate.Cut {
		return channel.ErrLost
	}
	<-ctx.Done()
	return ctx.Err()
}

// Wake ends the silence of a muted host.
func (h *Host) Wake() { close(h.awake) }

// Taken is how often the host really took a batch as a turn.
func (h *Host) Taken(b thole.BatchID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken[b]
}

// Sent is how often a batch was proposed.
func (h *Host) Sent(b thole.BatchID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent[b]
}

// Complaints lists what no driver may do.
func (h *Host) Complaints() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.log...)
}
