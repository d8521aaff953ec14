package artifact

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
)

const (
	// LeaseTime is how long one permission to read lasts.
	LeaseTime = 10 * time.Minute
	// ChunkMax is the largest piece one read returns.
	ChunkMax = 1 << 20
	// orphanAge keeps a copy whose job has not committed yet from being swept.
	orphanAge = time.Hour
	sweepPage = 100
)

// Lease permits one user to read one artifact until a deadline.
type Lease struct {
	ID       string
	Artifact thole.ArtifactID
	User     thole.UserID
	Deadline time.Time
	Revoked  time.Time
}

// Store keeps records and leases. Every method is one durable step.
type Store interface {
	// Now is the store's time.
	Now(ctx context.Context) (time.Time, error)
	// Artifact returns nil when there is none.
	Artifact(ctx context.Context, id thole.ArtifactID) (*Record, error)
	// Free lists artifacts that are not held and past the retention at now.
	Free(ctx context.Context, k Retention, now time.Time, limit int) ([]Record, error)
	// RemoveIfFree marks an artifact removed if it still is not held and past its
	// retention; false if it is not.
	RemoveIfFree(ctx context.Context, id thole.ArtifactID, k Retention, now time.Time) (bool, error)
	// PinIfKept keeps an artifact that is not removed at least until a time, never for
	// less than it is kept already, and returns its record; nil if it is removed.
	PinIfKept(ctx context.Context, id thole.ArtifactID, until time.Time) (*Record, error)
	InsertLease(ctx context.Context, l Lease) error
	Lease(ctx context.Context, id string) (*Lease, error)
	// RevokeLeaseIfOwned ends a lease of the user; repeating it changes nothing. false if
	// the user has no such lease.
	RevokeLeaseIfOwned(ctx context.Context, id string, user thole.UserID) (bool, error)
	// DropLeases removes leases whose deadline is before now.
	DropLeases(ctx context.Context, now time.Time) error
}

// Get returns a record of the actor.
func (k *Keeper) Get(ctx context.Context, actor thole.Actor, id thole.ArtifactID) (Record, error) {
	r, err := k.store.Artifact(ctx, id)
	if err != nil {
		return Record{}, err
	}
	if r == nil || r.Owner.User != actor.User {
		return Record{}, thole.Errorf(thole.CodeNotFound, "no artifact %s", id)
	}
	return *r, nil
}

// Lease proves the artifact whole and permits reading it in chunks for a while.
func (k *Keeper) Lease(ctx context.Context, actor thole.Actor, id thole.ArtifactID) (Lease, Record, error) {
	r, err := k.Get(ctx, actor, id)
	if err != nil {
		return Lease{}, Record{}, err
	}
	if err := k.Verify(r); err != nil {
		return Lease{}, Record{}, err
	}
	now, err := k.store.Now(ctx)
	if err != nil {
		return Lease{}, Record{}, err
	}
	l := Lease{ID: k.newID(now), Artifact: id, User: actor.User, Deadline: now.Add(LeaseTime)}
	return l, r, k.store.InsertLease(ctx, l)
}

// Read returns up to limit bytes from offset, and whether they are the last.
func (k *Keeper) Read(ctx context.Context, actor thole.Actor, lease string, offset int64, limit int) ([]byte, bool, error) {
	l, err := k.store.Lease(ctx, lease)
	if err != nil {
		return nil, false, err
	}
	now, err := k.store.Now(ctx)
	if err != nil {
		return nil, false, err
	}
	if l == nil || l.User != actor.User {
		return nil, false, thole.Errorf(thole.CodeNotFound, "no such artifact lease")
	}
	if !l.Revoked.IsZero() || now.After(l.Deadline) {
		return nil, false, thole.Errorf(thole.CodeGone, "the artifact lease ended").WithHint("take a new one: thole artifact read --artifact-id %s", l.Artifact)
	}
	r, err := k.Get(ctx, actor, l.Artifact)
	if err != nil {
		return nil, false, err
	}
	f, err := k.open(r)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if offset < 0 || offset > r.Size {
		return nil, false, thole.Errorf(thole.CodeInvalid, "offset %d is outside the artifact of %d bytes", offset, r.Size)
	}
	if limit <= 0 || limit > ChunkMax {
		limit = ChunkMax
	}
	buf := make([]byte, min(int64(limit), r.Size-offset))
	if _, err := f.ReadAt(buf, offset); err != nil && err != io.EOF {
		return nil, false, storeError(err)
	}
	return buf, offset+int64(len(buf)) == r.Size, nil
}

// Revoke ends a lease of the actor before its deadline. Repeating it changes nothing.
func (k *Keeper) Revoke(ctx context.Context, actor thole.Actor, lease string) error {
	ok, err := k.store.RevokeLeaseIfOwned(ctx, lease, actor.User)
	if err == nil && !ok {
		return thole.Errorf(thole.CodeNotFound, "no such artifact lease").WithHint("a lease that ended more than a sweep ago is forgotten, and reads nothing")
	}
	return err
}

// Pin keeps an artifact at least until a time, for an operator. A pin only grows: the
// record says until when the artifact is kept.
func (k *Keeper) Pin(ctx context.Context, actor thole.Actor, id thole.ArtifactID, until time.Time) (Record, error) {
	if _, err := k.Get(ctx, actor, id); err != nil {
		return Record{}, err
	}
	r, err := k.store.PinIfKept(ctx, id, until)
	switch {
	case err != nil:
		return Record{}, err
	case r == nil:
		return Record{}, thole.Errorf(thole.CodeGone, "artifact %s was already removed", id)
	}
	return *r, nil
}

// Retention returns how long artifacts are kept at least.
func (k *Keeper) Retention() Retention { return k.keep }

// Sweep removes what retention lets go and copies that no job ever took. It may
// run at any time, twice, and concurrently with readers: an open file outlives its name.
func (k *Keeper) Sweep(ctx context.Context) (removed int, err error) {
	now, err := k.store.Now(ctx)
	if err != nil {
		return 0, err
	}
	for {
		free, err := k.store.Free(ctx, k.keep, now, sweepPage)
		if err != nil {
			return removed, err
		}
		for _, r := range free {
			ok, err := k.store.RemoveIfFree(ctx, r.ID, k.keep, now)
			if err != nil {
				return removed, err
			}
			if ok { // the row first: a crash leaves a file without a row, never the reverse
				k.Discard(r)
				removed++
			}
		}
		if len(free) < sweepPage {
			break
		}
	}
	if err := k.store.DropLeases(ctx, now); err != nil {
		return removed, err
	}
	return removed, k.sweepOrphans(ctx, now)
}

func (k *Keeper) sweepOrphans(ctx context.Context, now time.Time) error {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return storeError(err)
	}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || fi.IsDir() || now.Sub(fi.ModTime()) < orphanAge {
			continue
		}
		id, _, ok := strings.Cut(strings.TrimPrefix(e.Name(), "."), ".")
		if !ok || !thole.ValidUUID(id) {
			continue
		}
		if !strings.HasPrefix(e.Name(), ".") {
			r, err := k.store.Artifact(ctx, thole.ArtifactID(id))
			if err != nil {
				return err
			}
			if r != nil && r.RemovedAt.IsZero() {
				continue
			}
		}
		_ = k.disk.Remove(filepath.Join(k.dir, e.Name()))
	}
	return nil
}
