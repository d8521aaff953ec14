package artifact_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
)

const crashContent = "the whole result"

// stage is a home with two closed results, "free" and "pinned", and a clock that
// begins after their files were written.
type stage struct {
	db  *store.DB
	m   *delivery.Machine
	k   *artifact.Keeper
	dir string
	now time.Time
	ids int
}

func openStage(dir string, hook sqldb.Hook) (*stage, error) {
	s := &stage{dir: filepath.Join(dir, "artifacts"), now: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	var err error
	s.db, err = storetest.OpenAt(ctx, sqldb.Config{Path: filepath.Join(dir, "thole.db"), Hook: hook, Now: func() time.Time { return s.now }})
	if err != nil {
		return nil, err
	}
	l := delivery.DefaultLimits()
	l.WaitWindow = 0
	s.m = delivery.New(delivery.Config{Store: s.db.Delivery(), Limits: l, NewID: s.id})
	s.k, err = artifact.New(artifact.Config{Dir: s.dir, Store: s.db.Artifacts(), NewID: s.id})
	return s, err
}

func (s *stage) id(time.Time) string {
	s.ids++
	return fmt.Sprintf("00000000-0000-7000-8000-%012d", s.ids)
}

func (s *stage) Close() error { return s.db.Close() }

func (s *stage) State() (string, error) { return crash.Rows(s.db, "artifacts", "artifact_leases") }

// complete ends a job with a result and closes its batch.
func (s *stage) complete(thread string) error {
	job, to := thole.JobID(s.id(s.now)), delivery.Address{User: thole.LocalUser, Thread: thole.ThreadID(thread)}
	_, _, err := s.m.Submit(ctx, thole.LocalActor, delivery.Submit{ID: job, Owner: thole.DefaultOwner, Target: thole.TargetThole, Address: to})
	if err != nil {
		return err
	}
	in, err := s.k.IngestReader(ctx, strings.NewReader(crashContent), thread, job, thole.DefaultOwner, s.now)
	if err != nil {
		return err
	}
	if _, err = s.m.Finish(ctx, thole.LocalActor, delivery.Finish{Job: job, State: thole.JobReady, Result: &in.Record, Inline: in.Inline}); err != nil {
		return err
	}
	_, err = s.m.CloseHead(ctx, thole.LocalActor, to.LaneID(), "", thole.CloseOperatorUnconfirmed)
	return err
}

// find returns the record of a result by the name it was handed in with.
func (s *stage) find(name string) (artifact.Record, error) {
	jobs, err := s.m.Jobs(ctx, thole.LocalActor, delivery.JobFilter{})
	if err != nil {
		return artifact.Record{}, err
	}
	for _, j := range jobs {
		if r, err := s.k.Get(ctx, thole.LocalActor, j.Artifact); err != nil || r.Name == name {
			return r, err
		}
	}
	return artifact.Record{}, fmt.Errorf("no artifact %s", name)
}

func (s *stage) Acts() []crash.Act {
	sweep := func() error { _, err := s.k.Sweep(ctx); return err }
	later := func(d time.Duration) func() error { return func() error { s.now = s.now.Add(d); return nil } }
	return []crash.Act{
		{Name: "pin", Set: func() error {
			if err := s.complete("free"); err != nil {
				return err
			}
			return s.complete("pinned")
		}, Do: func() error {
			r, err := s.find("pinned")
			if err != nil {
				return err
			}
			_, err = s.k.Pin(ctx, thole.LocalActor, r.ID, s.now.Add(1000*time.Hour))
			return err
		}},
		{Name: "lease", Do: func() error {
			r, err := s.find("free")
			if err != nil {
				return err
			}
			_, _, err = s.k.Lease(ctx, thole.LocalActor, r.ID)
			return err
		}},
		{Name: "revoke_lease", Do: func() error {
			id, err := s.lease()
			if err != nil {
				return err
			}
			return s.k.Revoke(ctx, thole.LocalActor, id)
		}},
		{Name: "drop_leases", Set: later(artifact.LeaseTime + time.Second), Do: sweep},
		{Name: "remove", Set: later(100 * time.Hour), Do: sweep},
	}
}

// TestKillAtEveryArtifactStep: a record that is not removed has its bytes
// whatever the kill hit, leases and pins that were given hold, and the next sweep
// finishes what the last one began.
func TestKillAtEveryArtifactStep(t *testing.T) {
	crash.Acts(t, openStage, func(t *testing.T, s *stage, done []string) {
		s.ids = 1000
		has := func(act string) bool { return slices.Contains(done, act) }
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		whole := func(name string) artifact.Record {
			t.Helper()
			r, err := s.find(name)
			ok(err)
			if r.RemovedAt.IsZero() {
				ok(s.k.Verify(r))
			}
			return r
		}
		free, pinned := whole("free"), whole("pinned")
		if removed := !free.RemovedAt.IsZero(); removed != has("remove") || !pinned.RemovedAt.IsZero() {
			t.Fatalf("after %v: free %+v, pinned %+v", done, free, pinned)
		}
		if has("revoke_lease") && !has("drop_leases") {
			lease, err := s.lease()
			ok(err)
			if _, _, err := s.k.Read(ctx, thole.LocalActor, lease, 0, 0); thole.CodeOf(err) != thole.CodeGone {
				t.Fatalf("a revoked lease: %v", err)
			}
		}
		if has("lease") && !has("revoke_lease") {
			lease, err := s.lease()
			ok(err)
			got, last, err := s.k.Read(ctx, thole.LocalActor, lease, 0, 0)
			if err != nil || !last || string(got) != crashContent {
				t.Fatalf("the lease reads %q, %v", got, err)
			}
			s.now = s.now.Add(artifact.LeaseTime + time.Second)
			if _, _, err := s.k.Read(ctx, thole.LocalActor, lease, 0, 0); thole.CodeOf(err) != thole.CodeGone {
				t.Fatalf("a lease after its time: %v", err)
			}
		}
		for range 2 {
			s.now = s.now.Add(200 * time.Hour)
			_, err := s.k.Sweep(ctx)
			ok(err)
			if left := whole("pinned"); left.RemovedAt.IsZero() != has("pin") {
				t.Fatalf("after %v and a sweep: %+v", done, left)
			}
		}
		files, err := os.ReadDir(s.dir)
		ok(err)
		want := 0
		if has("pin") {
			want = 2 // bytes and manifest
		}
		if len(files) != want {
			t.Fatalf("%d files are left of what retention let go, want %d: %v", len(files), want, files)
		}
		if rows, err := crash.Rows(s.db, "artifact_leases"); err != nil || strings.Contains(rows, "lease_id=") {
			t.Fatalf("leases are left: %s %v", rows, err)
		}
	})
}

// lease is the only one.
func (s *stage) lease() (id string, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error { return tx.QueryRow("select lease_id from artifact_leases").Scan(&id) })
	return id, err
}
