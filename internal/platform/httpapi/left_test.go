package httpapi_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/thread"
)

// slowList lists until its asker leaves.
type slowList struct {
	thread.Service
	asked chan struct{}
}

func (s slowList) List(ctx context.Context, _ thole.Actor, _ thread.Filter) (thread.Page[fold.Thread], error) {
	close(s.asked)
	<-ctx.Done()
	return thread.Page[fold.Thread]{}, fmt.Errorf("list threads: %w", ctx.Err())
}

type logged struct {
	slog.Handler
	all chan slog.Record
}

func (l logged) Enabled(context.Context, slog.Level) bool { return true }

func (l logged) Handle(_ context.Context, r slog.Record) error {
	l.all <- r
	return nil
}

// TestClientLeft: a client that goes before its answer or in the middle of a stream
// is no error in the log.
func TestClientLeft(t *testing.T) {
	asked, log := make(chan struct{}), logged{slog.DiscardHandler, make(chan slog.Record, 100)}
	g := newRig(t, func(c *httpapi.Config) {
		c.Threads, c.Log = slowList{c.Threads, asked}, slog.New(log)
	})
	id := g.me.session(nil)
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say one ;; hang"}, nil)
	s.until(ofType("run.started"))
	_ = s.res.Body.Close()

	wait, leave := context.WithCancel(ctx)
	go func() { <-asked; leave() }()
	if res, err := http.DefaultClient.Do(g.me.request("GET", "/sessions", nil).WithContext(wait)); err == nil {
		_ = res.Body.Close()
		t.Fatal("it was answered")
	}
	for {
		r := <-log.all
		if r.Level >= slog.LevelWarn {
			t.Fatalf("logged as %s: %s", r.Level, r.Message)
		}
		if r.Message == "request given up by its client" {
			return
		}
	}
}
