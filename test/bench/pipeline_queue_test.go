//go:build linux

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
)

var queueLimits = queue.Limits{Total: 64, PerUser: 32}

func openQueue(t *testing.T, dsn string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), sqldb.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waiting fills a queue with n turns of as many threads.
func waiting(t *testing.T, db *store.DB, n int) {
	t.Helper()
	items := make([]queue.Item, 0, 1000)
	for i := range n {
		now := time.Now()
		items = append(items, queue.Item{Turn: thole.NewID[thole.TurnID](now), Thread: thole.NewID[thole.ThreadID](now), User: "u"})
		if len(items) == 1000 || i == n-1 {
			must(t, db.Queue().Enqueue(context.Background(), items...))
			items = items[:0]
		}
	}
}

// cycle claims one turn and gives it back, so that the number waiting stays.
func cycle(t *testing.T, q *store.Queue) {
	ctx := context.Background()
	leases, err := q.Claim(ctx, queue.Claim{Owner: "bench", Token: thole.NewID[string](time.Now()), Max: 1, Lease: time.Minute, Limits: queueLimits})
	must(t, err)
	if len(leases) != 1 {
		t.Fatalf("claimed %d", len(leases))
	}
	must(t, q.Release(ctx, leases[0].Turn, leases[0].Token, 0, ""))
}

func TestQueueClaimCost(t *testing.T) {
	many := 10_000
	if Long() {
		many = 100_000
	}
	few, full := openQueue(t, lab.Postgres(t)), openQueue(t, lab.Postgres(t))
	waiting(t, few, 100)
	waiting(t, full, many)
	// A server that runs has its statistics; a test's is too young.
	must(t, full.Update(context.Background(), "bench.analyze", func(tx *sqldb.Tx) error {
		_, err := tx.Exec("analyze turn_queue")
		return err
	}))
	side := func(db *store.DB) func() float64 {
		return func() float64 {
			var took []float64
			for range 40 {
				start := time.Now()
				cycle(t, db.Queue())
				took = append(took, float64(time.Since(start).Microseconds()))
			}
			return middle(took)
		}
	}
	Case{
		Name: fmt.Sprintf("queue: claim and release with %d turns waiting, p50", many), Unit: "µs", Peer: "ours with 100 waiting",
		Promise: 1.5, Loose: 4, Ours: side(full), Theirs: side(few),
		Note: "PostgreSQL, through queue.Store, serial order and both limits on.",
	}.Run(t)
}

// notified is the median time from a NOTIFY to its listener, alone or in one
// transaction with a row, after a pause each time.
func notified(t *testing.T, dsn string, row bool, pause time.Duration) func() float64 {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, dsn)
	must(t, err)
	t.Cleanup(pool.Close)
	listener, err := pgx.Connect(ctx, dsn)
	must(t, err)
	t.Cleanup(func() { listener.Close(ctx) })
	_, err = listener.Exec(ctx, "listen bare")
	must(t, err)
	_, err = pool.Exec(ctx, "create table if not exists bare_rows (id text primary key)")
	must(t, err)
	return func() float64 {
		var took []float64
		for range 30 {
			time.Sleep(pause)
			start := time.Now()
			b := &pgx.Batch{}
			if row {
				b.Queue("insert into bare_rows values ($1)", thole.NewID[string](start))
			}
			b.Queue("notify bare")
			must(t, pool.SendBatch(ctx, b).Close())
			_, err = listener.WaitForNotification(ctx)
			must(t, err)
			took = append(took, float64(time.Since(start).Microseconds()))
		}
		return middle(took)
	}
}

// startLatency is the median time from an enqueue in one process to the lease in
// another, after a pause each time.
func startLatency(t *testing.T, dsn string, pause time.Duration) func() float64 {
	giver, taker := openQueue(t, dsn), openQueue(t, dsn)
	ctx := context.Background()
	wake := make(chan struct{}, 1)
	t.Cleanup(taker.Queue().Subscribe(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}))
	return func() float64 {
		var took []float64
		for range 30 {
			time.Sleep(pause)
			now := time.Now()
			item := queue.Item{Turn: thole.NewID[thole.TurnID](now), Thread: thole.NewID[thole.ThreadID](now), User: "u"}
			must(t, giver.Queue().Enqueue(ctx, item))
			var lease queue.Lease
			for lease.Turn == "" {
				<-wake
				leases, err := taker.Queue().Claim(ctx, queue.Claim{Owner: "bench", Token: thole.NewID[string](now), Max: 1, Lease: time.Minute, Limits: queueLimits})
				must(t, err)
				if len(leases) > 0 {
					lease = leases[0]
				}
			}
			took = append(took, float64(time.Since(now).Microseconds()))
			must(t, taker.Queue().Complete(ctx, lease.Turn, lease.Token))
			<-wake // of the completion
		}
		return middle(took)
	}
}

