package delivery_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"pgregory.net/rapid"
)

// TestModel drives the machine and the model with the same random steps, stale
// calls, clock jumps and deaths of the process included, and compares them after
// every step. Each run is done twice and must leave the same trace.
func TestModel(t *testing.T) {
	fewest, steps, checks := 30, 60, "15"
	if os.Getenv("THOLE_SOAK") != "" {
		fewest, steps, checks = 200, 200, "10000"
	}
	if shm := "/dev/shm"; isDir(shm) { // nothing here depends on what a disk keeps
		t.Setenv("TMPDIR", shm)
	}
	set := func(t *testing.T, name, value string) { // unless the command line says otherwise
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			_ = f.Value.Set(value)
			t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
		}
	}
	set(t, "rapid.seed", strconv.FormatInt(time.Now().UnixNano(), 10))
	set(t, "rapid.nofailfile", "true") // the seed is enough
	t.Logf("-rapid.seed=%s", flag.Lookup("rapid.seed").Value)
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		if db.Engine() == "postgres" { // the same code on slower ground
			set(t, "rapid.checks", checks[:len(checks)-1])
		} else {
			set(t, "rapid.checks", checks)
		}
		rapid.Check(t, func(rt *rapid.T) {
			script := rapid.SliceOfN(rapid.Uint64(), fewest, steps).Draw(rt, "script")
			first := play(rt, db, script, true)
			if second := play(rt, db, script, false); first != second {
				rt.Fatalf("the same script left two traces:\n%s\nand:\n%s", first, second)
			}
		})
	})
}

func isDir(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.IsDir()
}

// player holds both sides and what the caller of a real machine would remember.
type player struct {
	*rig
	rt     *rapid.T
	m      *model
	bits   uint64
	fences map[string]delivery.Fence // newest per lane
	old    []delivery.Fence
	leases map[string]string
	jobIDs []thole.JobID
	back   bool // the clock went back: from here on only the rules are checked
	judge  bool // compare after every step
	trace  strings.Builder
}

// play returns the trace: what was done with which answer, and in the end every
// row, with the whole ledger.
func play(rt *rapid.T, db *store.DB, script []uint64, judge bool) string {
	wipe(rt, db)
	p := &player{judge: judge, rig: newRig(rt, db, testLimits()), rt: rt, fences: map[string]delivery.Fence{}, leases: map[string]string{}}
	p.m = newModel(testLimits(), p.c.Now())
	p.m.lanes["d"] = &mLane{name: "d", desktop: true, bound: thole.BindingBound}
	p.bind("d")
	for i, word := range script {
		p.bits = mixed(word + uint64(i))
		p.doom()
		what := p.step()
		p.compare(i, what)
	}
	p.store.in = -1
	p.finale()
	return p.trace.String() + p.dump()
}

func wipe(rt *rapid.T, db *store.DB) {
	err := db.Update(context.Background(), "test.wipe", func(tx *sqldb.Tx) error {
		for _, q := range []string{
			"delete from delivery_audit", "delete from delivery_attempts", "delete from delivery_batches", "delete from delivery_jobs",
			"delete from desktop_bindings", "update desktop_installation set read_transport = '', generation = 0, validated_at = 0, read_capability = 'unknown', artifact_capability = 'unknown', writeback_capability = 'unknown', version = 0",
			"delete from delivery_lanes", "update delivery_scopes set ready_cursor = 0, last_ticket = 0, revision = 0",
		} {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
}

// mixed spreads a word over all bits: generators prefer small numbers, and a step
// that is made of zeros would nearly always be the same one.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// pick takes the next choice out of the step's word.
func (p *player) pick(n int) int {
	v := int(p.bits % uint64(n))
	p.bits /= uint64(n)
	return v
}

func (p *player) lane() string { return []string{"a", "b", "c", "d"}[p.pick(4)] }

func targetOf(lane string) thole.Target {
	if lane == "d" {
		return thole.TargetDesktop
	}
	return thole.TargetCLI
}

var jumps = []time.Duration{
	0, time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 30 * time.Second, 50 * time.Second, 70 * time.Second,
	3 * time.Minute, 3*time.Minute + time.Millisecond, 4 * time.Minute, 10 * time.Minute,
}

func (p *player) step() string {
	if p.back {
		return p.blind()
	}
	switch p.pick(15) {
	case 0, 1:
		return p.stepSubmit()
	case 2, 3:
		return p.stepFinish()
	case 4:
		return p.stepCancel()
	case 5, 6:
		return p.stepBegin()
	case 7:
		return p.stepSettle()
	case 8:
		return p.stepObserve()
	case 9:
		return p.stepArm()
	case 10:
		if p.pick(3) == 0 {
			return p.stepHeartbeat()
		}
		return p.stepOperator()
	case 13:
		return p.stepEnqueue()
	case 11, 12:
		d := jumps[p.pick(len(jumps))]
		if p.pick(60) == 0 {
			d, p.back = -d, true
		}
		p.c.add(d)
		p.m.now = p.c.Now()
		return "clock " + d.String()
	default:
		for { // a sweep that was cut short anywhere is started again
			_, err := p.Sweep(ctx)
			if !errors.Is(err, errDied) {
				p.ok(err)
				break
			}
			p.restart()
		}
		p.m.sweep(p.seen)
		return "sweep"
	}
}

// compare reads the whole stored state and compares it with the model's.
func (p *player) compare(i int, what string) {
	fmt.Fprintf(&p.trace, "%d %s\n", i, what)
	if !p.judge {
		return
	}
	p.check()
	if p.back {
		return
	}
	got := p.text()
	if want := p.m.text(); got != want {
		p.rt.Fatalf("after step %d (%s):\nmachine:\n%s\nmodel:\n%s", i, what, got, want)
	}
}

// settleAll is what channels do in the end: whatever was sent is proven to be
// beyond proof, because its receiver is gone. Time alone must not have done it.
func (p *player) settleAll() {
	live, err := p.Live(ctx)
	p.ok(err)
	for _, c := range live {
		if c.Attempt.State == thole.AttemptAcceptPending {
			stale, err := p.Unknown(ctx, actor, c.Attempt.Fence(), "gone")
			p.ok(err)
			if stale {
				p.rt.Fatal("a live attempt cannot be settled")
			}
		}
	}
}

// finale lets time pass: whatever state the script left, every batch must end.
func (p *player) finale() {
	l := testLimits()
	for range 200 {
		open, err := p.Batches(ctx, actor, delivery.BatchFilter{Open: true})
		p.ok(err)
		if len(open) == 0 {
			break
		}
		p.c.add(l.Window)
		_, err = p.Sweep(ctx)
		p.ok(err)
		p.settleAll()
		if p.judge {
			p.check()
		}
	}
	open, err := p.Batches(ctx, actor, delivery.BatchFilter{Open: true})
	p.ok(err)
	if len(open) > 0 {
		p.rt.Fatalf("stuck for ever: %+v", open[0].Batch)
	}
}
