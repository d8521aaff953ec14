package store_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// TestStandby: turns that come with their start keep order and limits, like those
// that are claimed, and belong to one worker.
func TestStandby(t *testing.T) {
	ctx := context.Background()
	db := storetest.SQLite(t)
	var came []queue.Lease
	limits := queue.Limits{Total: 2}
	stop := db.Queue().Standby(func() queue.Claim {
		return queue.Claim{Owner: "test", Token: thole.NewID[string](time.Now()), Max: 9, Lease: time.Hour, Limits: limits}
	}, func(leases []queue.Lease) { came = append(came, leases...) })
	m := newMachine(t, db)
	start := func(id thole.ThreadID) thole.TurnID {
		t.Helper()
		turn, err := m.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: id, Input: thole.Text("go")})
		if err != nil {
			t.Fatal(err)
		}
		return turn.ID
	}
	expect := func(want ...thole.TurnID) []queue.Lease {
		t.Helper()
		if !slices.Equal(turns(came), want) {
			t.Fatalf("%v came, not %v", turns(came), want)
		}
		got := came
		came = nil
		return got
	}
	a := start(newThread(t, m))
	first := expect(a)
	if first[0].Attempt != 1 || first[0].Kind != queue.Turn {
		t.Fatalf("leased as %+v", first[0])
	}
	if got := claim(t, db.Queue(), 9, time.Hour, queue.Limits{}); len(got) != 0 {
		t.Fatalf("leased a second time: %v", turns(got))
	}
	b := start(newThread(t, m))
	expect(b)

	// Both places are taken: the next two wait, and come in their order with the
	// start that follows once there is room.
	woken := make(chan struct{}, 9)
	defer db.Queue().Subscribe(func() { woken <- struct{}{} })()
	c := start(newThread(t, m))
	expect()
	if len(woken) != 1 {
		t.Error("nobody was told of a turn that waits")
	}
	if err := db.Queue().Complete(ctx, a, first[0].Token); err != nil {
		t.Fatal(err)
	}
	for len(woken) > 0 {
		<-woken
	}
	d := start(newThread(t, m))
	expect(c)
	if len(woken) != 1 {
		t.Error("nobody was told of a turn that waits behind another")
	}
	limits = queue.Limits{}
	for began := time.Now().UnixMilli(); time.Now().UnixMilli() == began; { // what begins within one millisecond has no order
		runtime.Gosched()
	}
	e := start(newThread(t, m))
	expect(d, e)

	// A start that fails leases nothing; one after the stop waits to be claimed.
	if _, err := m.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: thole.ThreadID(uuid(1)), Input: thole.Text("go")}); err == nil {
		t.Error("a thread that does not exist took a turn")
	}
	expect()
	stop()
	f := start(newThread(t, m))
	expect()
	if got := turns(claim(t, db.Queue(), 9, time.Hour, queue.Limits{})); !slices.Equal(got, []thole.TurnID{f}) {
		t.Errorf("claimed %v, not %v", got, f)
	}
}

// TestStandbyShared: where others share the store, turns are claimed.
func TestStandbyShared(t *testing.T) {
	db := storetest.Postgres(t)
	db.Queue().Standby(func() queue.Claim { panic("asked") }, func([]queue.Lease) { panic("given") })
	m := newMachine(t, db)
	turn, err := m.StartTurn(context.Background(), thole.LocalActor, thread.StartTurn{Thread: newThread(t, m), Input: thole.Text("go")})
	if err != nil {
		t.Fatal(err)
	}
	if got := turns(claim(t, db.Queue(), 9, time.Hour, queue.Limits{})); !slices.Equal(got, []thole.TurnID{turn.ID}) {
		t.Errorf("claimed %v", got)
	}
}

func newMachine(t *testing.T, db *store.DB) *thread.Machine {
	t.Helper()
	m, err := thread.New(thread.Config{Store: db.Threads()})
	if err == nil {
		err = m.Start(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

func newThread(t *testing.T, m *thread.Machine) thole.ThreadID {
	t.Helper()
	th, err := m.Create(t.Context(), thole.LocalActor, thread.Create{Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		t.Fatal(err)
	}
	return th.ID
}
