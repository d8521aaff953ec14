package dispatch_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
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
