package audit

import (
	"context"
	"fmt"
	"slices"

	thole "github.com/tholehq/thole"
)

// Fault is something wrong with the chain.
type Fault struct {
	Seq  int64  `json:"seq"`
	What string `json:"what"`
}

// Report is what a verification found.
type Report struct {
	Links  int64   `json:"links"`
	Head   Head    `json:"head"`
	Faults []Fault `json:"faults"`
	// Anchored is the link up to which signed heads prove the chain; 0: none does.
	Anchored int64 `json:"anchored"`
}

const (
	page      = 500
	maxFaults = 100
)

// walk follows a chain link by link.
type walk struct {
	Report
	heads map[int64][]SignedHead
}

// newWalk takes signed heads; key, unless empty, is the only one whose heads count.
func newWalk(heads []SignedHead, key string) *walk {
	w := &walk{heads: map[int64][]SignedHead{}}
	for _, h := range heads {
		switch {
		case !h.Signed():
			w.fault(h.Seq, "a signed head has a false signature")
		case key != "" && h.Key != key:
			w.fault(h.Seq, "a signed head is of another key")
		default:
			w.heads[h.Seq] = append(w.heads[h.Seq], h)
		}
	}
	return w
}

func (w *walk) fault(seq int64, what string, args ...any) {
	if len(w.Faults) < maxFaults {
		w.Faults = append(w.Faults, Fault{seq, fmt.Sprintf(what, args...)})
	}
}

func (w *walk) add(l Link) {
	switch {
	case l.Seq != w.Head.Seq+1:
		w.fault(l.Seq, "links %d to %d are missing", w.Head.Seq+1, l.Seq-1)
	case l.Prev != w.Head.Hash:
		w.fault(l.Seq, "it does not follow from the link before it")
	}
	if l.Sum() != l.Hash {
		w.fault(l.Seq, "it was changed: its fields do not have its hash")
	}
	w.Links++
	w.Head = Head{l.Seq, l.Hash}
	for _, h := range w.heads[l.Seq] {
		if h.Hash != l.Hash {
			w.fault(l.Seq, "it is not the link that was the head at %s", thole.FromMillis(thole.Millis(h.At)).Format("2006-01-02 15:04:05"))
		} else {
			w.Anchored = l.Seq
		}
	}
	delete(w.heads, l.Seq)
}

// end judges the heads beyond the last link.
func (w *walk) end() Report {
	seqs := make([]int64, 0, len(w.heads))
	for seq := range w.heads {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		if seq > 0 {
			w.fault(seq, "the chain ends with link %d, and its signed head of %s says %d: links were cut off, or an older store is in its place", w.Head.Seq, w.heads[seq][0].At.Format("2006-01-02 15:04:05"), seq)
		}
	}
	return w.Report
}

// Verify reads the whole chain of a store and compares it with its head and with signed ones.
// Links that are added meanwhile are read too.
func Verify(ctx context.Context, s Store, heads []SignedHead, key string) (Report, error) {
	w := newWalk(heads, key)
	for {
		for {
			links, err := s.Links(ctx, w.Head.Seq, page)
			if err != nil {
				return Report{}, thole.Errorf(thole.CodeOf(err), "verify audit chain: %w", err)
			}
			for _, l := range links {
				w.add(l)
			}
			if len(links) < page {
				break
			}
		}
		head, err := s.Head(ctx)
		if err != nil {
			return Report{}, thole.Errorf(thole.CodeOf(err), "verify audit chain: %w", err)
		}
		if head.Seq > w.Head.Seq {
			more, err := s.Links(ctx, w.Head.Seq, 1)
			if err != nil {
				return Report{}, thole.Errorf(thole.CodeOf(err), "verify audit chain: %w", err)
			}
			if len(more) > 0 {
				continue
			}
			w.fault(head.Seq, "the chain ends with link %d, and its head says %d: links were cut off", w.Head.Seq, head.Seq)
		} else if head.Seq < w.Head.Seq {
			w.fault(head.Seq, "the head is an older one: it says %d, and the chain ends with link %d", head.Seq, w.Head.Seq)
		} else if head.Hash != w.Head.Hash {
			w.fault(head.Seq, "the head has another hash than the last link")
		}
		return w.end(), nil
	}
}
