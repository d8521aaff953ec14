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
	name string
	log  *[]string
	err  error
}

func (p part) Start(context.Context) error {
	*p.log = append(*p.log, "+"+p.name)
	return p.err
}

func (p part) Stop(context.Context) error {
	*p.log = append(*p.log, "-"+p.name)
	return p.err
}

func TestReverseOrder(t *testing.T) {
	var log []string
	g := service.New(t.Context())
	for _, n := range []string{"a", "b", "c"} {
		if err := g.Start(n, part{n, &log, nil}); err != nil {
			t.Fatal(err)
		}
	}
	boom := errors.New("boom")
	if err := g.Start("d", part{"d", &log, boom}); !errors.Is(err, boom) || err.Error() != "start d: boom" {
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
	if err := g.Start("e", part{"e", &log, nil}); !errors.Is(err, service.ErrStopped) {
		t.Fatal(err)
	}
}

func TestStopGoesOnAfterAnError(t *testing.T) {
	var log []string
	g := service.New(t.Context())
	_ = g.Start("a", part{"a", &log, nil})
	l := service.NewLoop(func(accept, _ context.Context) error { <-accept.Done(); return errors.New("dirty") }, nil)
	_ = g.Start("loop", l)
	if err := g.Stop(t.Context()); err == nil || err.Error() != "stop loop: dirty" {
		t.Fatal(err)
	}
	if !slices.Equal(log, []string{"+a", "-a"}) {
		t.Fatal(log)
	}
}

// TestTwoContexts lets work go on after intake has ended, until the stop's
// deadline throws the kill switch.
func TestTwoContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := service.New(context.Background())
		begin := time.Now()
		var accepted, killed time.Duration
		l := service.NewLoop(func(accept, kill context.Context) error {
			<-accept.Done()
			accepted = time.Since(begin)
			if kill.Err() != nil {
				t.Error("killed at once")
			}
			<-kill.Done()
			killed = time.Since(begin)
			return context.Cause(kill)
		}, nil)
		if err := g.Start("work", l); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if accepted != time.Second || killed != 11*time.Second {
			t.Errorf("accept ended after %v, kill after %v", accepted, killed)
		}
	})
}

func TestFailIsHeard(t *testing.T) {
	g := service.New(t.Context())
	boom := errors.New("boom")
	l := service.NewLoop(func(_, _ context.Context) error { return boom }, func(err error) { g.Fail("loop", err) })
	if err := g.Start("loop", l); err != nil {
		t.Fatal(err)
	}
	if err := <-g.Failed(); !errors.Is(err, boom) || err.Error() != "loop: boom" {
		t.Fatal(err)
	}
	g.Fail("other", boom) // a second report is not waited for
	g.Fail("other", boom)
	if err := g.Stop(t.Context()); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if l.Start(t.Context()) == nil {
		t.Fatal("a loop started twice")
	}
	if service.NewLoop(nil, nil).Stop(t.Context()) != nil {
		t.Fatal("stopping what never started")
	}
}
