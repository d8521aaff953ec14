package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/scratch"
)

// SQLite is the Open of a fresh SQLite file, a copy of one that was migrated.
func SQLite(t testing.TB, opts ...func(*sqldb.Config)) *store.DB {
	t.Helper()
	return open(t, sqldb.Config{Path: filepath.Join(scratch.Dir(t), "home", "thole.db")}, opts)
}

// OpenAt is store.Open for a test that opens a file again, or in another process. A file
// that is not there yet begins as a copy of a migrated one: the migrations take five times
// as long as opening, and a hundred times with the race detector.
func OpenAt(ctx context.Context, cfg sqldb.Config) (*store.DB, error) {
	if err := lay(cfg); err != nil {
		return nil, err
	}
	return store.Open(ctx, cfg)
}

func lay(cfg sqldb.Config) error {
	if cfg.DSN != "" || cfg.VFS != "" {
		return nil
	}
	if _, err := os.Stat(cfg.Path + ".lock"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := migrated()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(cfg.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// migrated is a store without rows of a test's own. One file in the lab's cache serves
// every test binary of the same migrations.
var migrated = sync.OnceValues(func() ([]byte, error) {
	all, err := store.Schema().Migrations()
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, m := range all {
		fmt.Fprintln(sum, m.Version, m.Name, m.Sum)
	}
	cached := lab.Cache(fmt.Sprintf("store-%x.db", sum.Sum(nil)[:8]))
	if data, err := os.ReadFile(cached); err == nil {
		return data, nil
	}
	dir, err := os.MkdirTemp("", "thole-store-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "thole.db")
	db, err := store.Open(context.Background(), sqldb.Config{Path: made})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(made)
	if err != nil {
		return nil, err
	}
	keep(cached, data) // the next binary makes its own if that fails
	return data, nil
})

func keep(path string, data []byte) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-")
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if errors.Join(err, f.Close()) != nil || os.Rename(f.Name(), path) != nil {
		_ = os.Remove(f.Name())
	}
}
