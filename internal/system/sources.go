package system

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/forge"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/source/branch"
	"github.com/tholehq/thole/internal/source/choice"
	"github.com/tholehq/thole/internal/source/here"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/upload"
	"github.com/tholehq/thole/internal/vault"
	"github.com/tholehq/thole/internal/workspace"
)

// newGit makes the one way to run git. box is nil where a person typed that there are no
// walls.
func newGit(self string, box func(context.Context) (string, error)) *git.Runner {
	if box == nil {
		box = func(context.Context) (string, error) { return "", nil }
	}
	return &git.Runner{Box: box, Self: self}
}

// newBranches makes threads' files of repositories.
func newBranches(cfg *config.Config, db *store.DB, runner *git.Runner, tokens forgeToken, log *slog.Logger) *branch.Branches {
	return branch.New(branch.Config{Home: cfg.Home, Git: runner, Alive: db.Threads().Sources, Token: tokens, Log: log})
}

// newSources serves every door at which a source is chosen.
func newSources(cfg *config.Config, db *store.DB, files *depot.Depot, manifests workspace.ManifestSource, branches *branch.Branches, sample source.Request, log *slog.Logger) (*choice.Service, error) {
	uploads, err := upload.New(upload.Config{Files: files, Dir: filepath.Join(cfg.Home, "uploads"), Log: log, Now: time.Now})
	if err != nil {
		return nil, err
	}
	return choice.New(choice.Config{
		Default: sample, Branch: branches, Here: here.Resolver{Check: func(dir string) (repository.Place, error) { return local.CheckHere(dir, cfg.Home) }}, Uploads: uploads, Index: db.Index(), Home: cfg.Home, KeyDir: local.KeyDir,
		Template: func(ctx context.Context) (bool, error) {
			m, err := manifests.Manifest(ctx, thole.DefaultApp, "")
			return m.WorkspaceTemplatePrefix != "", err
		},
	}), nil
}

// shelvesOf is where a home has the states of threads' files.
func shelvesOf(home string) string { return filepath.Join(home, "shelves") }

// newShelf keeps the states of threads' files.
func newShelf(cfg *config.Config, runner *git.Runner, tokens forgeToken, log *slog.Logger) *shelf.Shelf {
	return shelf.New(shelf.Config{Dir: shelvesOf(cfg.Home), Git: runner, CoAuthor: cfg.Changes.CoAuthor, Token: tokens, Log: log})
}

// newChanges answers about them.
func newChanges(cfg *config.Config, states *shelf.Shelf, threads thread.Service, db *store.DB, driver executor.Driver, files *depot.Depot, tokens forgeToken, trail *audit.Log, log *slog.Logger) *changes.Service {
	return changes.New(changes.Config{
		Threads: threads, Rows: db.Executors(), Driver: driver, Shelf: states, Temp: storedFiles(cfg.Home), Log: log, Forges: newForges(cfg), Token: tokens, Audit: trail,
		Stored: func(ctx context.Context, id thole.ThreadID, dir string) error {
			_, _, err := files.ExportDir(ctx, id, dir, true)
			return err
		},
	})
}

// storedFiles is where files of a sync are laid out to be looked at; a start empties it.
func storedFiles(home string) string { return filepath.Join(shelvesOf(home), "stored") }

// newForges knows the forges of the configuration besides those of everybody.
func newForges(cfg *config.Config) *forge.Client {
	c := &forge.Client{Hosts: map[string]forge.Host{}}
	for _, one := range cfg.Changes.Forges {
		if host, at, err := config.Forge(one); err == nil { // checked when it was read
			c.Hosts[host] = at
		}
	}
	return c
}

// forgeToken is what a person keeps for a server of repositories, "" for nothing.
type forgeToken = func(ctx context.Context, who thole.Owner, host string) (string, error)

// forgeTokens opens the secret of kind git that a thread's owner has for a server.
func forgeTokens(secrets *vault.Vault) forgeToken {
	return func(ctx context.Context, who thole.Owner, host string) (string, error) {
		item, err := secrets.Find(ctx, who, vault.Git, host)
		if thole.CodeOf(err) == thole.CodeNotFound {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		value, err := secrets.Open(ctx, item.ID, vault.Use{Purpose: "git"})
		if err != nil {
			return "", err
		}
		defer value.Wipe()
		return strings.TrimSpace(string(value.Bytes())), nil
	}
}
