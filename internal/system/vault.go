package system

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/vault"
	"github.com/tholehq/thole/internal/vault/keyfile"
)

// newVault makes the home's vault. Logins are judged by what is known of the CLIs. A key
// that agents could read is refused.
func newVault(cfg *config.Config, db *store.DB, can vault.Can) (*vault.Vault, error) {
	if key := cfg.VaultKey(); local.Shown(key, cfg.Executor.Paths) {
		return nil, thole.Errorf(thole.CodeInvalid, "the vault's key %s is where agents read files", key).
			WithHint("put it outside of /usr, /opt and executor.paths, and name the place in vault.key_file")
	}
	return vault.New(vault.Config{
		Store: db.Vault(), Keys: keyfile.File{Path: cfg.VaultKey()}, Can: can,
		Check: func(kind vault.Kind, name string, value []byte) error {
			if kind == vault.ProviderAuth {
				return provider.CheckLogin(name, value)
			}
			return nil
		},
		Probe: func(_ context.Context, i vault.Item, s vault.Secret) (string, error) {
			if i.Kind == vault.ProviderAuth {
				return provider.LoginNote(i.Provider, s.Bytes(), time.Now())
			}
			return "it opens", nil
		},
	}), nil
}

// checkVault returns the secrets that do not open, and whether the vault is locked.
func checkVault(ctx context.Context, v *vault.Vault) (broken []wire.Violation, notes []string, err error) {
	faults, err := v.Check(ctx)
	for _, f := range faults {
		broken = append(broken, wire.Violation{Rule: "every secret opens with its key", Row: string(f.Item.ID)})
	}
	if errors.Is(err, vault.ErrLocked) {
		return broken, []string{err.Error()}, nil
	}
	return broken, nil, err
}
