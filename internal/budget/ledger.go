package budget

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/price"
)

// Call is a model call that is about to be sent.
type Call struct {
	Place
	Executor                               thole.ExecutorID
	Provider, Route, Upstream, Model, Path string
	// Input and MaxOutput are upper bounds in tokens.
	Input, MaxOutput int64
	At               time.Time
}

// Result is how a call ended. Known false: nobody knows what was used, and Usage is an
// upper bound.
type Result struct {
	Usage                thole.Usage
	Known                bool
	Status               int
	Upstream, Error      string
	FirstByteAt, EndedAt time.Time
	Waited               time.Duration
}

// Settlement is a result with what it costs. Lost settles a call whose end nobody saw
// at its reservation.
type Settlement struct {
	Result
	Cost func(Call, thole.Usage) (micros int64, known bool)
	Lost bool
}

// Settled is a call after its settlement.
type Settled struct {
	Call
	Most Amount // what was reserved; Micros is -1 without a price
	Used Amount // Micros is -1 without a price
	// Differs: the turn is over, and its agent's own figure is more than 5 % off ours.
	Differs *Difference
}

// Difference is a turn's use as its calls say and as its agent reported it, in tokens.
type Difference struct{ Counted, Reported int64 }

// Exceeds reports a difference of more than 5 %.
func (d Difference) Exceeds() bool {
	off := d.Counted - d.Reported
	return d.Reported >= 0 && max(off, -off) > max(d.Counted, d.Reported)/20
}

// Store keeps calls and budgets. Each method is one transaction; changes are
// compare-and-set.
type Store interface {
	// Reserve records a call and reserves the most it may use in every budget that applies.
	// If one of them refuses, the call is recorded as refused and nothing is reserved.
	// thole.CodeGone: the turn is over.
	Reserve(ctx context.Context, id string, c Call, most Amount) (*Refusal, error)
	// Settle gives a reservation back and charges what was used, also to the usage of a
	// turn that is over. thole.CodeConflict: it was settled before.
	Settle(ctx context.Context, id string, s Settlement) (Settled, error)
	// Reserved lists calls that began before a time and are not settled, the oldest first.
	Reserved(ctx context.Context, before time.Time, limit int) ([]string, error)

	// Admit is the refusal of a new turn.
	Admit(ctx context.Context, p Place, at time.Time) (*Refusal, error)
	// Refused is the refusal of one of a turn's calls.
	Refused(ctx context.Context, thread thole.ThreadID, turn thole.TurnID) (*Refusal, error)
	// Differs compares the figures of a turn that is over.
	Differs(ctx context.Context, thread thole.ThreadID, turn thole.TurnID) (*Difference, error)
	// Notices lists what is not yet in a thread's log, the oldest first; Posted takes them off.
	Notices(ctx context.Context, thread thole.ThreadID) ([]Notice, error)
	Posted(ctx context.Context, ids []string) error

	// Watch calls fn after a turn was refused something or its thread has a notice, in
	// any process that shares the store. "": any turn may be meant. fn does not block.
	Watch(fn func(thole.TurnID)) (cancel func())

	// Set makes a budget or replaces the limits of the one with the same scope, subject and
	// period. expect is the version it must have: 0 any, -1 none.
	Set(ctx context.Context, b Budget, expect int64, by thole.Actor, at time.Time) (Budget, error)
	Remove(ctx context.Context, id ID, expect int64, by thole.Actor, at time.Time) error
	Get(ctx context.Context, id ID) (Budget, error)
	List(ctx context.Context) ([]Budget, error)
	// States lists what subjects use of a budget in the period of a time, the most first.
	States(ctx context.Context, b Budget, at time.Time, limit int) ([]State, error)
	// Changes lists who changed a budget, the newest first.
	Changes(ctx context.Context, id ID, limit int) ([]Change, error)
}

// Notice is for a thread's log.
type Notice struct {
	ID   string
	Turn thole.TurnID
	Text string
	At   time.Time
}

// Change is one row of a budget's history.
type Change struct {
	Action string      `json:"action"`
	Actor  thole.Actor `json:"actor"`
	Budget Budget      `json:"budget"`
	At     time.Time   `json:"at"`
}

// Meter counts what budgets did. Methods must not block.
type Meter interface {
	Refused()
	Unknown()
	Differs()
}

// Ledger counts model calls. It is safe for concurrent use.
type Ledger struct {
	store  Store
	prices func() *price.Table
	newID  func(time.Time) string
	meter  Meter
	log    *slog.Logger
}

// NewLedger makes a ledger.
func NewLedger(s Store, prices func() *price.Table, newID func(time.Time) string, m Meter, log *slog.Logger) *Ledger {
	return &Ledger{store: s, prices: prices, newID: newID, meter: m, log: log}
}

