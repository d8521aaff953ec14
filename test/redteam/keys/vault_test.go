//go:build linux

package keys

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/modelsim"
)

// A key is what the vault has at the moment of a call: one that is taken away in the middle
// of a turn is not used again, a vault without its own key gives none, and a change of that
// key disturbs nobody.
func TestAKeyOfTheVaultInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	w, upstream := gatewayed(t)
	o := w.thread("claude", modelsim.ClaudeModel).betray()
	call := post("/claude/v1/messages", o.token, message(modelsim.ClaudeModel))
	calls := func(n int) (texts []string) {
		for range n {
			texts = append(texts, call)
		}
		return texts
	}
	want := func(what string, got answer, status int, words string) {
		t.Helper()
		if got.status != status || !strings.Contains(got.text, words) {
			t.Errorf("%s: %d, want %d and %q: %.400s", what, got.status, status, words, got.text)
		}
	}

	// Twenty calls while the vault's own key is changed again and again.
	changes := make(chan error, 1)
	stop := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				if n == 0 {
					changes <- fmt.Errorf("the key was never changed")
				}
				close(changes)
				return
			default:
			}
			if out, err := w.try("secret", "rotate-key"); err != nil {
				changes <- fmt.Errorf("change %d: %w: %s", n, err, out)
				close(changes)
				return
			}
		}
	})
	for i, got := range o.ask(calls(20)...) {
		want(fmt.Sprintf("call %d during a change of the vault's key", i), got, 200, "answered")
	}
	close(stop)
	over.Wait()
	for err := range changes {
		t.Error(err)
	}

	// Without its key it is locked, and with it open at once.
	key, away := filepath.Join(w.home, "vault.key"), filepath.Join(w.home, "away")
	if err := os.Rename(key, away); err != nil {
		t.Fatal(err)
	}
	before := len(upstream.seen.Bytes())
	want("with a locked vault", o.ask(call)[0], 400, "locked") // not asked again: a person must put the key back
	if err := os.Rename(away, key); err != nil {
		t.Fatal(err)
	}
	if got := len(upstream.seen.Bytes()); got != before {
		t.Error("a locked vault's key reached the model")
	}
	want("with an open vault", o.ask(call)[0], 200, "answered")

	// Replaced, the next call has the new one; taken away, there is none.
	w.secret("model", w.key("sk-ant-api03-", "-vault-second"), "--provider", "anthropic")
	want("with a new key", o.ask(call)[0], 200, "answered")
	if !strings.Contains(string(upstream.seen.Bytes()), "-vault-second") {
		t.Error("the new key did not reach the model")
	}
	w.thole("secret", "rm", "model")
	before = len(upstream.seen.Bytes())
	want("without a key", o.ask(call)[0], 401, "no secret model")
	o.lay("go", "")
	if got := o.settle(o.turn); got.Outcome != "failed" || got.Error == nil || got.Error.Code != "auth" || !strings.Contains(got.Error.Message, "no secret model") {
		t.Errorf("a turn whose key was taken away ended %s: %+v", got.Outcome, got.Error)
	}
	if got := len(upstream.seen.Bytes()); got != before {
		t.Error("the model was spoken to with a key that was taken away")
	}
}

// The keys of the user of this machine are not another user's.
func TestASecondUserHasNoneOfTheFirstOnesKeys(t *testing.T) {
	t.Parallel()
	sim := modelsim.Start(t)
	w := newWorld(t)
	w.agents()
	w.plant(sim.URL())
	w.begin()
	w.secret("mine", w.key("sk-ant-api03-", "-vault-mine"), "--provider", "groq")
	o := w.thread("claude", modelsim.ClaudeModel).betray()
	call := post("/claude/v1/messages", o.token, message(modelsim.ClaudeModel))
	if got := o.ask(call)[0]; got.status != 200 {
		t.Fatalf("the first user: %+v", got)
	}
	asked := len(sim.Requests())
	// There is no second user yet but in the store.
	w.sql("update threads set user_id = 'second' where id = '" + o.id + "'")
	got := o.ask(call)[0]
	if got.status == 200 || len(sim.Requests()) != asked {
		t.Errorf("a thread of the second user: %d %.300s", got.status, got.text)
	}
	w.sql("update threads set user_id = '" + string(thole.LocalUser) + "' where id = '" + o.id + "'")
	if got := o.ask(call)[0]; got.status != 200 {
		t.Errorf("the first user again: %+v", got)
	}
	o.letGo()
}

// sql changes the store without thole.
func (w *world) sql(text string) {
	w.Helper()
	out, err := exec.Command("/usr/bin/python3", "-c", `import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30)
n = db.execute(sys.argv[2]).rowcount
db.commit()
sys.exit(0 if n == 1 else "%d rows" % n)`, filepath.Join(w.home, "thole.db"), text).CombinedOutput()
	if err != nil {
		w.Fatalf("%s: %v: %s", text, err, out)
	}
}
