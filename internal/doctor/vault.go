package doctor

import (
	"context"
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/vault/keyfile"
)

// CheckVault says whether the secrets of a home can be opened, and how to unlock them.
func CheckVault(ctx context.Context, cfg *config.Config) Finding {
	key := keyfile.File{Path: cfg.VaultKey()}
	f := Finding{Part: "vault", OK: true, Found: "no secrets yet; the first makes the key " + key.Path, Disables: "what needs a secret of the vault; everything else goes on"}
	if cfg.Store.Postgres() {
		f.Found = "key " + key.Path + "; thole check says whether every secret opens"
		if _, err := os.Stat(key.Path); err != nil {
			f.Found = "no key yet; the first secret makes " + key.Path
		}
		return f
	}
	keks, err := store.VaultKEKs(ctx, filepath.Join(cfg.Home, store.FileName))
	if err != nil && thole.CodeOf(err) != thole.CodeNotFound {
		f.OK, f.Problem, f.Fix = false, err.Error(), "thole db check"
		return f
	}
	for _, kek := range keks {
		f.Found = "key " + key.Path + ", of which no backup of the store has a copy"
		if err := key.Has(ctx, kek); err != nil {
			f.OK, f.Found, f.Problem, f.Fix = false, "", err.Error(), thole.HintOf(err)
			break
		}
	}
	return f
}
