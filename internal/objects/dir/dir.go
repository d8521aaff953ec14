// Package dir keeps objects in a directory of this machine: one file per object,
// put in place by a rename of a synced file. Its links are URLs of its own
// handler, signed with a key that never leaves the process.
//
// It refuses to leave its directory: keys are checked and opened beneath it.
package dir

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// incoming holds files that are not objects yet. No key can name it: objects
// live below data.
const (
	incoming = "incoming"
	data     = "data"
)

// Store implements objects.Store.
type Store struct {
	root   *os.Root
	base   string
	secret [32]byte

	// folders is held for reading while a file gets its place, and for writing while
	// empty directories go.
	folders sync.RWMutex
}

var (
	_ objects.Store = (*Store)(nil)
	_ objects.Parts = (*Store)(nil)
)

// Open opens, and makes if needed, a store in dir. base is where Handler can be
// reached, such as "http://127.0.0.1:7000".
func Open(dir, base string) (*Store, error) {
	for _, sub := range []string{incoming, data} {
		if err := os.MkdirAll(dir+"/"+sub, 0o700); err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "open object directory: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "open object directory: %w", err)
	}
	s := &Store{root: root, base: base}
	rand.Read(s.secret[:])
	return s, nil
}

// Check tries whether the directory is still the one that was opened, and takes
// files.
func (s *Store) Check(context.Context) error {
	at, err := os.Stat(s.root.Name())
	if err == nil {
		var have os.FileInfo
		if have, err = s.root.Stat("."); err == nil && !os.SameFile(at, have) {
			err = errors.New("another directory is in its place")
		}
	}
	name := incoming + "/" + newName()
	if err == nil {
		err = s.root.WriteFile(name, nil, 0o600)
	}
	if err == nil {
		err = s.root.Remove(name)
	}
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "use object directory: %w", err)
	}
	return nil
}

// Close releases the directory.
func (s *Store) Close() error { return s.root.Close() }

func file(key string) (string, error) {
	if err := objects.CheckKey(key); err != nil {
		return "", err
	}
	return data + "/" + key, nil
}

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, key string, body io.Reader, size int64) error {
	return s.put(ctx, key, body, size, nil)
}

func newName() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// put stores body if it has the size and, when one is given, the sum.
func (s *Store) put(ctx context.Context, key string, body io.Reader, size int64, want *objects.Sum) (err error) {
	name, err := file(key)
	if err != nil {
		return err
	}
	temp := incoming + "/" + newName()
	f, err := s.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("store object: %w", err)
	}
	defer func() {
		f.Close()
		if err != nil {
			_ = s.root.Remove(temp)
		}
	}()
	var sum hash.Hash
	var w io.Writer = f
	if want != nil {
		sum = sha256.New()
		w = io.MultiWriter(f, sum)
	}
	n, err := io.Copy(w, io.LimitReader(withContext(ctx, body), size+1))
	if err != nil {
		return fmt.Errorf("store object: %w", err)
	}
	if n != size {
		return thole.Errorf(thole.CodeInvalid, "object has %d bytes, not the %d announced", n, size)
	}
	if want != nil && objects.Sum(sum.Sum(nil)) != *want {
		return thole.Errorf(thole.CodeInvalid, "object does not have the sum announced")
	}
	return s.place(f, temp, name)
}

// place makes a written file the object of a name.
func (s *Store) place(f *os.File, temp, name string) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("store object: %w", err)
	}
	parent := path.Dir(name)
	s.folders.RLock()
	defer s.folders.RUnlock()
	if err := s.root.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("store object: %w", err)
	}
	if err := s.root.Rename(temp, name); err != nil {
		return fmt.Errorf("store object: %w", err)
	}
	return s.syncDirs(parent)
}

// syncDirs makes the new name durable, and those of directories that may be new.
func (s *Store) syncDirs(dir string) error {
	for ; ; dir = path.Dir(dir) {
		d, err := s.root.Open(dir)
		if err != nil {
			return fmt.Errorf("store object: %w", err)
		}
		err = errors.Join(d.Sync(), d.Close())
		if err != nil {
			return fmt.Errorf("store object: %w", err)
		}
		if dir == data {
			return nil
		}
	}
}

func (s *Store) open(key string) (*os.File, fs.FileInfo, error) {
	name, err := file(key)
	if err != nil {
		return nil, nil, err
	}
	f, err := s.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %s", objects.ErrNotFound, key)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read object: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s", objects.ErrNotFound, key)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// Get implements objects.Store.
func (s *Store) Get(_ context.Context, key string, off, n int64) (io.ReadCloser, error) {
	f, st, err := s.open(key)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		n = st.Size() - off
	}
	if off < 0 || n < 0 || off+n > st.Size() {
		f.Close()
		return nil, thole.Errorf(thole.CodeInvalid, "range %d+%d is outside an object of %d bytes", off, n, st.Size())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, off, n), f}, nil
}

// Stat implements objects.Store.
func (s *Store) Stat(_ context.Context, key string) (objects.Info, error) {
	f, st, err := s.open(key)
	if err != nil {
		return objects.Info{}, err
	}
	defer f.Close()
	return info(key, st), nil
}

func info(key string, st fs.FileInfo) objects.Info {
	return objects.Info{Key: key, Size: st.Size(), Modified: st.ModTime().UTC(), ETag: fmt.Sprintf("%x-%x", st.ModTime().UnixNano(), st.Size())}
}

// Delete implements objects.Store.
func (s *Store) Delete(_ context.Context, key string) error {
	name, err := file(key)
	if err != nil {
		return err
	}
	if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete object: %w", err)
	}
	s.folders.Lock()
	defer s.folders.Unlock()
	for dir := path.Dir(name); dir != data && s.root.Remove(dir) == nil; dir = path.Dir(dir) {
		// A directory that holds something stays.
	}
	return nil
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, error) {
	var out []objects.Info
	errFull := errors.New("full")
	start := data
	if i := strings.LastIndexByte(prefix, '/'); i > 0 {
		if err := objects.CheckKey(prefix[:i]); err != nil {
			return nil, err
		}
		start += "/" + prefix[:i]
	}
	// A directory sorts among keys as its name with a slash, which is not how
	// WalkDir orders it next to names that hold bytes below the slash.
	var walk func(dir string) error
	walk = func(dir string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := fs.ReadDir(s.root.FS(), dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		sortAsKeys(entries)
		for _, e := range entries {
			name := dir + "/" + e.Name()
			key := strings.TrimPrefix(name, data+"/")
			if e.IsDir() {
				below := key + "/"
				if (after != "" && below < after && !strings.HasPrefix(after, below)) || (!strings.HasPrefix(below, prefix) && !strings.HasPrefix(prefix, below)) {
					continue
				}
				if err := walk(name); err != nil {
					return err
				}
				continue
			}
			if key <= after || !strings.HasPrefix(key, prefix) {
				continue
			}
			st, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if out = append(out, info(key, st)); len(out) == limit {
				return errFull
			}
		}
		return nil
	}
	if err := walk(start); err != nil && !errors.Is(err, errFull) {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	return out, nil
}
