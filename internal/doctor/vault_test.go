package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/vault"
	"github.com/tholehq/thole/internal/vault/keyfile"
)

// The doctor says that the vault is locked, also while nothing runs, and how to unlock it.
func TestTheDoctorKnowsALockedVault(t *testing.T) {
	ctx := context.Background()
	cfg := config.Default()
	cfg.Home = filepath.Join(t.TempDir(), "home")
	if f := CheckVault(ctx, &cfg); !f.OK || !strings.Contains(f.Found, "no secrets yet") {
		t.Errorf("a fresh home: %+v", f)
	}
	db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(cfg.Home, store.FileName)})
	if err != nil {
		t.Fatal(err)
	}
	v := vault.New(vault.Config{Store: db.Vault(), Keys: keyfile.File{Path: cfg.VaultKey()}})
	if _, err := v.Create(ctx, thole.LocalActor, vault.NewItem{Owner: vault.Owner{Kind: vault.OfPlatform}, Name: "n", Kind: vault.Env, Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	if f := CheckVault(ctx, &cfg); !f.OK || !strings.Contains(f.Found, cfg.VaultKey()) {
		t.Errorf("while an owner runs: %+v", f)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cfg.VaultKey(), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := CheckVault(ctx, &cfg); f.OK || !strings.Contains(f.Problem, "others can use it") {
		t.Errorf("a key that others can read: %+v", f)
	}
	if err := os.Remove(cfg.VaultKey()); err != nil {
		t.Fatal(err)
	}
	if f := CheckVault(ctx, &cfg); f.OK || f.Needed || !strings.Contains(f.Problem, "missing") || !strings.Contains(f.Fix, "put the key file back at "+cfg.VaultKey()) {
		t.Errorf("a key that is away: %+v", f)
	}
}
