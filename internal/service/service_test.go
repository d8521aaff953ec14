package service_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tholehq/thole/internal/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type part struct {
	name        string
	log         *[]string
	start, stop error
}

func (p part) Start(context.Context) error {
	*p.log = append(*p.log, "+"+p.name)
	return p.start
}

func (p part) Stop(context.Context) error {
	*p.log = append(*p.log, "-"+p.name)
	return p.stop
}

func TestReverseOrder(t *testing.T) {
	var log []string
	g := service.New(t.Context())
	for _, n := range []string{"a", "b", "c"} {
		if err := g.Start(n, part{name: n, log: &log}); err != nil {
			t.Fatal(err)
		}
	}
	boom := errors.New("boom")
	if err := g.Start("d", part{name: "d", log: &log, start: boom}); !errors.Is(err, boom) || err.Error() != "start d: boom" {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"+a", "+b", "+c", "+d", "-c", "-b", "-a"}; !slices.Equal(log, want) {
		t.Fatal(log)
	}
	if err := g.Start("e", part{name: "e", log: &log}); !errors.Is(err, service.ErrStopped) {
		t.Fatal(err)
	}
}

func TestStopGoesOnAfterAnError(t *testing.T) {
	var log []string
	g := service.New(t.Context())
	_ = g.Start("a", part{name: "a", log: &log})
	_ = g.Start("b", part{name: "b", log: &log, stop: errors.New("dirty")})
	if err := g.Stop(t.Context()); err == nil || err.Error() != "stop b: dirty" {
		t.Fatal(err)
	}
	if !slices.Equal(log, []string{"+a", "+b", "-b", "-a"}) {
		t.Fatal(log)
	}
}

// worker is a part whose Stop waits for work that only the kill switch ends.
type worker struct {
	kill    context.Context
	stopped func()
}

func (w *worker) Start(ctx context.Context) error { w.kill = ctx; return nil }

func (w *worker) Stop(context.Context) error {
	w.stopped()
	<-w.kill.Done()
	return context.Cause(w.kill)
}

// TestTwoContexts lets work go on after intake has ended, until the stop's
// deadline throws the kill switch.
func TestTwoContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := service.New(context.Background())
		begin := time.Now()
		var accepted time.Duration
		w := &worker{}
		w.stopped = func() {
			if accepted = time.Since(begin); w.kill.Err() != nil {
				t.Error("killed at once")
			}
		}
		if err := g.Start("work", w); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if killed := time.Since(begin); accepted != time.Second || killed != 11*time.Second {
			t.Errorf("accept ended after %v, kill after %v", accepted, killed)
		}
	})
}
