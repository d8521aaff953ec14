// Package queue owns runnable turns: who may work on which, for how long, and
// what happens when they do not come back. It is a table with leases. A claim
// hands out a fresh token; renew, park, release and complete show it and are
// refused once the lease is over, so that at most one live worker writes a turn.
//
// Turns of one thread run one after another, in order of arrival. The queue does
// not know what a turn does and never starts anything.
package queue

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
)

// State of a row. Legal moves:
//
//	ready  → leased           claim
//	leased → ready            release (retry), put back (not tried), reap (lease ran out)
//	leased → parked           park: a human must answer and nothing runs meanwhile
//	parked → ready            unpark, cancel
//	leased → done             complete
//	ready  → done             only with cancel, through a claim: a worker must record it in the thread
type State string

const (
	Ready  State = "ready"
	Leased State = "leased"
	Parked State = "parked"
	Done   State = "done"
)

// ErrLeaseLost: the token is not the row's, or its time is over. A caller that gets it
// stops writing at once.
var ErrLeaseLost = errors.New("queue: lease lost")

// Kind says what a row is for. Maintenance of a thread's executor stands in the same
// line as the thread's turns, so that the two never meet.
type Kind string

const (
	Turn   Kind = "turn"
	Sync   Kind = "sync"
	Stop   Kind = "stop"
	Remove Kind = "remove"
)

// Item is a turn that may run, or maintenance that may be done.
type Item struct {
	Kind     Kind         // "" means Turn
	Turn     thole.TurnID // for maintenance, an id of its own
	Thread   thole.ThreadID
	User     thole.UserID
	Priority int
}

// Lease is a claimed turn.
type Lease struct {
	Item
	Token string
	// Attempt is 1 for the first and rises with each try that failed. A worker that
	// died, stopped or had to wait for something failed at nothing.
	Attempt int
	Until   time.Time
	// Cancel: the turn should stop. A worker sees it at claim and at each renewal.
	Cancel bool
	// LastError says why the attempt before this one was given up.
	LastError string
}

// Limits bound how many turns run at once; rows that wait for a human do not
// count.
type Limits struct {
	Total   int
	PerUser int
}

// Claim asks for work.
type Claim struct {
	Owner string // who claims, for people who look at the table
	// Maintenance asks for maintenance instead of turns; the limits do not apply to
	// it. Its index in the schema keeps an earlier name, turn_queue_care.
	Maintenance bool
	// Token is fresh and unguessable. With the turn it names a lease.
	Token  string
	Max    int // how many turns at most
	Lease  time.Duration
	Limits Limits
	// Engine is where the claimer's executors are: threads whose executor may still run
	// on another are passed over. Empty: the store has one engine.
	Engine string
}

// Row is a turn as the queue sees it.
type Row struct {
	Item
	State     State
	Head      bool
	Waiting   bool
	Cancel    bool
	Attempt   int // tries that failed
	Available time.Time
	Owner     string
	Until     time.Time
	LastError string
	Created   time.Time
	Done      time.Time
}

// Store is the durable queue. Times are the store's own: database time on
// PostgreSQL, so that workers with different clocks agree. Every method is one
// transaction and safe for concurrent use by several processes.
type Store interface {
	// Enqueue adds items; adding one again changes nothing, nor does maintenance of a kind
	// that the thread already waits for, unless it is to be given with a higher
	// priority, which the waiting one then has. Turns started through threads are added in
	// the thread's own transaction instead.
	Enqueue(ctx context.Context, items ...Item) error
	// Claim leases up to Max turns, best first: by priority, then by the millisecond
	// of their arrival.
	Claim(ctx context.Context, c Claim) ([]Lease, error)
	// Standby has turns that threads start leased at once, in the commit that adds
	// them, as ask says and best first. take gets them and must not block. A store
	// that several processes share may leave them to Claim.
	Standby(ask func() Claim, take func([]Lease)) (stop func())
	// Renew extends a live lease and reports whether a cancel was asked for.
	Renew(ctx context.Context, turn thole.TurnID, token string, lease time.Duration) (cancel bool, err error)
	// Wait marks a leased turn as held up by a human, or no longer.
	Wait(ctx context.Context, turn thole.TurnID, token string, waiting bool) error
	// Park gives a turn back until Unpark; its answer comes from a human.
	Park(ctx context.Context, turn thole.TurnID, token string) error
	// Unpark makes a parked turn ready; false if it is not parked.
	Unpark(ctx context.Context, turn thole.TurnID) (bool, error)
	// Release gives a turn whose try failed back, to be tried again after delay.
	Release(ctx context.Context, turn thole.TurnID, token string, delay time.Duration, why string) error
	// PutBack gives a turn back that was not tried: its worker stops, or what it needs
	// is away. It costs no attempt.
	PutBack(ctx context.Context, turn thole.TurnID, token string, delay time.Duration, why string) error
	// Hasten lets a turn that was given back be tried at once.
	Hasten(ctx context.Context, turn thole.TurnID) error
	// Complete ends a turn's row and lets the thread's next one go.
	Complete(ctx context.Context, turn thole.TurnID, token string) error
	// Cancel asks for a turn to stop, wherever it is; false if it is done.
	Cancel(ctx context.Context, turn thole.TurnID) (bool, error)
	// Reap gives expired leases back, at most limit of them. With alone, whose
	// caller proves that no worker but itself can be alive, live ones too.
	Reap(ctx context.Context, alone bool, limit int) ([]thole.TurnID, error)
	// Abandon gives back the leases of an owner that is proven to be gone.
	Abandon(ctx context.Context, owner string) ([]thole.TurnID, error)
	// Prune deletes rows done before a time, at most limit of them.
	Prune(ctx context.Context, before time.Time, limit int) (int, error)
	Get(ctx context.Context, turn thole.TurnID) (Row, error)
	// Subscribe calls wake when there may be something to claim or to cancel.
	Subscribe(wake func()) (stop func())
}

// Backoff is the delay before attempt n+1: 1 s doubling to 5 min.
func Backoff(attempt int) time.Duration {
	return backoff.Policy{Min: time.Second, Max: 5 * time.Minute}.After(attempt)
}

// MaxAttempts is how often a turn is tried before it fails for good.
const MaxAttempts = 5
