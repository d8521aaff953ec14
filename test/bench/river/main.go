// Command river is the peer of the queue's benchmarks: River, tuned, on the
// database it is given. It is a module of its own, so that thole's does not depend
// on River. It reads one request a line, "throughput N" or "latency N", and
// answers with jobs per second, or the median time from insert to start in
// microseconds.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type turn struct{}

func (turn) Kind() string { return "turn" }

type worker struct {
	river.WorkerDefaults[turn]
	begun atomic.Int64
	start chan time.Time
}

func (w *worker) Work(context.Context, *river.Job[turn]) error {
	w.begun.Add(1)
	select {
	case w.start <- time.Now():
	default:
	}
	return nil
}

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var what string
		var n int
		if _, err := fmt.Sscan(in.Text(), &what, &n); err != nil {
			return err
		}
		measure := throughput
		if what == "latency" {
			measure = latency
		}
		figure, err := measure(ctx, driver, n)
		if err != nil {
			return err
		}
		fmt.Println(figure)
	}
	return in.Err()
}

// client is River as its own bench tunes it: it fetches as soon as it may.
func client(driver *riverpgxv5.Driver) (*river.Client[pgx.Tx], *worker, error) {
	w := &worker{start: make(chan time.Time, 1)}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	c, err := river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: river.QueueNumWorkersMax}},
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: 20 * time.Millisecond, Workers: workers,
	})
	return c, w, err
}

// throughput works off n jobs that wait; its clock ends when the last is
// completed in the database.
func throughput(ctx context.Context, driver *riverpgxv5.Driver, n int) (float64, error) {
	c, _, err := client(driver)
	if err != nil {
		return 0, err
	}
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = turn{}
	}
	if _, err := c.InsertManyFast(ctx, jobs); err != nil {
		return 0, err
	}
	done, cancel := c.SubscribeConfig(&river.SubscribeConfig{ChanSize: n, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	begun := time.Now()
	if err := c.Start(ctx); err != nil {
		return 0, err
	}
	for range n {
		<-done
	}
	took := time.Since(begun)
	return float64(n) / took.Seconds(), c.Stop(ctx)
}

func latency(ctx context.Context, driver *riverpgxv5.Driver, n int) (float64, error) {
	c, w, err := client(driver)
	if err != nil {
		return 0, err
	}
	done, cancel := c.Subscribe(river.EventKindJobCompleted)
	defer cancel()
	if err := c.Start(ctx); err != nil {
		return 0, err
	}
	var took []float64
	for range n {
		begun := time.Now()
		if _, err := c.Insert(ctx, turn{}, nil); err != nil {
			return 0, err
		}
		took = append(took, float64((<-w.start).Sub(begun).Microseconds()))
		<-done
	}
	slices.Sort(took)
	return took[len(took)/2], c.Stop(ctx)
}