// Begin reserves. thole.CodeBudgetExceeded: a budget refuses the call. What a client
// announced is not trusted to be small.
func (l *Ledger) Begin(ctx context.Context, c Call) (id string, err error) {
	c.Input, c.MaxOutput = clamp(c.Input), clamp(c.MaxOutput)
	most := Amount{Tokens: c.Input + c.MaxOutput, Micros: -1}
	if micros, known := l.prices().Most(c.Provider, c.Model, c.At, c.Input, c.MaxOutput); known {
		most.Micros = min(micros, MaxLimit)
	}
	id = l.newID(c.At)
	refusal, err := l.store.Reserve(ctx, id, c, most)
	switch {
	case err != nil:
		return "", err
	case refusal != nil:
		l.meter.Refused()
		return "", refusal.Error()
	}
	return id, nil
}

func clamp(tokens int64) int64 { return min(max(tokens, 0), 1<<40) }

// End settles a call that Begin returned.
func (l *Ledger) End(ctx context.Context, id string, r Result) error {
	u := &r.Usage
	for _, n := range []*int64{&u.Input, &u.Output, &u.Reasoning, &u.CacheRead, &u.CacheWrite} {
		*n = clamp(*n)
	}
	return l.settle(ctx, id, Settlement{Result: r, Cost: l.cost})
}

// cost prices what an upstream reported: by the name that the client used, because an
// upstream may have one of its own, else by the upstream's.
func (l *Ledger) cost(c Call, u thole.Usage) (int64, bool) {
	table, reported := l.prices(), u.Model
	for _, model := range []string{c.Model, reported} {
		u.Model = model
		if micros, known := table.Cost(c.Provider, c.At, u); known {
			return min(micros, MaxLimit), true
		}
	}
	return -1, false
}

func (l *Ledger) settle(ctx context.Context, id string, s Settlement) error {
	done, err := l.store.Settle(ctx, id, s)
	if err != nil {
		return err
	}
	if s.Lost || !s.Known {
		l.meter.Unknown()
	}
	if done.Used.Tokens > done.Most.Tokens {
		l.log.Warn("a model call used more than was reserved for it", "turn", done.Turn, "thread", done.Thread, "err", fmt.Errorf("%s used %s of %s", done.Model, Count(done.Used.Tokens), Count(done.Most.Tokens)))
	}
	l.differs(done.Thread, done.Turn, done.Differs)
	return nil
}

func (l *Ledger) differs(thread thole.ThreadID, turn thole.TurnID, d *Difference) {
	if d != nil && d.Exceeds() {
		l.meter.Differs()
		l.log.Warn("an agent's own figure of its tokens differs from its calls", "thread", thread, "turn", turn, "was", d.Reported, "to", d.Counted)
	}
}

// Reconcile settles calls that began before a time at what was reserved for them: the
// process that made them is gone, and nobody knows what they used.
func (l *Ledger) Reconcile(ctx context.Context, before, now time.Time) (n int, err error) {
	for {
		ids, err := l.store.Reserved(ctx, before, 100)
		if err != nil || len(ids) == 0 {
			return n, err
		}
		for _, id := range ids {
			err := l.settle(ctx, id, Settlement{Lost: true, Result: Result{Error: "the server ended while the call ran", EndedAt: now}})
			if err != nil && thole.CodeOf(err) != thole.CodeConflict { // it ended just now
				return n, err
			}
			n++
		}
	}
}

// Ended reports whether the figures of a turn that has just ended differ.
func (l *Ledger) Ended(ctx context.Context, thread thole.ThreadID, turn thole.TurnID) error {
	d, err := l.store.Differs(ctx, thread, turn)
	if err == nil {
		l.differs(thread, turn, d)
	}
	return err
}

// Refused is the error of a turn one of whose calls a budget refused, nil otherwise.
func (l *Ledger) Refused(ctx context.Context, thread thole.ThreadID, turn thole.TurnID) (*thole.Error, error) {
	r, err := l.store.Refused(ctx, thread, turn)
	if err != nil || r == nil {
		return nil, err
	}
	return r.Error(), nil
}

// Admit refuses a new turn under a spent budget with thole.CodeBudgetExceeded.
func (l *Ledger) Admit(ctx context.Context, p Place, at time.Time) error {
	r, err := l.store.Admit(ctx, p, at)
	if err != nil || r == nil {
		return err
	}
	l.meter.Refused()
	return r.Error()
}

// Notices lists what is not yet in a thread's log; Posted takes them off.
func (l *Ledger) Notices(ctx context.Context, thread thole.ThreadID) ([]Notice, error) {
	return l.store.Notices(ctx, thread)
}

// Posted takes notices off that are in the thread's log.
func (l *Ledger) Posted(ctx context.Context, ids []string) error { return l.store.Posted(ctx, ids) }

// Watch calls fn when a turn was refused something or its thread has a notice.
func (l *Ledger) Watch(fn func(thole.TurnID)) (cancel func()) { return l.store.Watch(fn) }

// Cost prices the usage of a turn whose agent reported none.
func (l *Ledger) Cost(provider string, at time.Time, u thole.Usage) *int64 {
	if micros, known := l.prices().Cost(provider, at, u); known {
		return &micros
	}
	return nil
}
