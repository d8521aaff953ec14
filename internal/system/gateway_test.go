package system

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/price"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// guarded is a home's gateway with threads, each of which has an executor.
type guarded struct {
	*testing.T
	home    string
	db      *store.DB
	threads *thread.Machine
	creds   provider.Credentials
	sim     *modelsim.Sim
	models  *Gateway
	used    []gateway.Claim // of calls of tools
}

type uncounted struct{}

func (uncounted) Refused() {}
func (uncounted) Unknown() {}
func (uncounted) Differs() {}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	home, err := os.MkdirTemp("", "gw") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	g := &guarded{T: t, home: home, sim: modelsim.Start(t)}
	if g.db, err = storetest.OpenAt(t.Context(), sqldb.Config{Path: filepath.Join(home, "thole.db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.db.Close() })
	if g.threads, err = thread.New(thread.Config{Store: g.db.Threads()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.threads.Close(context.Background()) })
	g.start()
	t.Cleanup(func() { g.must(g.models.Stop(context.Background())) })
	return g
}

func (g *guarded) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g *guarded) start() {
	g.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var err error
	books := budget.NewLedger(g.db.Budgets(), price.Default, thole.NewID[string], uncounted{}, quiet)
	g.models, g.creds, err = DemoGateway(g.home, g.db, books, g.sim.URL(), nil, g, quiet)
	g.must(err)
	g.must(g.models.Start(g.Context()))
}

// worker is a thread's agent in its executor.
type worker struct {
	*guarded
	ref    thread.TurnRef
	secret string
	token  string
}

func (g *guarded) worker(secret string) *worker {
	g.Helper()
	th, err := g.threads.Create(g.Context(), thole.LocalActor, thread.Create{Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "codex"}})
	g.must(err)
	row, err := g.db.Executors().Ensure(g.Context(), executor.Row{ID: thole.NewID[thole.ExecutorID](time.Now()), Thread: th.ID, Scope: executor.ScopeThread, Driver: "local"})
	g.must(err)
	_, err = g.db.Executors().MarkRunning(g.Context(), row.ID)
	g.must(err)
	w := &worker{guarded: g, ref: thread.TurnRef{Thread: th.ID, Executor: row.ID}, secret: secret}
	w.token = w.granted()
	return w
}

// granted is the token that the agent is given.
func (w *worker) granted() string {
	w.Helper()
	g, err := w.creds.For(w.Context(), provider.For{Owner: thole.DefaultOwner, Thread: w.ref.Thread, Executor: w.ref.Executor, Provider: "codex", Secret: w.secret})
	w.must(err)
	return g.Env[gatewayToken]
}

func (w *worker) begin() {
	w.Helper()
	turn, err := w.threads.StartTurn(w.Context(), thole.LocalActor, thread.StartTurn{Thread: w.ref.Thread, Input: thole.Text("go")})
	w.must(err)
	leases, err := w.db.Queue().Claim(w.Context(), queue.Claim{Owner: "x", Token: string(turn.ID), Max: 1, Lease: time.Hour})
	w.must(err)
	if len(leases) != 1 {
		w.Fatalf("claimed %d", len(leases))
	}
	w.ref.Turn, w.ref.Token = turn.ID, leases[0].Token
}

func (w *worker) end() {
	w.Helper()
	w.must(w.threads.Apply(w.Context(), w.ref, []event.Event{{ID: thole.EventID(w.ref.Turn), Kind: event.TurnEnded, Turn: w.ref.Turn, Time: time.Now(), Data: provider.Ended{Outcome: thole.OutcomeCompleted}.Data()}}))
}

// ask sends what codex does, from an executor that proves itself by first, and returns
// the status, 0 for a connection that was closed.
func (g *guarded) ask(first, token string) int {
	g.Helper()
	return g.post("/codex/v1/responses", `{"model":"sim-1","input":[{"role":"user","content":"sim: say hi"}],"stream":false}`, first, token)
}

// use sends what a CLI does to its tools.
func (g *guarded) use(first, token string) int {
	g.Helper()
	return g.post(gateway.ToolsPath, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, first, token)
}

// ServeTools implements gateway.Tools.
func (g *guarded) ServeTools(_ http.ResponseWriter, _ *http.Request, c gateway.Claim) {
	g.used = append(g.used, c)
}

