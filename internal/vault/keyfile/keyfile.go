// Package keyfile keeps the vault's key in a file: 32 random bytes that only its owner
// may read. It is a vault.Keeper and a vault.Rotator. The file is read at every use, so
// that taking it away locks the vault and putting it back unlocks it.
//
// It refuses a file that others can read, and never writes over one.
package keyfile

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/vault"
)

// File keeps the key at Path. While it is changed the new key is at Path.next; former
// keys are at Path.ID.old.
type File struct{ Path string }

var (
	_ vault.Keeper  = File{}
	_ vault.Rotator = File{}
)

func (f File) next() string         { return f.Path + ".next" }
func (f File) old(id string) string { return f.Path + "." + id + ".old" }

// Make implements vault.Keeper.
func (f File) Make(context.Context) error {
	if _, err := f.newest(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.create(f.Path)
}

// Wrap implements vault.Keeper.
func (f File) Wrap(_ context.Context, dek []byte, words ...string) (string, []byte, error) {
	key, err := f.newest()
	if err != nil {
		return "", nil, err
	}
	defer clear(key)
	id := idOf(key)
	s, err := vault.Seal(key, dek, append(words, id)...)
	return id, append(s.Nonce, s.Text...), err
}

// Unwrap implements vault.Keeper.
func (f File) Unwrap(_ context.Context, id string, wrapped []byte, words ...string) ([]byte, error) {
	key, err := f.find(id)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	const nonce = 12
	if len(wrapped) < nonce {
		return nil, thole.Errorf(thole.CodeInternal, "a data key of the vault is damaged")
	}
	dek, err := vault.Unseal(key, vault.Sealed{Nonce: wrapped[:nonce], Text: wrapped[nonce:]}, append(words, id)...)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInternal, "a data key of the vault: %w", err)
	}
	return dek, nil
}

// Has implements vault.Keeper.
func (f File) Has(_ context.Context, id string) error {
	key, err := f.find(id)
	clear(key)
	return err
}

// Next implements vault.Rotator.
func (f File) Next(context.Context) (string, error) {
	if _, err := f.read(f.next()); errors.Is(err, fs.ErrNotExist) {
		if err := f.create(f.next()); err != nil {
			return "", err
		}
	}
	key, err := f.read(f.next())
	defer clear(key)
	return idOf(key), err
}

// Rotating implements vault.Rotator.
func (f File) Rotating(context.Context) (bool, error) {
	_, err := os.Lstat(f.next())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Settle implements vault.Rotator. The old key has its second name before the new one
// takes its place, so that there is always a key.
func (f File) Settle(context.Context) (string, error) {
	key, err := f.read(f.Path)
	if err != nil {
		return "", err
	}
	defer clear(key)
	kept := f.old(idOf(key))
	if err := os.Link(f.Path, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", thole.Errorf(thole.CodeUnavailable, "keep the vault's old key: %w", err)
	}
	err = os.Rename(f.next(), f.Path)
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(f.Path))
	}
	if err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "change the vault's key: %w", err)
	}
	return kept, nil
}

// newest is the key that wraps: the one of a rotation in progress, else the present one.
func (f File) newest() ([]byte, error) {
	key, err := f.read(f.next())
	if errors.Is(err, fs.ErrNotExist) {
		return f.read(f.Path)
	}
	return key, err
}

// find reads the key with that id, which may be the new or a former one. It looks again
// where files changed their names meanwhile.
func (f File) find(id string) (key []byte, err error) {
	for range 3 {
		if key, err = f.look(id); err == nil {
			break
		}
	}
	return key, err
}

func (f File) look(id string) ([]byte, error) {
	var first error
	for _, path := range []string{f.Path, f.next(), f.old(id)} {
		key, err := f.read(path)
		if err == nil && idOf(key) == id {
			return key, nil
		}
		clear(key)
		if err == nil {
			err = f.locked("%s is another key than the one that the secrets were set with", path)
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// idOf names a key without saying anything of it: it has 256 random bits.
func idOf(key []byte) string {
	sum := sha256.Sum256(append([]byte("thole vault key\x00"), key...))
	return hex.EncodeToString(sum[:8])
}

func (f File) locked(format string, args ...any) error {
	return thole.Errorf(thole.CodeUnavailable, "%w: %w", vault.ErrLocked, fmt.Errorf(format, args...)).
		WithHint("put the key file back at %s, readable by you alone; if it is lost, remove the secrets with thole secret rm and set them again", f.Path)
}

// read reads a key file that nobody else can read.
func (f File) read(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, f.locked("the key file is missing: %w", err)
	}
	if err != nil {
		return nil, f.locked("%w", err)
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return nil, f.locked("%w", err)
	}
	if why := refuse(st); why != "" {
		return nil, f.locked("the key file %s %s", path, why)
	}
	key := make([]byte, vault.KeySize)
	if _, err := io.ReadFull(file, key); err != nil {
		return nil, f.locked("read the key file %s: %w", path, err)
	}
	return key, nil
}

func refuse(st os.FileInfo) string {
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.Mode().IsRegular():
		return "is not a regular file"
	case st.Mode().Perm()&0o077 != 0:
		return fmt.Sprintf("has mode %#o: others can use it (chmod 600)", st.Mode().Perm())
	case ok && int(sys.Uid) != os.Geteuid() && sys.Uid != 0:
		return "belongs to another user"
	case st.Size() != vault.KeySize:
		return fmt.Sprintf("has %d bytes, not %d", st.Size(), vault.KeySize)
	}
	return ""
}

// creating keeps two callers apart who make a first key at the same time.
var creating sync.Mutex

// create makes a key file whole or not at all, and never in place of another.
func (f File) create(path string) error {
	key := make([]byte, vault.KeySize)
	rand.Read(key) // never fails: crypto/rand aborts the program instead
	defer clear(key)
	if err := place(path, key); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "make the vault's key: %w", err).WithHint("make %s a directory that can be written, or set vault.key_file", filepath.Dir(path))
	}
	return nil
}

func place(path string, key []byte) error {
	creating.Lock()
	defer creating.Unlock()
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := path + ".tmp" // one name, so that what a kill left is removed by the next
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	_, err = tmp.Write(key)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(name, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return atomicfile.SyncDir(dir)
}
