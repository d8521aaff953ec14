package system

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

// identity is what this process is to a store that others can reach; empty where the store
// is the home's own.
type identity struct {
	store  string // its id
	server string // the home's id
}

func (i identity) engine() string {
	if i.server == "" {
		return ""
	}
	return roster.Engine(i.server)
}

// owner names this process in the queue.
func (i identity) owner() string {
	if i.server == "" {
		return fmt.Sprintf("pid-%d", os.Getpid())
	}
	return i.server
}

// cookies is what the names of cookies are made of: a login outlives the server that gave it.
func (i identity) cookies(home string) string {
	if i.store == "" {
		return home
	}
	return i.store
}

// StoreConfig says where the configuration keeps rows.
func StoreConfig(cfg *config.Config) (sqldb.Config, error) {
	if !cfg.Store.Postgres() {
		return sqldb.Config{Path: filepath.Join(cfg.Home, store.FileName)}, nil
	}
	dsn, err := cfg.Store.DSN()
	return sqldb.Config{DSN: dsn}, err
}

// openStore opens the store that the configuration names, if it is the one of the home.
func openStore(ctx context.Context, cfg *config.Config, with sqldb.Config) (*store.DB, identity, error) {
	var self identity
	at, err := StoreConfig(cfg)
	if err != nil {
		return nil, self, err
	}
	with.Path, with.DSN = at.Path, at.DSN
	bound, err := config.BoundTo(cfg.Home)
	if err != nil {
		return nil, self, err
	}
	if !cfg.Store.Postgres() {
		if bound != nil {
			return nil, self, notOwnStore(cfg.Home, bound)
		}
		db, err := store.Open(ctx, with)
		return db, self, err
	}
	if bound == nil {
		if _, err := os.Stat(filepath.Join(cfg.Home, store.FileName)); !errors.Is(err, fs.ErrNotExist) {
			return nil, self, thole.Errorf(thole.CodeConflict, "home %s has a SQLite store, whose threads would not be in PostgreSQL", cfg.Home).
				WithHint("thole db move takes them there; or use another --home")
		}
	}
	db, err := store.Open(ctx, with)
	if err != nil {
		return nil, self, err
	}
	if self, err = bind(ctx, cfg, db, bound); err != nil {
		return nil, self, errors.Join(err, db.Close())
	}
	db.ServeAs(self.server)
	return db, self, nil
}

func notOwnStore(home string, bound *config.Bound) error {
	with := "the configuration that names it"
	if bound.Config != "" {
		with = bound.Config
	}
	return thole.Errorf(thole.CodeConflict, "home %s belongs to a PostgreSQL store, and store.url is sqlite:", home).
		WithHint("start it with %s; to go back to the SQLite store of the home remove %s", with, config.BoundFile(home))
}

// bind proves that the home belongs to the store, or makes it.
func bind(ctx context.Context, cfg *config.Config, db *store.DB, bound *config.Bound) (identity, error) {
	id, err := db.ID(ctx)
	if err != nil {
		return identity{}, err
	}
	if bound != nil && bound.Store != id {
		return identity{}, thole.Errorf(thole.CodeConflict, "home %s belongs to another PostgreSQL store than store.url names", cfg.Home).
			WithHint("correct store.url, or use another --home; %s says which store it was", config.BoundFile(cfg.Home))
	}
	want := config.Bound{Store: id, Config: cfg.NamedFile()}
	if bound == nil || *bound != want {
		if err := config.Bind(cfg.Home, want); err != nil {
			return identity{}, err
		}
	}
	server, err := ServerID(cfg.Home)
	return identity{store: id, server: server}, err
}

// ServerID is the id that a home has as a server, made when it is first asked for.
func ServerID(home string) (string, error) {
	path := filepath.Join(home, "server.id")
	text, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(text)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", thole.Errorf(thole.CodeUnavailable, "read the id of the home: %w", err)
	}
	id := strings.ToLower(rand.Text()[:12])
	if err := atomicfile.Write(path, []byte(id+"\n"), 0o600); err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "record the id of the home: %w", err)
	}
	return id, nil
}
