package vault_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/vault"
	"github.com/tholehq/thole/internal/vault/keyfile"
)

func openRig(t testing.TB, dir string, hook sqldb.Hook) (*rig, error) {
	db, err := storetest.OpenAt(ctx, sqldb.Config{Path: filepath.Join(dir, "thole.db"), Hook: hook})
	g := &rig{t: t, db: db, key: keyfile.File{Path: filepath.Join(dir, "vault.key")}, now: time.Now()}
	if err == nil {
		g.Vault = vault.New(vault.Config{Store: db.Vault(), Keys: g.key})
	}
	return g, err
}

// TestRotationSurvivesAKill: killed at any durable step of a change of the key, every
// secret opens, and the change is finished by the next owner.
func TestRotationSurvivesAKill(t *testing.T) {
	const owners = 3
	crash.Enumerate(t, func(w *crash.Work) error {
		rotating := false
		g, err := openRig(t, w.Dir, func(p sqldb.Point, step string) {
			if rotating {
				w.Hook(p, step)
			}
		})
		if err != nil {
			return err
		}
		for n := range owners {
			o := vault.Owner{Kind: vault.OfProject, ID: fmt.Sprint(n)}
			i, err := g.Create(ctx, me, vault.NewItem{Owner: o, Name: "n", Kind: vault.Env, Value: []byte(fmt.Sprint("value of ", n))})
			if err != nil {
				return err
			}
			w.Ack(string(i.ID))
		}
		rotating = true
		if _, err := g.Rotate(ctx, me); err != nil {
			return err
		}
		w.Ack("rotated")
		return g.db.Close()
	}, func(t *testing.T, dir string, acked []string, _ string) {
		g, err := openRig(t, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer g.db.Close()
		all := func() {
			t.Helper()
			for n, id := range acked {
				if id != "rotated" {
					g.opens(vault.ItemID(id), fmt.Sprint("value of ", n))
				}
			}
			if faults, err := g.Check(ctx); err != nil || len(faults) > 0 {
				t.Errorf("%+v, %v", faults, err)
			}
		}
		all()
		if err := g.Resume(ctx); err != nil {
			t.Fatal(err)
		}
		if begun, err := g.key.Rotating(ctx); err != nil || begun {
			t.Errorf("rotating %v, %v", begun, err)
		}
		if got := keks(t, g); len(got) > 1 {
			t.Errorf("data keys are wrapped with %v", got)
		}
		all()
	})
}

// A kill between two renames of key files leaves a key in every place that is looked at.
func TestRotationOfFilesInterrupted(t *testing.T) {
	for name, interrupt := range map[string]func(path, old string) error{
		"after the new key was made": func(string, string) error { return nil },
		"after the old key was kept": func(path, old string) error { return os.Link(path, path+"."+old+".old") },
		"a half-written key":         func(path, _ string) error { return os.WriteFile(path+".tmp", []byte("half"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			g, err := openRig(t, t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer g.db.Close()
			i := g.create(me, mine, "codex", "value")
			before := keks(t, g)[0]
			if _, err := g.key.Next(ctx); err != nil {
				t.Fatal(err)
			}
			if err := interrupt(g.key.Path, before); err != nil {
				t.Fatal(err)
			}
			g.opens(i.ID, "value")
			later := g.create(me, ofAll, "later", "later value")
			if err := g.Resume(ctx); err != nil {
				t.Fatal(err)
			}
			g.opens(i.ID, "value")
			g.opens(later.ID, "later value")
			if after := keks(t, g); len(after) != 1 || after[0] == before {
				t.Errorf("from %s to %v", before, after)
			}
			// A backup from before opens with the key that was kept.
			if err := g.key.Has(ctx, before); err != nil {
				t.Error(err)
			}
		})
	}
}
