package store_test

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/thread"
)

// tokens is a thread with an executor and a token for its agent.
type tokens struct {
	*thread.Machine
	*testing.T
	db    *store.DB
	token store.GatewayToken
	ref   thread.TurnRef // of its open turn
}

func (k *tokens) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

func newTokens(t *testing.T, db *store.DB) *tokens {
	t.Helper()
	m, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	k := &tokens{Machine: m, T: t, db: db}
	id := newThread(t, m)
	k.place(executor.Row{ID: thole.NewID[thole.ExecutorID](time.Now()), Thread: id, Scope: executor.ScopeThread, Driver: "local"})
	k.token = store.GatewayToken{Token: sha256.Sum256([]byte("token " + id)), Proof: sha256.Sum256([]byte("proof " + id)), Executor: k.ref.Executor, Thread: id, Provider: "codex"}
	k.must(db.GatewayTokens().Mint(t.Context(), k.token))
	return k
}

func (k *tokens) place(row executor.Row) {
	k.Helper()
	got, err := k.db.Executors().Ensure(k.Context(), row)
	k.must(err)
	_, err = k.db.Executors().MarkRunning(k.Context(), got.ID)
	k.must(err)
	k.ref.Thread, k.ref.Executor = row.Thread, got.ID
}

// start begins a turn, which a dispatcher has and no executor yet.
func (k *tokens) start() {
	k.Helper()
	turn, err := k.StartTurn(k.Context(), thole.LocalActor, thread.StartTurn{Thread: k.ref.Thread, Input: thole.Text("go")})
	k.must(err)
	leases, err := k.db.Queue().Claim(k.Context(), queue.Claim{Owner: "x", Token: string(turn.ID), Max: 1, Lease: time.Hour})
	k.must(err)
	if len(leases) != 1 {
		k.Fatalf("claimed %d", len(leases))
	}
	k.ref.Turn, k.ref.Token = turn.ID, leases[0].Token
}

func (k *tokens) end() {
	k.Helper()
	ended := event.Event{ID: thole.EventID(k.ref.Turn), Kind: event.TurnEnded, Turn: k.ref.Turn, Time: time.Now(), Data: provider.Ended{Outcome: thole.OutcomeCompleted}.Data()}
	k.must(k.Apply(k.Context(), k.ref, []event.Event{ended}))
}

func (k *tokens) claim(token, proof [32]byte) thole.Code {
	k.Helper()
	got, err := k.db.GatewayTokens().Claim(k.Context(), token, proof)
	if err != nil {
		return thole.CodeOf(err)
	}
	want := store.GatewayClaim{Executor: k.token.Executor, Thread: k.ref.Thread, Turn: k.ref.Turn, Owner: thole.DefaultOwner, Provider: "codex"}
	if got != want {
		k.Errorf("claimed %+v, want %+v", got, want)
	}
	return ""
}

func (k *tokens) expect(want thole.Code, when string) {
	k.Helper()
	if got := k.claim(k.token.Token, k.token.Proof); got != want {
		k.Errorf("%s: %q, want %q", when, got, want)
	}
}

