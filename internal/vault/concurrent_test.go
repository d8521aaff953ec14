package vault_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/vault"
)

// The key is changed while secrets are opened, renewed and added: nobody notices.
func TestRotateUnderLoad(t *testing.T) {
	both(t, func(t *testing.T, g *rig) {
		var items []vault.Item
		for n := range 6 {
			o := mine
			if n%2 == 1 {
				o = vault.Owner{Kind: vault.OfProject, ID: fmt.Sprint("project-", n)}
			}
			items = append(items, g.create(me, o, fmt.Sprint("s", n), fmt.Sprint("value-", n)))
		}
		before := keks(t, g)
		stop := make(chan struct{})
		var work sync.WaitGroup
		var opened, added int
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				i := items[n%len(items)]
				s, err := g.Open(ctx, i.ID, vault.Use{Turn: "t", Purpose: "load"})
				if err != nil || string(s.Bytes()) != fmt.Sprint("value-", n%len(items)) {
					t.Errorf("open during a rotation: %v", err)
					return
				}
				opened++
			}
		})
		work.Go(func() {
			for n := 0; n < 20; n++ {
				if _, err := g.Create(ctx, me, vault.NewItem{Owner: vault.Owner{Kind: vault.OfApp, ID: fmt.Sprint("app-", n)}, Name: "n", Kind: vault.Env, Value: []byte("x")}); err != nil {
					t.Errorf("create during a rotation: %v", err)
					return
				}
				added++
			}
		})
		var last vault.Rotation
		for range 3 {
			var err error
			if last, err = g.Rotate(ctx, me); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		work.Wait()
		if opened == 0 || added != 20 {
			t.Fatalf("%d opened, %d added", opened, added)
		}
		if after := keks(t, g); len(after) != 1 || after[0] == before[0] || after[0] != last.KEK {
			t.Errorf("before %v, after %v, rotated to %s", before, after, last.KEK)
		}
		for n, i := range items {
			g.opens(i.ID, fmt.Sprint("value-", n))
		}
		if begun, err := g.key.Rotating(ctx); err != nil || begun {
			t.Error(begun, err)
		}
		faults, err := g.Check(ctx)
		if err != nil || len(faults) > 0 {
			t.Errorf("%+v, %v", faults, err)
		}
	})
}

func keks(t testing.TB, g *rig) (out []string) {
	t.Helper()
	all, err := g.db.Vault().Keys(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, k := range all {
		if !seen[k.KEK] {
			seen[k.KEK] = true
			out = append(out, k.KEK)
		}
	}
	return out
}

// Of several who renew one login at the same time one wins, and the others know it.
func TestRenewalsCompareAndSet(t *testing.T) {
	both(t, func(t *testing.T, g *rig) {
		i := g.create(me, mine, "codex", "old")
		results := make(chan error, 8)
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() { results <- second(g.Replace(ctx, i.ID, i.ETag, []byte(fmt.Sprint("new-", n)))) })
		}
		all.Wait()
		close(results)
		won := 0
		for err := range results {
			if err == nil {
				won++
			} else {
				g.refuses(thole.CodeConflict, err)
			}
		}
		if won != 1 {
			t.Errorf("%d renewals won", won)
		}
		s, err := g.Open(ctx, i.ID, turn)
		if err != nil || !strings.HasPrefix(string(s.Bytes()), "new-") {
			t.Error(err)
		}
	})
}

// The first secrets of one owner, set at the same time, share one data key.
func TestFirstSecretsAtOnce(t *testing.T) {
	both(t, func(t *testing.T, g *rig) {
		var all sync.WaitGroup
		ids := make([]vault.ItemID, 8)
		for n := range ids {
			all.Go(func() {
				i, err := g.Create(ctx, me, vault.NewItem{Owner: mine, Name: fmt.Sprint("n", n), Kind: vault.Env, Value: []byte(fmt.Sprint("v", n))})
				if err != nil {
					t.Error(err)
				}
				ids[n] = i.ID
			})
		}
		all.Wait()
		for n, id := range ids {
			g.opens(id, fmt.Sprint("v", n))
		}
		if keys, err := g.db.Vault().Keys(ctx); err != nil || len(keys) != 1 {
			t.Errorf("%d data keys, %v", len(keys), err)
		}
	})
}
