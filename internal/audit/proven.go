package audit

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
)

// proven is how far the chain was followed from the head that was signed last. Only a head up to
// which each link follows from the one before it is signed: signing whatever the store calls its
// head would make a chain that was written again the proven one.
type proven struct {
	mu    sync.Mutex
	begun bool
	head  Head
	fault string // that was logged
}

// Head signs the head of now, if the chain goes on to it from the head that was signed last.
func (l *Log) Head(ctx context.Context) (SignedHead, error) {
	l.proven.mu.Lock()
	defer l.proven.mu.Unlock()
	h, err := l.follow(ctx)
	if err != nil {
		return SignedHead{}, err
	}
	return l.anchor.Sign(h, l.now())
}

// follow verifies what was added to the chain. A link is read once, so that a long chain costs
// its signer no more than a short one.
func (l *Log) follow(ctx context.Context) (Head, error) {
	p := &l.proven
	if !p.begun {
		if err := l.begin(ctx); err != nil {
			return Head{}, err
		}
		p.begun = true
	}
	head, err := l.store.Head(ctx) // before the links: each up to it is there
	if err != nil {
		return Head{}, thole.Errorf(thole.CodeOf(err), "read audit head: %w", err)
	}
	if unguarded.Build {
		return head, nil
	}
	w := walk{Report: Report{Head: p.head}}
	for w.Head.Seq < head.Seq {
		links, err := l.store.Links(ctx, w.Head.Seq, page)
		if err != nil {
			return Head{}, thole.Errorf(thole.CodeOf(err), "read audit chain: %w", err)
		}
		for _, next := range links {
			if w.Head.Seq < head.Seq {
				w.add(next)
			}
		}
		if len(links) == 0 || len(w.Faults) > 0 {
			break
		}
	}
	if len(w.Faults) > 0 {
		return Head{}, errBroken("link %d: %s", w.Faults[0].Seq, w.Faults[0].What)
	}
	if w.Head != head {
		return Head{}, errBroken("the head is link %d, and the chain leads from the last signed head to link %d", head.Seq, w.Head.Seq)
	}
	p.head = head
	return head, nil
}

func errBroken(format string, args ...any) error {
	return thole.Errorf(thole.CodeConflict, "the audit chain is broken, and its head is not signed: "+format, args...).WithHint("thole audit verify says where; keep the head that was signed last")
}

// Older reports whether the store is not the one that the kept head is of, or an older one: when
// that head was signed, and why it is not.
func (l *Log) Older(ctx context.Context) (signed time.Time, reason string, err error) {
	last, found, err := l.anchor.Last()
	if err != nil || !found || last.Seq == 0 {
		return time.Time{}, "", err
	}
	fits, err := l.fits(ctx, last.Head)
	if err != nil || fits {
		return time.Time{}, "", err
	}
	return last.At, "the store does not go on from its signed head of " + last.At.Format(time.DateTime) + ": an older one was restored, or its audit chain was cut", nil
}

// fits reports whether the chain has a head as a link.
func (l *Log) fits(ctx context.Context, h Head) (bool, error) {
	at, err := l.store.Links(ctx, h.Seq-1, 1)
	if err != nil {
		return false, thole.Errorf(thole.CodeOf(err), "read audit chain: %w", err)
	}
	return len(at) > 0 && at[0].Seq == h.Seq && strings.EqualFold(at[0].Hash, h.Hash), nil
}

// begin takes the head that was kept as the beginning, if the chain has it.
func (l *Log) begin(ctx context.Context) error {
	last, found, err := l.anchor.Last()
	if err != nil {
		return err
	}
	if !found {
		head, err := l.store.Head(ctx)
		if err == nil && head.Seq > 0 {
			err = l.Record(With(ctx, Source{Actor: thole.SystemActor}), Entry{Action: "audit.anchor", Outcome: Failed, Reason: "no signed head was found next to a chain of " + strconv.FormatInt(head.Seq, 10) + " links: an older store was restored, this home is new to the store, or the head was taken away"})
		}
		return err
	}
	if !last.Signed() {
		return errBroken("the signed head that was kept has a false signature")
	}
	if last.Seq > 0 {
		fits, err := l.fits(ctx, last.Head)
		if err != nil {
			return err
		}
		if !fits {
			return errBroken("the chain does not fit the head of link %d that was signed last", last.Seq)
		}
	}
	l.proven.head = last.Head
	return nil
}

// keep puts the head of now in the place of the one that was kept. That it cannot is logged once.
func (l *Log) keep(ctx context.Context) {
	h, err := l.Head(ctx)
	if err == nil {
		err = l.anchor.Keep(h)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	l.proven.mu.Lock()
	defer l.proven.mu.Unlock()
	if l.proven.fault != err.Error() {
		l.proven.fault = err.Error()
		l.log.Error("the head of the audit chain was not signed", "err", err)
	}
}
