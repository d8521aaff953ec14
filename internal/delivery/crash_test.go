package delivery_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
)

// site is a store in a directory, with a host of threads that is a file: every
// delivery the host took is a line "batch marker".
type site struct {
	dir string
	db  *store.DB
	m   *delivery.Machine
	ids int
}

func openSite(dir string, hook sqldb.Hook) (*site, error) {
	db, err := storetest.OpenAt(context.Background(), sqldb.Config{Path: filepath.Join(dir, "thole.db"), Hook: hook})
	if err != nil {
		return nil, err
	}
	l := delivery.DefaultLimits()
	l.WaitWindow, l.MinInterval, l.RetryMin = 0, 0, 0
	return &site{dir: dir, db: db, m: delivery.New(delivery.Config{Store: db.Delivery(), Limits: l})}, nil
}

func (s *site) host() []string {
	b, _ := os.ReadFile(filepath.Join(s.dir, "host"))
	return strings.Fields(string(b))
}

// take is the host's side of a delivery.
func (s *site) take(p delivery.Parcel) error {
	f, err := os.OpenFile(filepath.Join(s.dir, "host"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %s\n", p.Batch.ID, p.Attempt.RPC.Marker)
	return err
}

// deliver takes every ready batch through the barrier, the host and completion.
func (s *site) deliver() error {
	for {
		if _, err := s.m.Sweep(ctx); err != nil {
			return err
		}
		cs, err := s.m.Candidates(ctx, thole.TargetCLI, 1)
		if err != nil || len(cs) == 0 {
			return err
		}
		s.ids++
		marker := fmt.Sprintf("m%d-%d", os.Getpid(), s.ids)
		p, err := s.m.BeginAccept(ctx, actor, delivery.BeginAccept{
			LaneID: cs[0].Lane.ID, Batch: cs[0].Batch.ID, Kind: thole.ModeTurnStart, Request: marker, Marker: marker, Holder: "h", Lease: time.Minute,
		})
		if err != nil {
			return err
		}
		if err := s.take(p); err != nil {
			return err
		}
		if err := s.complete(p.Attempt.Fence()); err != nil {
			return err
		}
	}
}

func (s *site) complete(f delivery.Fence) error {
	if stale, err := s.m.Accept(ctx, actor, f, delivery.Acceptance{Turn: "t"}); err != nil || stale {
		return fmt.Errorf("accept: stale=%v %w", stale, err)
	}
	return s.observe(f)
}

func (s *site) observe(f delivery.Fence) error {
	for _, e := range []thole.TurnEvent{thole.TurnEventStarted, thole.TurnEventCompleted} {
		if stale, err := s.m.Observe(ctx, actor, f, delivery.Sighting{Turn: "t", Event: e}); err != nil || stale {
			return fmt.Errorf("observe: stale=%v %w", stale, err)
		}
	}
	return nil
}

func (s *site) submit(thread string, n int) (thole.JobID, error) {
	id := thole.JobID(fmt.Sprintf("00000000-0000-7000-8000-%012d", n))
	_, _, err := s.m.Submit(ctx, actor, delivery.Submit{ID: id, Owner: thole.DefaultOwner, Address: address(thread), Target: thole.TargetCLI})
	return id, err
}

// TestKillAtEveryStep kills the process before and after every commit of a whole
// life of deliveries. The next process proves what the host took by its marker:
// nothing acknowledged is lost, nothing is taken twice, nothing is stuck.
func TestKillAtEveryStep(t *testing.T) {
	crash.Enumerate(t, func(w *crash.Work) error {
		s, err := openSite(w.Dir, w.Hook)
		if err != nil {
			return err
		}
		defer s.db.Close()
		for n, thread := range []string{"a", "a", "b"} {
			id, err := s.submit(thread, n)
			if err != nil {
				return err
			}
			w.Ack("submitted " + string(id))
			if _, err := s.m.Finish(ctx, actor, delivery.Finish{Job: id, State: thole.JobReady, Request: "r", Summary: "done"}); err != nil {
				return err
			}
			w.Ack("finished " + string(id))
			if n == 1 {
				if err := s.deliver(); err != nil {
					return err
				}
			}
		}
		placed := thole.JobID("00000000-0000-7000-8000-000000000007")
		if _, _, err := s.m.Submit(ctx, actor, delivery.Submit{
			ID: placed, Owner: thole.DefaultOwner, Address: address("own"), Target: thole.TargetThole, Command: &delivery.Command{Argv: []string{"make"}},
		}); err != nil {
			return err
		}
		if err := s.m.Place(ctx, actor, placed, "x1"); err != nil {
			return err
		}
		w.Ack("placed " + string(placed))
		if id, err := s.submit("b", 9); err != nil {
			return err
		} else if _, err := s.m.Cancel(ctx, actor, id, "r", "no"); err != nil {
			return err
		}
		return s.deliver()
	}, func(t *testing.T, dir string, acked []string, killed string) {
		s, err := openSite(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.db.Close()
		live, err := s.m.Live(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range live {
			f := p.Attempt.Fence()
			switch {
			case p.Attempt.State == thole.AttemptCooldown:
				err = s.observe(f)
			case slices.Contains(s.host(), p.Attempt.RPC.Marker):
				err = s.complete(f)
			default:
				_, err = s.m.Reject(ctx, actor, f, "the host never took it", time.Millisecond)
				time.Sleep(2 * time.Millisecond) // the machine's own pause, in store time
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.deliver(); err != nil {
			t.Fatal(err)
		}
		for _, a := range acked {
			what, id, _ := strings.Cut(a, " ")
			j, b, err := s.m.Job(ctx, actor, thole.JobID(id))
			if err != nil {
				t.Fatalf("%s was acknowledged: %v", a, err)
			}
			if what == "placed" && j.Executor != "x1" {
				t.Errorf("%s is placed in %q", id, j.Executor)
			}
			if what == "finished" && (b == nil || b.CloseReason != thole.CloseDelivered) {
				t.Errorf("%s is %s and was not delivered: %+v", id, j.State, b)
			}
		}
		taken := map[string]int{}
		for i, word := range s.host() {
			if i%2 == 0 {
				taken[word]++
			}
		}
		for b, n := range taken {
			if n > 1 {
				t.Errorf("batch %s was taken %d times", b, n)
			}
		}
		found, err := s.db.CheckDelivery(ctx)
		if err != nil || len(found) > 0 {
			t.Errorf("%v %v", found, err)
		}
	})
}
