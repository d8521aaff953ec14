package dispatch_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store/storetest"
)

// asked is credentials of the gateway, and who asked for them.
type asked struct {
	mu sync.Mutex
	by []provider.For
}

func (a *asked) For(_ context.Context, who provider.For) (provider.Grant, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by = append(a.by, who)
	return provider.Grant{Gateway: true, Env: map[string]string{"OPENAI_BASE_URL": "http://" + provider.GatewayPlace + "/codex"}}, nil
}

// An executor that an earlier version started knows no way to the gateway. A turn that it
// runs goes on as it began; for the next one it is started again.
func TestOldExecutorsLearnTheWayToTheGateway(t *testing.T) {
	w, db := newWorld(t), storetest.SQLite(t)
	old := w.rig(t, db)
	id := old.thread()
	first := old.start(id, "sim: run echo kept > f ;; ask Go on? | yes ;; say went on")
	ask := old.until(id, kind(first, event.AskRequested))
	before, err := old.driver.Inspect(t.Context(), old.row(id).ID)
	if err != nil {
		t.Fatal(err)
	}
	old.halt() // its executor goes on

	creds := &asked{}
	next := w.rig(t, db, func(c *dispatch.Config) {
		c.Credentials = creds
		c.Driver = local.New(local.Config{Root: filepath.Join(w.root, "x"), Binary: binary, Gateway: filepath.Join(w.root, "gateway", "g.sock")})
	})
	if _, err := next.Answer(t.Context(), me, id, ask.Ask.ID, event.Answer{Answers: map[string][]string{ask.Ask.Questions[0].ID: {"yes"}}}); err != nil {
		t.Fatal(err)
	}
	if got := next.settled(id, first); got.Run != 0 || !strings.Contains(next.said(id, first), "went on") {
		t.Errorf("the turn that ran: %+v", got)
	}
	if now, err := next.driver.Inspect(t.Context(), next.row(id).ID); err != nil || now.Boot != before.Boot {
		t.Errorf("its executor was started again under it: %v %v", now, err)
	}

	second := next.start(id, "sim: run cat f; echo $OPENAI_BASE_URL")
	next.settled(id, second)
	if said := next.said(id, second); !strings.Contains(said, "kept\nhttp://127.0.0.1:") {
		t.Errorf("the next turn said %q", said)
	}
	now, err := next.driver.Inspect(t.Context(), next.row(id).ID)
	if err != nil || now.Boot == before.Boot || now.ID != before.ID || !now.Gateway {
		t.Errorf("the executor was not started again: %+v %v", now, err)
	}
	creds.mu.Lock()
	defer creds.mu.Unlock()
	last := creds.by[len(creds.by)-1]
	if last.Secret != now.Token || last.Thread != id || last.Executor != now.ID || last.Turn != second || last.Provider != "test" {
		t.Errorf("credentials were asked for by %+v", last)
	}
}

// aged is a driver whose executors an earlier version started, until they are stopped.
type aged struct {
	executor.Driver
	stopped atomic.Bool
}

func (d *aged) Inspect(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	info, err := d.Driver.Inspect(ctx, id)
	info.Old = info.Old || !d.stopped.Load()
	return info, err
}

func (d *aged) Stop(ctx context.Context, id thole.ExecutorID) error {
	d.stopped.Store(true)
	return d.Driver.Stop(ctx, id)
}

// An executor that an earlier version started refuses requests with members that it does
// not know: before the next turn it is started again, with its files, though it knows the
// gateway, or though there is none.
func TestExecutorsOfAnEarlierVersionAreStartedAgain(t *testing.T) {
	w, db := newWorld(t), storetest.SQLite(t)
	old := w.rig(t, db)
	id := old.thread()
	old.settled(id, old.start(id, "sim: run echo kept > f"))
	before, err := old.driver.Inspect(t.Context(), old.row(id).ID)
	if err != nil || before.Old {
		t.Fatalf("an executor of this version: %+v %v", before, err)
	}
	old.halt() // its executor goes on

	next := w.rig(t, db, func(c *dispatch.Config) { c.Driver = &aged{Driver: c.Driver} })
	second := next.start(id, "sim: run cat f")
	next.settled(id, second)
	if said := next.said(id, second); !strings.Contains(said, "kept") {
		t.Errorf("the next turn said %q", said)
	}
	if now, err := next.driver.Inspect(t.Context(), next.row(id).ID); err != nil || now.Boot == before.Boot || now.ID != before.ID {
		t.Errorf("the executor was not started again: %+v %v", now, err)
	}
}
