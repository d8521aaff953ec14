package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/vault"
)

// vaultStage is a store with the rows of secrets.
type vaultStage struct {
	*store.DB
	ctx context.Context
}

func openVault(dir string, hook sqldb.Hook) (*vaultStage, error) {
	s := &vaultStage{ctx: context.Background()}
	var err error
	s.DB, err = storetest.OpenAt(s.ctx, sqldb.Config{Path: dir + "/thole.db", Hook: hook, Now: func() time.Time { return platformStart }})
	return s, err
}

func (s *vaultStage) State() (string, error) {
	return crash.Rows(s.DB, "vault_keys", "vault_items", "vault_uses", "vault_changes")
}

var (
	vaultOwner = vault.Owner{Kind: vault.OfUser, ID: string(thole.LocalUser)}
	vaultKey   = vault.Key{ID: "k1", Owner: vaultOwner, KEK: "kek1", Wrapped: []byte("wrapped"), Created: platformStart}
	vaultUse   = vault.Use{Thread: "th", Turn: "tu", Executor: "ex", Purpose: "gateway", At: platformStart}
)

func vaultItem(etag string, version int64, state vault.State) vault.Item {
	return vault.Item{ID: "i1", Owner: vaultOwner, Name: "codex", Kind: vault.ProviderAuth, Provider: "codex", State: state, ETag: etag, Version: version,
		Fingerprint: "f" + etag, CreatedBy: "me", Created: platformStart, Updated: platformStart}
}

func vaultChange(event string) vault.Change {
	return vault.Change{Subject: "i1", At: platformStart, Actor: thole.LocalActor, Event: event}
}

func (s *vaultStage) Acts() []crash.Act {
	v := s.Vault()
	sealed := func(text string) vault.Sealed { return vault.Sealed{Nonce: []byte("nonce"), Text: []byte(text)} }
	wrapped := vaultKey
	wrapped.KEK, wrapped.Wrapped = "kek2", []byte("again")
	return []crash.Act{
		{Name: "add key", Do: func() error { _, err := v.AddKey(s.ctx, vaultKey); return err }},
		{Name: "add", Do: func() error {
			return v.AddItem(s.ctx, vaultItem("e1", 1, vault.Active), "k1", sealed("one"), 1, vaultChange("item.create"))
		}},
		{Name: "use", Do: func() error { return v.UseItemIf(s.ctx, "i1", "e1", vaultUse) }},
		{Name: "rewrap", Do: func() error {
			return v.RewrapKeyIf(s.ctx, vaultKey, wrapped, vault.Change{Subject: "k1", Event: "key.rewrap", Actor: thole.LocalActor})
		}},
		{Name: "mark", Do: func() error {
			return v.MarkItemIf(s.ctx, "e1", vaultItem("e2", 1, vault.NeedsLogin), vaultChange("item.needs_login"))
		}},
		{Name: "replace", Do: func() error {
			return v.ReplaceItemIf(s.ctx, "e2", vaultItem("e3", 2, vault.Active), sealed("two"), vaultChange("item.replace"))
		}},
		{Name: "revoke", Do: func() error {
			return v.RevokeItemIf(s.ctx, "e3", vaultItem("e4", 2, vault.Revoked), vaultChange("item.revoke"))
		}},
	}
}

// TestVaultRowsSurviveAKill: an item has the value of its version or none, its audit row
// is there if and only if the change is, and a change goes in once.
func TestVaultRowsSurviveAKill(t *testing.T) {
	crash.Acts(t, openVault, func(t *testing.T, s *vaultStage, done []string) {
		has := func(act string) bool { return slices.Contains(done, act) }
		v := s.Vault()
		changes, err := v.Changes(s.ctx, "i1", 100)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, act := range []string{"add", "mark", "replace", "revoke"} {
			if has(act) {
				want++
			}
		}
		if len(changes) != want {
			t.Errorf("after %v: %d audit rows, want %d", done, len(changes), want)
		}
		st, found, err := v.Stored(s.ctx, "i1", vaultUse)
		if err != nil || found != has("add") {
			t.Fatalf("after %v: found %v, %v", done, found, err)
		}
		if !found {
			return
		}
		text, kek, state := "one", "kek1", vault.Active
		if has("rewrap") {
			kek = "kek2"
		}
		if has("mark") {
			state = vault.NeedsLogin
		}
		if has("replace") {
			text, state = "two", vault.Active
		}
		if has("revoke") {
			text, kek, state = "", "", vault.Revoked
		}
		if string(st.Sealed.Text) != text || st.Key.KEK != kek || st.Item.State != state || st.Used != has("use") {
			t.Errorf("after %v: %q under %q, %s, used %v", done, st.Sealed.Text, st.Key.KEK, st.Item.State, st.Used)
		}
		if keys, err := v.Keys(s.ctx); err != nil || (len(keys) == 0) != has("revoke") {
			t.Errorf("after %v: %d data keys, %v", done, len(keys), err)
		}
		// What was answered is not done again: each is a compare-and-set.
		for _, a := range s.Acts() {
			if a.Name != "add key" && a.Name != "use" && has(a.Name) {
				if err := a.Do(); thole.CodeOf(err) != thole.CodeConflict {
					t.Errorf("after %v: %s again: %v", done, a.Name, err)
				}
			}
		}
	})
}
