package side

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// databases are the SQLite files of a directory that have a log next to them: the
// newest rows are there, so the files only mean something together. While their
// owner may write they are copied together, and SQLite makes one file of the copy.
type databases map[string]bool

var sidecars = []string{"-wal", "-journal", "-shm"}

func findDatabases(dir *beneath.Dir, names []string) databases {
	var dbs databases
	for _, name := range names {
		for _, end := range sidecars[:2] {
			main, ok := strings.CutSuffix(name, end)
			if !ok || dbs[main] {
				continue
			}
			if st, err := dir.Lstat(name); err != nil || st.Size == 0 || !isDatabase(dir, main) {
				continue
			}
			if dbs == nil {
				dbs = databases{}
			}
			dbs[main] = true
		}
	}
	return dbs
}

func isDatabase(dir *beneath.Dir, name string) bool {
	f, err := dir.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	n, _ := io.ReadFull(f, head)
	return n == 0 || string(head[:n]) == magic // an empty one may live in its log alone
}

func (d databases) has(name string) bool { return d[name] }

func (d databases) sidecar(name string) bool {
	for _, end := range sidecars {
		if main, ok := strings.CutSuffix(name, end); ok && d[main] {
			return true
		}
	}
	return false
}

// database adds a SQLite file with what its log holds.
func (s *scan) database(dir *beneath.Dir, name, path string, st beneath.Stat) error {
	if e, ok := s.base.entry(path, st); ok && s.sameLogs(dir, name, path) {
		s.keep(e, st)
		return nil
	}
	e, err := s.readDatabase(dir, name, path)
	return s.add(path, e, err)
}

// sameLogs reports whether the logs next to a database look as they did.
func (s *scan) sameLogs(dir *beneath.Dir, name, path string) bool {
	for _, end := range sidecars[:2] {
		st, err := dir.Lstat(name + end)
		have, known := s.base.stats[path+end]
		if (err == nil) != known || known && have != st {
			return false
		}
	}
	for _, end := range sidecars[:2] {
		if st, ok := s.base.stats[path+end]; ok {
			s.stats[path+end] = st
		}
	}
	return true
}

func (s *scan) readDatabase(dir *beneath.Dir, name, path string) (workspace.Entry, error) {
	looks := func() (all [3]beneath.Stat) {
		for i, end := range []string{"", "-wal", "-journal"} {
			all[i], _ = dir.Lstat(name + end)
		}
		return all
	}
	before := looks()
	start := s.local.cfg.Now().UnixNano()
	if start-before[0].Ctime < granularity && start > before[0].Ctime {
		return workspace.Entry{}, errChanging // a further write may leave the same stamp
	}
	copied, err := copyDatabase(s.ctx, dir, name)
	if after := looks(); err == nil && (after[0] != before[0] || after[2] != before[2]) {
		err = errors.Join(errChanging, os.RemoveAll(copied))
	}
	if err != nil {
		if s.ctx.Err() != nil {
			return workspace.Entry{}, err
		}
		return workspace.Entry{}, errChanging // locked, or in a state only its owner understands
	}
	defer os.RemoveAll(copied)
	from, err := beneath.Open(copied)
	if err != nil {
		return workspace.Entry{}, err
	}
	defer from.Close()
	e, err := s.readCopy(from, name, path)
	if err != nil {
		return workspace.Entry{}, err
	}
	e.Mode, e.Mtime = before[0].Mode, before[0].Mtime
	if f, err := dir.Open(name); err == nil {
		e.Attrs = s.keepAttrs(beneath.AttrsOf(f))
		f.Close()
	}
	if after := looks(); after == before && start-before[0].Ctime > granularity && start-before[1].Ctime > granularity {
		for i, end := range []string{"", "-wal", "-journal"} {
			if before[i] != (beneath.Stat{}) {
				s.stats[path+end] = before[i]
			}
		}
	}
	return e, nil
}

// copyDatabase copies one database into a directory of its own, with what its log
// holds. SQLite sees only the copy: it goes by paths and follows links, and an agent
// lays them. The caller sees to it that the database and
// its journal did not change meanwhile; a log may have grown, but not begun again.
func copyDatabase(ctx context.Context, dir *beneath.Dir, name string) (_ string, err error) {
	at, err := os.MkdirTemp("", "thole-db-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(at))
		}
	}()
	to, err := beneath.Open(at)
	if err != nil {
		return "", err
	}
	defer to.Close()
	most := int64(0)
	for _, part := range []string{name, name + "-wal", name + "-journal"} {
		if err := dir.CopyFile(ctx, part, to, part); part != name && gone(err) {
			continue
		} else if err != nil {
			return "", err
		}
		st, err := to.Lstat(part)
		if err != nil {
			return "", err
		}
		most += st.Size
	}
	if logHead(dir, name+"-wal") != logHead(to, name+"-wal") {
		return "", errChanging
	}
	if err := settleDatabase(ctx, filepath.Join(at, name)); err != nil {
		return "", err
	}
	// A page far beyond the end costs an agent nothing, and us its distance.
	if st, err := to.Lstat(name); err != nil || st.Size > most {
		return "", errors.Join(err, errors.New("the database is larger than its parts"))
	}
	return at, nil
}

// settleDatabase lets SQLite bring a database of our own up to date by its logs.
func settleDatabase(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	var busy, frames, moved int
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("its log is in use")
	}
	return nil
}

// logHead is the beginning of a write-ahead log, which differs each time that one begins.
func logHead(dir *beneath.Dir, name string) (head [32]byte) {
	if f, err := dir.Open(name); err == nil {
		_, _ = io.ReadFull(f, head[:])
		f.Close()
	}
	return head
}

// readCopy places a copy that nobody else writes.
func (s *scan) readCopy(dir *beneath.Dir, name, path string) (workspace.Entry, error) {
	f, err := dir.Open(name)
	if err != nil {
		return workspace.Entry{}, err
	}
	defer f.Close()
	st, err := beneath.StatFile(f)
	if err != nil {
		return workspace.Entry{}, err
	}
	e := workspace.Entry{Path: path, Kind: beneath.File, Size: st.Size}
	if st.Size <= smallFile {
		buf := s.buffer(st.Size)
		if _, err := io.ReadFull(f, buf); err != nil {
			return workspace.Entry{}, err
		}
		e.Sum = objects.SumOf(buf)
		s.placeSmall(&e, buf)
		return e, nil
	}
	kept := s.req.Copy
	s.req.Copy = true // the copy goes away; its bytes must be in the stage
	o, staged, err := s.readLarge(f, st.Size)
	s.req.Copy = kept
	if err != nil {
		return workspace.Entry{}, err
	}
	if e.Sum, err = objects.ParseSum(o.ID); err != nil {
		return workspace.Entry{}, err
	}
	s.placeLarge(&e, o, source{object: o, staged: staged})
	return e, nil
}
