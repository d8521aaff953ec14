package system

import (
	"context"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// jobsReader collects whose jobs changed until it is judged whether its actor may read them.
type jobsReader struct {
	mu     sync.Mutex
	owners map[thole.Owner]bool // of changes that were not judged yet
	some   chan struct{}
}

// jobsChanged is httpapi.Config.JobsChanged. The rights are read again with each change: they
// are others than when the stream began.
func (d *deliveries) jobsChanged(ctx context.Context, actor thole.Actor) (<-chan struct{}, func()) {
	r := &jobsReader{owners: map[thole.Owner]bool{}, some: make(chan struct{}, 1)}
	unheard := d.db.Delivery().WatchOwners(func(o thole.Owner) {
		r.mu.Lock()
		r.owners[o] = true
		r.mu.Unlock()
		select {
		case r.some <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	changed, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.some:
			}
			r.mu.Lock()
			owners := r.owners
			r.owners = map[thole.Owner]bool{}
			r.mu.Unlock()
			if !d.reads(ctx, actor, owners) {
				continue
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return changed, func() { unheard(); cancel(); <-done }
}

// reads reports whether an actor may read the jobs of one of the owners.
func (d *deliveries) reads(ctx context.Context, actor thole.Actor, owners map[thole.Owner]bool) bool {
	if owners[thole.Owner{}] { // something was missed
		return true
	}
	scope, err := d.access(ctx, actor, authz.ViewThread)
	if err != nil {
		return false
	}
	for o := range owners {
		if scope.Sees(o) {
			return true
		}
	}
	return false
}
