package system

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

// Move is what a move took along.
type Move struct {
	Tables  []sqldb.Table `json:"tables"`
	Rows    int64         `json:"rows"`
	Objects int           `json:"objects"`
	Bytes   int64         `json:"bytes"`
}

// MoveStore takes everything of a home's SQLite store to the PostgreSQL store and the object
// store of the configuration, and binds the home to them. It works on a copy: the SQLite
// store and its objects stay as they are. Stopped at any point it can be run again.
func MoveStore(ctx context.Context, cfg *config.Config) (_ *Move, err error) {
	if !cfg.Store.Postgres() {
		return nil, thole.Errorf(thole.CodeInvalid, "store.url is not PostgreSQL, so there is nowhere to move to").
			WithHint("set store.url to postgres://USER@HOST/DATABASE in a file and name it with --config")
	}
	path := filepath.Join(cfg.Home, store.FileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, thole.Errorf(thole.CodeNotFound, "there is no SQLite store at %s", path).WithHint("name the home to move with --home; a new one needs no move: thole serve")
	}
	owner, err := daemon.Own(ctx, cfg.Home, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, owner.Release()) }()
	if bound, err := config.BoundTo(cfg.Home); err != nil || bound != nil {
		return nil, errors.Join(err, thole.Errorf(thole.CodeConflict, "home %s was moved already", cfg.Home).WithHint("start it with thole serve"))
	}
	at, err := StoreConfig(cfg)
	if err != nil {
		return nil, err
	}
	to, err := store.Open(ctx, sqldb.Config{DSN: at.DSN})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	from, done, err := copyOf(ctx, cfg.Home, path)
	if err != nil {
		return nil, err
	}
	defer done()
	out := &Move{}
	if err := out.moveObjects(ctx, cfg); err != nil { // rows name them
		return nil, fmt.Errorf("move objects: %w", err)
	}
	server, err := ServerID(cfg.Home)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	moved, err := store.Move(ctx, from, to, host+":"+cfg.Home, roster.Engine(server))
	if err != nil {
		return nil, err
	}
	out.Tables = moved.Tables
	for _, t := range moved.Tables {
		out.Rows += t.Rows
	}
	_, err = bind(ctx, cfg, to, nil)
	return out, err
}

// copyOf opens a copy of a store, in this binary's schema.
func copyOf(ctx context.Context, home, path string) (*store.DB, func(), error) {
	tmp, err := os.MkdirTemp(home, "move-")
	if err != nil {
		return nil, nil, thole.Errorf(thole.CodeUnavailable, "copy the store: %w", err)
	}
	file := filepath.Join(tmp, store.FileName)
	if _, err = store.Backup(ctx, path, file); err == nil {
		var db *store.DB
		if db, err = store.Open(ctx, sqldb.Config{Path: file}); err == nil {
			return db, func() { _, _ = db.Close(), os.RemoveAll(tmp) }, nil
		}
	}
	return nil, nil, errors.Join(err, os.RemoveAll(tmp))
}

// moveObjects copies the objects of the home's directory to S3, and compares each with what
// is there then. Those that an earlier try copied are only compared.
func (m *Move) moveObjects(ctx context.Context, cfg *config.Config) (err error) {
	at := filepath.Join(cfg.Home, "objects")
	if _, err := os.Stat(at); cfg.Objects.Kind != "s3" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	from, err := dir.Open(at, "http://127.0.0.1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := openS3(cfg.Objects)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for after := ""; ; {
		list, err := from.List(ctx, "", after, 500)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, o := range list {
			after = o.Key
			if err := moveObject(ctx, from, to, o); err != nil {
				return fmt.Errorf("%s: %w", o.Key, err)
			}
			m.Objects, m.Bytes = m.Objects+1, m.Bytes+o.Size
		}
	}
}

func moveObject(ctx context.Context, from, to objects.Store, o objects.Info) error {
	want, err := sumObject(ctx, from, o.Key)
	if err != nil {
		return err
	}
	if there, err := to.Stat(ctx, o.Key); err == nil && there.Size == o.Size {
		if have, err := sumObject(ctx, to, o.Key); err == nil && have == want {
			return nil
		}
	} else if err != nil && !errors.Is(err, objects.ErrNotFound) {
		return err
	}
	body, err := from.Get(ctx, o.Key, 0, -1)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := to.Put(ctx, o.Key, body, o.Size); err != nil {
		return err
	}
	have, err := sumObject(ctx, to, o.Key)
	if err == nil && have != want {
		err = thole.Errorf(thole.CodeInternal, "the copy differs")
	}
	return err
}

func sumObject(ctx context.Context, s objects.Store, key string) (sum [32]byte, err error) {
	body, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return sum, err
	}
	defer body.Close()
	h := sha256.New()
	_, err = io.Copy(h, body)
	return [32]byte(h.Sum(nil)), err
}
