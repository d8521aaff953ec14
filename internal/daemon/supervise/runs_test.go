package supervise

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
)

// site is a home whose jobs began an hour ago.
type site struct {
	*testing.T
	home    string
	machine *delivery.Machine
	runs    *Runs
	db      *store.DB
	store   delivery.Store
	then    time.Time
}

func newSite(t *testing.T) *site {
	s := &site{T: t, home: t.TempDir(), then: time.Now().Add(-time.Hour).Truncate(time.Millisecond)}
	db := storetest.SQLite(t, storetest.Clock(func() time.Time { return s.then }))
	s.db, s.store = db, db.Delivery()
	s.machine = delivery.New(delivery.Config{Store: s.store, Limits: delivery.DefaultLimits()})
	keeper, err := artifact.New(artifact.Config{Dir: filepath.Join(s.home, "artifacts"), Store: db.Artifacts()})
	s.ok(err)
	s.runs, err = NewRuns(s.home, s.machine, keeper, sqldb.OutcomeUnknown)
	s.ok(err)
	return s
}

func (s *site) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// jobs records n running supervised jobs, in the order of their ids, in one
// transaction: what is tested is how they are read.
func (s *site) jobs(n int) (ids []thole.JobID) {
	s.Helper()
	first, _, err := s.machine.Submit(context.Background(), thole.LocalActor, delivery.Submit{
		ID: thole.NewID[thole.JobID](s.then), Owner: thole.DefaultOwner, Target: thole.TargetThole, Supervised: true,
		Address: delivery.Address{User: thole.LocalUser, Thread: "t"},
	})
	s.ok(err)
	ids = append(ids, first.ID)
	s.ok(s.store.Update(context.Background(), "test.jobs", func(tx delivery.Tx) error {
		for i := 1; i < n; i++ {
			j := first
			j.ID = thole.NewID[thole.JobID](s.then.Add(time.Duration(i) * time.Millisecond))
			if err := tx.InsertJob(&j); err != nil {
				return err
			}
			ids = append(ids, j.ID)
		}
		return nil
	}))
	return ids
}

// file writes a file of a job as it was an hour ago.
func (s *site) file(job thole.JobID, suffix string, content any) {
	s.Helper()
	body, ok := content.(string)
	if !ok {
		b, err := json.Marshal(content)
		s.ok(err)
		body = string(b)
	}
	name := file(s.home, job, suffix)
	s.ok(os.WriteFile(name, []byte(body), 0o600))
	s.ok(os.Chtimes(name, s.then, s.then))
}

// gone is a supervisor that is not there any more.
var gone = procid.Identity{PID: 1, Boot: "another", Start: "1"}

// However many jobs run, each gets the result that its supervisor left.
func TestSweepOfMoreJobsThanAList(t *testing.T) {
	s := newSite(t)
	ids := s.jobs(1003)
	for i, id := range ids {
		if i < 1000 {
			s.file(id, ".json", procid.Self()) // at work
			continue
		}
		s.file(id, ".json", gone)
		s.file(id, ".out", "the output")
		s.file(id, ".result", Result{State: thole.JobReady, Summary: "done " + string(id)})
	}
	s.ok(s.runs.Sweep(t.Context()))
	for i, id := range ids {
		j, _, err := s.machine.Job(t.Context(), thole.LocalActor, id)
		s.ok(err)
		switch {
		case i < 1000 && j.State != thole.JobRunning:
			t.Fatalf("job %d is at work and became %s: %s", i, j.State, j.ResultSummary)
		case i >= 1000 && (j.State != thole.JobReady || j.ResultSummary != "done "+string(id) || j.Inline != "the output"):
			t.Errorf("job %d is %s: %q, output %q", i, j.State, j.ResultSummary, j.Inline)
		}
	}
}

// What a killed supervisor had set aside for the end is there for it on a full disk.
func TestSweepOnAFullDisk(t *testing.T) {
	s := newSite(t)
	if err := syscall.Mount("tmpfs", s.home, "tmpfs", 0, "mode=0700,size=4m"); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	defer func() { _ = syscall.Unmount(s.home, syscall.MNT_DETACH) }()
	keeper, err := artifact.New(artifact.Config{Dir: filepath.Join(s.home, "artifacts"), Store: s.db.Artifacts()})
	s.ok(err)
	s.runs, err = NewRuns(s.home, s.machine, keeper, sqldb.OutcomeUnknown)
	s.ok(err)
	id := s.jobs(1)[0]
	s.file(id, ".json", gone)
	s.ok(setAside(file(s.home, id, ".room")))
	if s.ok(os.WriteFile(file(s.home, id, ".out"), make([]byte, 1<<20), 0o600)); setAside(filepath.Join(s.home, "more")) != nil {
		t.Fatal("the disk is full too early")
	}
	for size := 1 << 20; size > 0; size /= 2 { // to the last byte
		f, err := os.OpenFile(filepath.Join(s.home, "filler"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		s.ok(err)
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		s.ok(f.Close())
	}
	s.ok(s.runs.Sweep(t.Context()))
	j, _, err := s.machine.Job(t.Context(), thole.LocalActor, id)
	s.ok(err)
	if j.State != thole.JobFailed || j.Artifact == "" {
		t.Errorf("it is %s with artifact %q: %s", j.State, j.Artifact, j.ResultSummary)
	}
	if left, _ := os.ReadDir(dirOf(s.home)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