func TestQueueEnqueueToStart(t *testing.T) {
	dsn := lab.Postgres(t)
	for _, c := range []struct {
		name, peer, note string
		row              bool
		pause            time.Duration
	}{
		{
			name: "p50", peer: "bare NOTIFY to its listener", pause: rest,
			note: "Each begins after 10 ms of rest: whoever starts a turn finds a server that does nothing. Ours is one round trip with a flush (the turn's row), the NOTIFY, and one round trip without (the lease), serial order and both limits on.",
		},
		{
			name: "without a rest", peer: "bare NOTIFY to its listener",
			note: "The peer writes nothing, and in its tight loop takes 30 to 200 µs, as the CPUs happen to stay awake or not; ours waits for a flush each time, in which they fall asleep.",
		},
		{
			name: "against a durable row", peer: "insert of one row and NOTIFY in one transaction, to its listener", row: true, pause: rest,
			note: "What nothing that keeps its work can do without. Of ours, the claim takes about two fifths: it counts against both limits, takes one row out of those that wait and changes it in four indexes.",
		},
	} {
		Case{
			Name: "queue: enqueue in one process to start in another, " + c.name, Unit: "µs", Peer: c.peer, Note: c.note,
			Promise: 7, Loose: 20, Ours: startLatency(t, dsn, c.pause), Theirs: notified(t, dsn, c.row, c.pause),
		}.Run(t)
	}
}

// workOff completes n turns of as many threads that wait: one loop claims, a
// goroutine completes each turn.
func workOff(t *testing.T, db *store.DB, n int) float64 {
	ctx := context.Background()
	waiting(t, db, n)
	limits := queue.Limits{Total: 10_000, PerUser: 10_000} // as many as River's workers
	start := time.Now()
	var wg sync.WaitGroup
	for left := n; left > 0; {
		leases, err := db.Queue().Claim(ctx, queue.Claim{Owner: "bench", Token: thole.NewID[string](start), Max: min(left, 512), Lease: time.Minute, Limits: limits})
		must(t, err)
		left -= len(leases)
		for _, l := range leases {
			wg.Go(func() {
				if err := db.Queue().Complete(ctx, l.Turn, l.Token); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// TestQueueThroughput compares with the least a claim loop can do on the same
// database: no order, no limits, no fence, the same batch.
func TestQueueThroughput(t *testing.T) {
	n := 1000
	if Long() {
		n = 5000
	}
	ctx := context.Background()
	db := openQueue(t, lab.Postgres(t))
	pool, err := pgxpool.New(ctx, lab.Postgres(t))
	must(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(ctx, "create table bare (id bigserial primary key, state text not null default 'ready', at timestamptz not null default now())")
	must(t, err)
	_, err = pool.Exec(ctx, "create index bare_ready on bare (id) where state = 'ready'")
	must(t, err)
	theirs := func() float64 {
		_, err := pool.Exec(ctx, "insert into bare (state) select 'ready' from generate_series(1, $1)", n)
		must(t, err)
		start := time.Now()
		for left := n; left > 0; {
			rows, err := pool.Query(ctx, `update bare set state = 'running' where id in
				(select id from bare where state = 'ready' order by id limit 512 for update skip locked) returning id`)
			must(t, err)
			ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			must(t, err)
			_, err = pool.Exec(ctx, "update bare set state = 'done' where id = any($1) and state = 'running'", ids)
			must(t, err)
			left -= len(ids)
		}
		return float64(n) / time.Since(start).Seconds()
	}
	Case{
		Name: "queue: turns claimed and completed", Unit: "turns/s", Peer: "bare pgx SKIP LOCKED loop, 512 at a time", AtLeast: true,
		Promise: 0.4, Loose: 0.02, Ours: func() float64 { return workOff(t, db, n) }, Theirs: theirs,
		Note: "Ours keeps serial order per thread, limits and fencing tokens and completes each turn by a call of its own, which share transactions; the peer keeps nothing and completes a batch by one statement.",
	}.Run(t)
}

// peer is River in a process of its own; see the folder river.
type peer struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func river(t *testing.T, dsn string) *peer {
	if !Long() {
		t.Skip("River is measured for the record only; THOLE_BENCH=1")
	}
	binary := filepath.Join(t.TempDir(), "river")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "river"
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("River cannot be built here: %v\n%s", err, out)
	}
	cmd := exec.Command(binary, dsn)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = t.Output()
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &peer{t, in, bufio.NewReader(out)}
}

func (p *peer) ask(what string, n int) func() float64 {
	return func() (figure float64) {
		_, err := fmt.Fprintln(p.in, what, n)
		must(p.t, err)
		_, err = fmt.Fscan(p.out, &figure)
		must(p.t, err)
		return figure
	}
}

func TestQueueAgainstRiver(t *testing.T) {
	const n = 5000
	theirs := river(t, lab.Postgres(t))
	dsn := lab.Postgres(t)
	db := openQueue(t, dsn)
	Case{
		Name: "queue: throughput against River", Unit: "turns/s", Peer: "River 0.50.0, 10,000 workers, fetch cooldown 1 ms", AtLeast: true, Promise: 1,
		Ours: func() float64 { return workOff(t, db, n) }, Theirs: theirs.ask("throughput", n),
		Note: "5,000 turns of as many threads against 5,000 jobs that wait, until the last is completed in the database. Serial order and both limits are on; River has no order.",
	}.Run(t)
	Case{
		Name: "queue: enqueue to start against River, p50", Unit: "µs", Peer: "River 0.50.0, fetch cooldown 1 ms", Promise: 0.4,
		Ours: startLatency(t, dsn, 0), Theirs: theirs.ask("latency", 30),
		Note: "Two processes' worth of connections on both sides; promised is 2.5 times better. Both wait for one flush; River for a second one with its fetch. It follows the throughput row on the same tables, with 35,000 turns just worked off and no vacuum yet. Plans made for another size of the table, and bitmap scans over the dead entries of the leases, took 3 to 7 ms there; claims now keep to look-ups by index. Held narrowly: runs on a quiet machine gave 0.36 to 0.40.",
	}.Run(t)
}
