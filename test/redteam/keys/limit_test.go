//go:build linux

package keys

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/ledger"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/testkit/upstream"
	"github.com/tholehq/thole/internal/tholetest"
	threads "github.com/tholehq/thole/internal/thread"
)

// site is one of several servers on a database: a dispatcher and a gateway. Its
// executors share one proof, and the token of a thread is its id.
type site struct {
	*tholetest.Kit
	db      *store.DB
	gateway string // where agents find it
}

const siteProof = "the proof of a site"

// newSite starts a server whose gateway leads to one model.
func newSite(t *testing.T, db *store.DB, model *url.URL, more ...tholetest.Option) *site {
	t.Helper()
	s := &site{db: db}
	books := budget.NewLedger(db.Budgets(), price.Default, thole.NewID[string], uncounted{}, slog.New(slog.DiscardHandler))
	socket := filepath.Join(lab.Open(t), "g.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := gateway.NewServer(gateway.New(gateway.Config{Tokens: claims{db.GatewayTokens()}, Routes: oneModel{model}, Ledger: ledger.Of(books)}))
	go func() { _ = server.Serve(gateway.ListenProof(ln)) }()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go forward(front, socket)
	t.Cleanup(func() { front.Close(); server.Close() })
	s.gateway = front.Addr().String()
	s.Kit = tholetest.New(t, append(more, tholetest.DB(db), tholetest.Dispatch(func(c *dispatch.Config) {
		c.Owner, c.Budgets, c.Credentials = s.gateway, books, minting{db.GatewayTokens()}
	}))...)
	return s
}

// forward does what executord does for its agents.
func forward(front net.Listener, socket string) {
	for {
		in, err := front.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("unix", socket)
		if err == nil {
			_, err = io.WriteString(out, gateway.ProofLine(siteProof))
		}
		if err != nil {
			in.Close()
			continue
		}
		go func() { _, _ = io.Copy(out, in); out.Close() }()
		go func() { _, _ = io.Copy(in, out); in.Close() }()
	}
}

type uncounted struct{}

func (uncounted) Refused() {}
func (uncounted) Unknown() {}
func (uncounted) Differs() {}

type claims struct{ *store.GatewayTokens }

func (c claims) Claim(ctx context.Context, token, proof [32]byte) (gateway.Claim, error) {
	got, err := c.GatewayTokens.Claim(ctx, token, proof)
	return gateway.Claim(got), err
}

type oneModel struct{ base *url.URL }

func (m oneModel) Route(context.Context, gateway.Claim, string) (gateway.Route, error) {
	sign := func(context.Context, http.Header, bool) error { return nil }
	return gateway.Route{Dialect: gateway.Anthropic, Upstreams: []gateway.Upstream{{Name: "one", Base: m.base, Sign: sign}}}, nil
}

// minting gives the agent of each thread its token.
type minting struct{ tokens *store.GatewayTokens }

func (m minting) For(ctx context.Context, who provider.For) (provider.Grant, error) {
	return provider.Grant{}, m.tokens.Mint(ctx, store.GatewayToken{
		Token: sha256.Sum256([]byte(who.Thread)), Proof: sha256.Sum256([]byte(siteProof)), Executor: who.Executor, Thread: who.Thread, Provider: who.Provider,
	})
}

// Many turns on two servers call a model until a budget of their user stops them. The
// model never works for more than the budget has, and every turn says what ended it.
func TestTurnsSpendNoMoreThanTheirBudget(t *testing.T) {
	turns, limit := 16, int64(5000)
	if os.Getenv("THOLE_SOAK") != "" {
		turns = 50
	}
	model := upstream.Start(t, upstream.None)
	at, err := url.Parse(model.URL())
	if err != nil {
		t.Fatal(err)
	}
	lab.Postgres(t)
	var dsn string
	first := storetest.Postgres(t, func(c *sqldb.Config) { dsn = c.DSN })
	second, err := store.Open(t.Context(), sqldb.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	one := newSite(t, first, at)
	two := newSite(t, second, at, tholetest.Peer(one.Kit))
	set, err := first.Budgets().Set(t.Context(), budget.Budget{ID: "b", Scope: budget.ScopeUser, Period: budget.PeriodTotal, Tokens: limit, Action: budget.ActionInterrupt}, 0, thole.LocalActor, time.Now())
	if err != nil {
		t.Fatal(err)
	}

	type started struct {
		at     *site
		thread thole.ThreadID
		turn   thole.TurnID
	}
	var all []started
	for i := range turns {
		s := []*site{one, two}[i%2]
		th, err := s.Threads.Create(t.Context(), thole.LocalActor, threads.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
		if err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf(`sim: run while [ "$(curl -s -o answer -w %%{http_code} -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"model":"m-1","max_tokens":50,"messages":[{"role":"user","content":"x"}]}' http://%s/claude/v1/messages)" = 200 ]; do :; done; cat answer; sleep 60 ;; say not stopped`, th.ID, s.gateway)
		turn, err := s.Threads.StartTurn(t.Context(), thole.LocalActor, threads.StartTurn{Thread: th.ID, Input: thole.Text(script)})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, started{s, th.ID, turn.ID})
	}
	for _, s := range all {
		poll.Until(t, "the end of a turn", func() bool {
			turn, err := s.at.Threads.Turn(t.Context(), thole.LocalActor, s.thread, s.turn)
			if err != nil {
				t.Fatal(err)
			}
			if turn.Outcome == "" {
				return false
			}
			if turn.Outcome != thole.OutcomeFailed || turn.Error == nil || turn.Error.Code != thole.ErrorCode(thole.CodeBudgetExceeded) {
				t.Errorf("a turn ended %s: %+v", turn.Outcome, turn.Error)
			}
			return true
		})
	}
	states, err := first.Budgets().States(t.Context(), set, time.Now(), 10)
	if err != nil || len(states) != 1 {
		t.Fatalf("%+v, %v", states, err)
	}
	served, each := int64(len(model.Requests())), upstream.Usage.Input+upstream.Usage.Output+upstream.Usage.CacheRead
	if spent := states[0].Spent.Tokens; spent > limit || spent != served*each || spent < limit/2 || states[0].Reserved.Tokens != 0 {
		t.Errorf("%+v of a limit of %d; the model answered %d times, %d tokens each", states[0], limit, served, each)
	}
	t.Logf("%d calls of %d tokens in a budget of %d", served, each, limit)
}