// A token counts with its proof, while a turn of its thread is open and its executor is
// there, and never otherwise.
func TestGatewayTokens(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		t.Run("a turn's life", func(t *testing.T) {
			k := newTokens(t, db)
			k.expect(thole.CodeGone, "before a turn")
			k.start()
			k.expect("", "in a warm executor, before anything is written")
			k.must(k.SetPhase(t.Context(), k.ref, thole.PhaseRunning, ""))
			k.expect("", "while it runs")
			if got := k.claim(k.token.Token, sha256.Sum256([]byte("proof of another"))); got != thole.CodeUnauthorized {
				t.Errorf("with the proof of another executor: %q", got)
			}
			if got := k.claim(sha256.Sum256([]byte("guessed")), k.token.Proof); got != thole.CodeUnauthorized {
				t.Errorf("with another token: %q", got)
			}
			k.must(k.db.GatewayTokens().Mint(t.Context(), k.token))
			k.expect("", "minted a second time")
			k.end()
			k.expect(thole.CodeGone, "after the turn's end")
			k.must(k.SetPhase(t.Context(), k.ref, thole.PhaseSucceeded, ""))
			k.must(k.db.Queue().Complete(t.Context(), k.ref.Turn, k.ref.Token))
			k.start()
			k.expect("", "in the next turn")
		})
		t.Run("another thread's", func(t *testing.T) {
			k, other := newTokens(t, db), newTokens(t, db)
			other.start()
			k.expect(thole.CodeGone, "while only another thread works")
			if got := k.claim(k.token.Token, other.token.Proof); got != thole.CodeUnauthorized {
				t.Errorf("from the executor of another thread: %q", got)
			}
			stray := other.token
			stray.Token[0]++
			stray.Thread = k.ref.Thread
			if err := db.GatewayTokens().Mint(t.Context(), stray); thole.CodeOf(err) != thole.CodeGone {
				t.Errorf("minted for a thread that the executor is not of: %v", err)
			}
		})
		t.Run("an executor's end", func(t *testing.T) {
			k := newTokens(t, db)
			k.start()
			k.must(k.SetPhase(t.Context(), k.ref, thole.PhaseRunning, ""))
			first := k.ref
			if ok, err := db.Executors().MarkMissing(t.Context(), k.token.Executor); err != nil || !ok {
				t.Fatal(ok, err)
			}
			k.expect(thole.CodeUnauthorized, "after the executor's end")
			if rows, err := crash.Rows(db, "gateway_tokens"); err != nil || strings.Contains(rows, string(k.token.Executor)) {
				t.Errorf("rows of an executor that is gone: %s %v", rows, err)
			}
			if err := db.GatewayTokens().Mint(t.Context(), k.token); thole.CodeOf(err) != thole.CodeGone {
				t.Errorf("minted for an executor that is gone: %v", err)
			}
			// Its successor has a token of its own, which does not count while the turn
			// is known to run elsewhere.
			k.place(executor.Row{ID: thole.NewID[thole.ExecutorID](time.Now()), Thread: first.Thread, Scope: executor.ScopeThread, Driver: "local"})
			k.token.Executor, k.token.Token[0] = k.ref.Executor, k.token.Token[0]+1
			k.must(db.GatewayTokens().Mint(t.Context(), k.token))
			k.expect(thole.CodeGone, "while the turn runs in another executor")
		})
		t.Run("an executor of one turn", func(t *testing.T) {
			k := newTokens(t, db)
			k.start()
			k.place(executor.Row{ID: thole.NewID[thole.ExecutorID](time.Now()), Thread: k.ref.Thread, Turn: thole.TurnID(uuid(77)), Scope: executor.ScopeTurn, Driver: "local"})
			k.token.Executor, k.token.Token[0] = k.ref.Executor, k.token.Token[0]+1
			k.must(db.GatewayTokens().Mint(t.Context(), k.token))
			k.expect(thole.CodeGone, "in another turn")
			k.place(executor.Row{ID: thole.NewID[thole.ExecutorID](time.Now()), Thread: k.ref.Thread, Turn: k.ref.Turn, Scope: executor.ScopeTurn, Driver: "local"})
			k.token.Executor, k.token.Token[0] = k.ref.Executor, k.token.Token[0]+1
			k.must(db.GatewayTokens().Mint(t.Context(), k.token))
			k.expect("", "in its turn")
		})
		t.Run("a restart", func(t *testing.T) {
			k := newTokens(t, db)
			k.start()
			old := k.token
			k.token.Token, k.token.Proof = sha256.Sum256([]byte("next token")), sha256.Sum256([]byte("next proof"))
			k.must(db.GatewayTokens().Mint(t.Context(), k.token))
			k.expect("", "of this start")
			if got := k.claim(old.Token, old.Proof); got != thole.CodeUnauthorized {
				t.Errorf("of the start before: %q", got)
			}
		})
	})
}
