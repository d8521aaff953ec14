package ledger_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/ledger"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/testkit/upstream"
	"github.com/tholehq/thole/internal/thread"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

const turns, limit = 50, 3000

type uncounted struct{}

func (uncounted) Refused() {}
func (uncounted) Unknown() {}
func (uncounted) Differs() {}

// tokens gives each turn a token: its own id.
type tokens map[[32]byte]gateway.Claim

func (t tokens) Claim(_ context.Context, token, _ [32]byte) (gateway.Claim, error) {
	c, ok := t[token]
	if !ok {
		return c, thole.Errorf(thole.CodeUnauthorized, "unknown")
	}
	return c, nil
}

type routes struct{ base *url.URL }

func (r routes) Route(context.Context, gateway.Claim, string) (gateway.Route, error) {
	sign := func(context.Context, http.Header, bool) error { return nil }
	return gateway.Route{Dialect: gateway.Anthropic, Upstreams: []gateway.Upstream{{Name: "up", Base: r.base, Sign: sign}}}, nil
}

// Fifty turns call models through two gateways until each is refused: the budget is not
// passed by a token, and all that the upstream was asked for is in it.
func TestFiftyTurnsThroughTwoGateways(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		db := storetest.SQLite(t)
		run(t, db, db)
	})
	t.Run("postgres", func(t *testing.T) {
		lab.Postgres(t)
		var dsn string
		one := storetest.Postgres(t, func(c *sqldb.Config) { dsn = c.DSN })
		two, err := store.Open(ctx, sqldb.Config{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = two.Close() })
		run(t, one, two)
	})
}

func run(t *testing.T, stores ...*store.DB) {
	db := stores[0]
	model := upstream.Start(t, upstream.None)
	base, err := url.Parse(model.URL())
	if err != nil {
		t.Fatal(err)
	}
	known, names := begin(t, db)
	day := budget.Budget{ID: "b", Scope: budget.ScopeUser, Period: budget.PeriodTotal, Tokens: limit, Action: budget.ActionInterrupt}
	if _, err := db.Budgets().Set(ctx, day, 0, thole.LocalActor, time.Now()); err != nil {
		t.Fatal(err)
	}
	var clients []*http.Client
	for _, s := range stores {
		books := budget.NewLedger(s.Budgets(), price.Default, thole.NewID[string], uncounted{}, slog.New(slog.DiscardHandler))
		clients = append(clients, serve(t, gateway.New(gateway.Config{Tokens: known, Routes: routes{base}, Ledger: ledger.Of(books)})))
	}
	var all sync.WaitGroup
	var answered atomic.Int64
	for i, name := range names {
		all.Go(func() {
			for {
				status, body := post(t, clients[i%len(clients)], name)
				if status != 200 {
					if status != 400 || !strings.Contains(body, "budget") {
						t.Errorf("%d %s", status, body)
					}
					return
				}
				answered.Add(1)
			}
		})
	}
	all.Wait()
	var got budget.State
	poll.Until(t, "the last settlement", func() bool { // a client has its answer before that
		states, err := db.Budgets().States(ctx, budget.Budget{ID: "b", Scope: budget.ScopeUser, Subject: string(thole.LocalUser), Period: budget.PeriodTotal}, time.Now(), 1)
		if err != nil {
			t.Fatal(err)
		}
		got = states[0]
		return got.Reserved.Tokens == 0
	})
	each := upstream.Usage.Input + upstream.Usage.Output + upstream.Usage.CacheRead
	if got.Spent.Tokens != answered.Load()*each || got.Spent.Tokens > limit || answered.Load() == 0 {
		t.Errorf("%d calls of %d tokens were answered, and the budget of %d says %+v", answered.Load(), each, limit, got)
	}
	if n := int64(len(model.Requests())); n != answered.Load() {
		t.Errorf("the model was asked %d times for %d answers", n, answered.Load())
	}
}

// begin starts a turn in each of fifty threads.
func begin(t *testing.T, db *store.DB) (known tokens, names []string) {
	m, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(ctx)
	known = tokens{}
	for i := range turns {
		th, err := m.Create(ctx, thole.LocalActor, thread.Create{Owner: thole.DefaultOwner})
		if err != nil {
			t.Fatal(err)
		}
		turn, err := m.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: th.ID, Input: thole.Text("x")})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("tgw_%d", i)
		known[sha256.Sum256([]byte(name))] = gateway.Claim{Thread: th.ID, Turn: turn.ID, Owner: thole.DefaultOwner, Provider: "p"}
		names = append(names, name)
	}
	return known, names
}

func serve(t *testing.T, g *gateway.Gateway) *http.Client {
	socket := filepath.Join(t.TempDir(), "g.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv, done := gateway.NewServer(g), make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(gateway.ListenProof(l)) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			_, err = io.WriteString(c, gateway.ProofLine("proof"))
		}
		return c, err
	}}
	t.Cleanup(func() { transport.CloseIdleConnections(); _ = srv.Close(); <-done; g.Close() })
	return &http.Client{Transport: transport}
}

func post(t *testing.T, c *http.Client, token string) (status int, body string) {
	q, err := http.NewRequest(http.MethodPost, "http://gw/r/v1/messages", strings.NewReader(`{"model":"m-1","max_tokens":100,"messages":[]}`))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(q)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}