func (g *guarded) post(path, body, first, token string) int {
	g.Helper()
	conn, err := net.Dial("unix", GatewaySocket(g.home))
	g.must(err)
	defer conn.Close()
	fmt.Fprintf(conn, "%sPOST %s HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", first, path, token, len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK && strings.Contains(string(text), token) {
		g.Errorf("a refusal repeats the token: %s", text)
	}
	return resp.StatusCode
}

func (w *worker) proof() string { return gateway.ProofLine(wire.GatewayProof(w.secret)) }

// A token of the gateway is worth nothing but in its own executor, for its own thread,
// while a turn is open there. What is refused never reaches a model, nor a tool.
func TestAStolenTokenIsWorthNothing(t *testing.T) {
	g := newGuarded(t)
	mine, other := g.worker("secret of mine"), g.worker("secret of another")
	refused := func(when, first, token string) {
		t.Helper()
		before := len(g.sim.Requests())
		if status := g.ask(first, token); status == http.StatusOK {
			t.Errorf("%s: answered", when)
		}
		if len(g.sim.Requests()) != before {
			t.Errorf("%s: a model heard of it", when)
		}
		used := len(g.used)
		if status := g.use(first, token); status == http.StatusOK || len(g.used) != used {
			t.Errorf("%s: a tool was called: %d", when, status)
		}
	}
	refused("before a turn", mine.proof(), mine.token)
	mine.begin()
	if status := g.ask(mine.proof(), mine.token); status != http.StatusOK {
		t.Fatalf("in its turn: %d", status)
	}
	if status := g.use(mine.proof(), mine.token); status != http.StatusOK || len(g.used) != 1 || g.used[0].Thread != mine.ref.Thread || g.used[0].Turn != mine.ref.Turn {
		t.Fatalf("a tool in its turn: %d, %+v", status, g.used)
	}
	refused("from the host, without a proof", "", mine.token)
	refused("from the host, with a proof of its own", gateway.ProofLine("guessed"), mine.token)
	refused("from another executor", other.proof(), mine.token)
	refused("with the token of another thread", mine.proof(), other.token)
	other.begin()
	refused("from another executor whose turn is open", other.proof(), mine.token)
	refused("with the token of another thread whose turn is open", mine.proof(), other.token)
	refused("with the executor's secret itself", mine.proof(), mine.secret)
	refused("with the hash that is stored", mine.proof(), fmt.Sprintf("%x", sha256.Sum256([]byte(mine.token))))
	mine.end()
	refused("after the turn's end", mine.proof(), mine.token)
	if status := g.ask(other.proof(), other.token); status != http.StatusOK {
		t.Fatalf("the other: %d", status)
	}
	if ok, err := g.db.Executors().MarkMissing(t.Context(), other.ref.Executor); err != nil || !ok {
		t.Fatal(ok, err)
	}
	refused("after the executor's removal", other.proof(), other.token)
}

// An owner that comes after one that was killed serves what agents have, at the same
// place, and gives the same tokens.
func TestTokensOutliveTheOwner(t *testing.T) {
	g := newGuarded(t)
	w := g.worker("secret")
	w.begin()
	first := g.models
	g.must(first.server.Close()) // the socket stays, as after a kill
	<-first.done
	if _, err := os.Lstat(GatewaySocket(g.home)); err != nil {
		t.Fatal(err)
	}
	g.start()
	if again := w.granted(); again != w.token {
		t.Error("the next owner gives another token: every warm agent starts again")
	}
	if status := g.ask(w.proof(), w.token); status != http.StatusOK {
		t.Errorf("after a restart: %d", status)
	}
	w.secret = "secret of the next start"
	if next := w.granted(); next == w.token {
		t.Error("the executor's next start has the same token")
	}
}

// What the two sides of the socket say is one.
func TestTheProofLine(t *testing.T) {
	if got := gateway.ProofLine("x"); got != wire.Gateway+"x\n" {
		t.Errorf("executord writes %q, the gateway reads %q", wire.Gateway+"x\n", got)
	}
	if a, b := wire.GatewayToken("secret", "thread", "codex"), wire.GatewayToken("secret", "thread", "claude"); a == b || len(a) != len("tgw_")+64 || strings.Contains(a, wire.GatewayProof("secret")) {
		t.Errorf("tokens %s, %s", a, b)
	}
}
