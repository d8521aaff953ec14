package audit

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// Store keeps the chain. The rows of other machines append to it in their own transactions.
type Store interface {
	// Append links one entry and moves the head, in one transaction.
	Append(ctx context.Context, e Entry) (Link, error)
	Head(ctx context.Context) (Head, error)
	// Links lists those after a sequence number in their order, at most limit.
	Links(ctx context.Context, after int64, limit int) ([]Link, error)
	// Latest lists what a filter chooses, the newest first.
	Latest(ctx context.Context, f Filter) ([]Link, error)
	// Watch calls fn after links were added; it must not wait.
	Watch(fn func()) (cancel func())
}

// Filter chooses links. Empty members choose all.
type Filter struct {
	Actor    string  `json:"actor,omitempty"`
	Action   string  `json:"action,omitempty" doc:"one action, or all that begin so when it ends with a dot"`
	Resource string  `json:"resource,omitempty" doc:"id"`
	Outcome  Outcome `json:"outcome,omitempty"`
	Before   int64   `json:"before,omitempty" doc:"only links of a lower number"`
	Limit    int     `json:"limit,omitempty"`
}

// Methods with which the home's owner is asked over its socket.
const (
	MethodLatest = "thole/audit/latest"
	MethodLinks  = "thole/audit/links"
	MethodHead   = "thole/audit/head"
	MethodVerify = "thole/audit/verify"
)

// LinksParams are the params of MethodLinks.
type LinksParams struct {
	After int64 `json:"after,omitempty"`
	Limit int   `json:"limit,omitempty"`
}

// VerifyParams are heads that were kept elsewhere.
type VerifyParams struct {
	Heads []SignedHead `json:"heads,omitempty"`
}

// Anchor keeps the last signed head outside of the store.
type Anchor interface {
	// Sign signs a head; the key is made at its first use.
	Sign(h Head, at time.Time) (SignedHead, error)
	// Last returns the head that was kept; found=false: none was.
	Last() (h SignedHead, found bool, err error)
	// Keep replaces it.
	Keep(h SignedHead) error
}

// Log records and verifies. Safe for concurrent use.
type Log struct {
	store  Store
	anchor Anchor
	now    func() time.Time
	log    *slog.Logger
	denied denials
	proven proven
}

// New makes a log; now is time.Now when nil.
func New(store Store, anchor Anchor, now func() time.Time, log *slog.Logger) *Log {
	if now == nil {
		now = time.Now
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Log{store: store, anchor: anchor, now: now, log: log}
}

// Record links what has no other transaction: it is the first thing to happen, so that
// nothing is done that was not recorded. A nil log records nothing.
func (l *Log) Record(ctx context.Context, e Entry) error {
	if l == nil {
		return nil
	}
	if e.At.IsZero() {
		e.At = l.now()
	}
	if _, err := l.store.Append(ctx, e.Complete(ctx)); err != nil {
		return thole.Errorf(thole.CodeOf(err), "record in the audit chain: %w", err)
	}
	return nil
}

// Do records what is about to be done, does it, and records that it failed when it did: who
// finds no second link knows that it was done, or that nobody lived to say.
func (l *Log) Do(ctx context.Context, e Entry, do func() error) error {
	if err := l.Record(ctx, e); err != nil {
		return err
	}
	err := do()
	if err != nil && l != nil {
		e.At, e.Outcome, e.Reason = l.now(), Failed, err.Error()
		if rec := l.Record(context.WithoutCancel(ctx), e); rec != nil {
			l.log.Error("a failure was not recorded in the audit chain", "err", rec)
		}
	}
	return err
}

// Refused records a refusal. Beyond a few in a minute from one source they are counted,
// and the next link says how many there were: who is refused must not fill the disk.
func (l *Log) Refused(ctx context.Context, e Entry) {
	if l == nil {
		return
	}
	e.At, e.Outcome = l.now(), Denied
	e = e.Complete(ctx)
	skipped, ok := l.denied.admit(e.Actor+" "+e.Address, e.At)
	if !ok {
		return
	}
	if skipped > 0 {
		e.Reason += " (" + strconv.Itoa(skipped) + " more were not recorded)"
	}
	if _, err := l.store.Append(context.WithoutCancel(ctx), e); err != nil {
		l.log.Error("a refusal was not recorded in the audit chain", "err", err)
	}
}

// Hidden records who asked for a thread that is not theirs to see, and whose answer was that
// there is no such thread.
func (l *Log) Hidden(ctx context.Context, actor thole.Actor, action authz.Action, o thole.Owner, id thole.ThreadID) {
	e := Entry{Action: "thread." + string(action), Kind: "thread", ID: string(id), App: o.App, Project: o.Project, Owner: o.User, Reason: "the thread is not theirs to see"}
	l.Refused(ctx, e.From(SourceFor(ctx, actor)))
}

const (
	denialsPerMinute = 10
	maxSources       = 10_000
)

// denials bounds what is recorded of each source in a minute.
type denials struct {
	mu     sync.Mutex
	minute time.Time
	seen   map[string]int
	left   map[string]int // of the minute before, not recorded
}

func (d *denials) admit(source string, now time.Time) (skipped int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := now.Truncate(time.Minute); !m.Equal(d.minute) {
		d.left = map[string]int{}
		for s, n := range d.seen {
			if n > denialsPerMinute {
				d.left[s] = n - denialsPerMinute
			}
		}
		d.minute, d.seen = m, map[string]int{}
	}
	if _, known := d.seen[source]; !known && len(d.seen) >= maxSources {
		source = "" // all the others are one source
	}
	d.seen[source]++
	if d.seen[source] > denialsPerMinute {
		return 0, false
	}
	skipped = d.left[source]
	delete(d.left, source)
	return skipped, true
}

// Links and Latest read the chain.
func (l *Log) Links(ctx context.Context, after int64, limit int) ([]Link, error) {
	return l.store.Links(ctx, after, min(max(limit, 1), page))
}

// Latest lists what a filter chooses, the newest first.
func (l *Log) Latest(ctx context.Context, f Filter) ([]Link, error) {
	if f.Limit <= 0 || f.Limit > 1000 {
		f.Limit = 200
	}
	return l.store.Latest(ctx, f)
}

// Verify reads the whole chain and compares it with the head that was kept and others.
func (l *Log) Verify(ctx context.Context, heads ...SignedHead) (Report, error) {
	last, found, err := l.anchor.Last()
	if err != nil {
		return Report{}, err
	}
	if found {
		heads = append(heads, last)
	}
	return Verify(ctx, l.store, heads, "")
}

// Run keeps the signed head in step with the chain until ctx ends. A chain that does not go on
// from the kept head is left as it is found: its head stays the proof.
func (l *Log) Run(ctx context.Context) {
	wake := make(chan struct{}, 1)
	defer l.store.Watch(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})()
	for {
		l.keep(ctx)
		select {
		case <-ctx.Done():
			l.keep(context.WithoutCancel(ctx))
			return
		case <-wake:
		}
	}
}
