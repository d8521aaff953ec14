package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// fronted is a driver whose executords are reached through a test's proxy.
type fronted struct {
	*local.Driver
	url    string
	socket string
}

// front lets serve see every request before the executord does.
func front(t *testing.T, serve func(w http.ResponseWriter, r *http.Request, next http.Handler)) (*fronted, func(*dispatch.Config)) {
	d := &fronted{}
	dial := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.socket)
	}}
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "executord"})
	next.Transport, next.FlushInterval = dial, -1
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, next) }))
	t.Cleanup(func() { srv.Close(); dial.CloseIdleConnections() })
	d.url = srv.URL
	return d, func(c *dispatch.Config) {
		d.Driver = c.Driver.(*local.Driver)
		c.Driver = d
	}
}

func (d *fronted) Start(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	info, err := d.Driver.Start(ctx, id)
	d.socket, info.Endpoint = strings.TrimPrefix(info.Endpoint, "unix:"), d.url
	return info, err
}

// What is said while the agent cannot listen piles up, and is heard in order and
// once when it can again.
func TestSteersPileUp(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	var listens atomic.Bool
	_, through := front(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/steer" && !listens.Load() {
			refused.Add(1)
			w.WriteHeader(http.StatusConflict)
			fmt.Fprintf(w, `{"code":%q,"message":"not now"}`, thole.CodeConflict)
			return
		}
		next.ServeHTTP(w, r)
	})
	r := newWorld(t).rig(t, storetest.SQLite(t), through)
	id := r.thread()
	const many = 40
	turn := r.start(id, "sim: "+strings.Repeat("wait 10m ;; ", many)+"say done")
	want := "done\n"
	for i := range many {
		if _, err := r.Steer(context.Background(), me, thread.Steer{Thread: id, Expected: turn, Input: thole.Text(fmt.Sprintf("sim: say %d", i))}); err != nil {
			t.Fatal(err)
		}
		want += fmt.Sprintf("%d\n", i)
	}
	waitFor(t, func() bool { return refused.Load() > 2 })
	listens.Store(true)
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted {
		t.Fatalf("%+v", got)
	}
	if said := r.said(id, turn); said != want {
		t.Errorf("said %q, want %q", said, want)
	}
}

// An agent that takes neither a message nor an answer is interrupted all the same, and
// at once: it waits for nothing that the agent does not take.
func TestInterruptOvertakesASteer(t *testing.T) {
	t.Parallel()
	held := make(chan string, 4)
	_, through := front(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/steer" || r.URL.Path == "/human-loop/reply" {
			_, _ = io.Copy(io.Discard, r.Body) // or the end of the client is not seen
			held <- r.URL.Path
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(w, r)
	})
	r := newWorld(t).rig(t, storetest.SQLite(t), through)
	id := r.thread()
	turn := r.start(id, "sim: ask Go on? | yes ;; wait 10m")
	waitFor(t, func() bool {
		asks, err := r.Asks(context.Background(), me, id, true)
		return err == nil && len(asks) == 1
	})
	if _, err := r.Steer(context.Background(), me, thread.Steer{Thread: id, Expected: turn, Input: thole.Text("sim: say never heard")}); err != nil {
		t.Fatal(err)
	}
	asks, err := r.Asks(context.Background(), me, id, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Answer(context.Background(), me, id, asks[0].Ask.ID, event.Answer{Answers: map[string][]string{asks[0].Ask.Questions[0].ID: {"yes"}}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		<-held
	}
	if err := r.Interrupt(context.Background(), me, id, turn); err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeInterrupted {
		t.Fatalf("%+v", got)
	}
}
