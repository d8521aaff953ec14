package price

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
)

// maxFile bounds the file of a table.
const maxFile = 4 << 20

// File is a table that follows a file: a change holds from the next call on, without a
// restart. A file that becomes wrong is reported once and the table before it stays.
type File struct {
	path string // "": the built-in table only
	must bool
	log  *slog.Logger

	mu    sync.Mutex // guards what follows
	table *Table
	seen  stamp
}

// stamp distinguishes the states of a file.
type stamp struct {
	there bool
	size  int64
	mod   time.Time
	ino   any
}

// Open reads the file. Without it the built-in table holds, unless it must be there.
func Open(path string, must bool, log *slog.Logger) (*File, error) {
	f := &File{path: path, must: must, log: log, table: Default()}
	if path == "" {
		return f, nil
	}
	seen, err := f.look()
	if err != nil {
		return nil, err
	}
	if f.table, err = f.read(seen); err != nil {
		return nil, err
	}
	f.seen = seen
	return f, nil
}

// Table is the table as it is now.
func (f *File) Table() *Table {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" {
		return f.table
	}
	now, err := f.look()
	if err == nil && now == f.seen {
		return f.table
	}
	var t *Table
	if err == nil {
		t, err = f.read(now)
	}
	if err != nil {
		if now != f.seen {
			f.log.Warn("the price table is kept as it was", "err", err)
		}
		f.seen = now
		return f.table
	}
	f.log.Info("price table read", "was", f.table.Version, "to", t.Version, "path", t.Origin)
	f.table, f.seen = t, now
	return t
}

func (f *File) look() (stamp, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, nil
	}
	if err != nil {
		return stamp{}, thole.Errorf(thole.CodeInvalid, "read prices: %w", err)
	}
	return stamp{there: true, size: info.Size(), mod: info.ModTime(), ino: inode(info)}, nil
}

func (f *File) read(s stamp) (*Table, error) {
	if !s.there {
		if f.must {
			return nil, thole.Errorf(thole.CodeInvalid, "the price table %s is not there", f.path).WithHint("write it, or take prices.file out of the configuration")
		}
		return Default(), nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read prices: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read prices: %w", err)
	}
	if len(text) > maxFile {
		return nil, thole.Errorf(thole.CodeInvalid, "prices of %s: more than %d bytes", f.path, maxFile)
	}
	return Parse(f.path, string(text))
}
