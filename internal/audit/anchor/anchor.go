// Package anchor keeps the signed head of the audit chain and the key that signs it in a
// directory of the home, outside of the store and of its backups. It is an audit.Anchor.
//
// It refuses a key that others can read, and never writes over one.
package anchor

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/strictjson"
)

// Dir holds the files key and head.json.
type Dir string

var _ audit.Anchor = Dir("")

// DirName is the directory's name in a home.
const DirName = "audit"

func (d Dir) head() string { return filepath.Join(string(d), "head.json") }

// Sign implements audit.Anchor.
func (d Dir) Sign(h audit.Head, at time.Time) (audit.SignedHead, error) {
	key, err := d.key()
	if err != nil {
		return audit.SignedHead{}, err
	}
	defer clear(key)
	return audit.Sign(key, h, at), nil
}

func (d Dir) key() (ed25519.PrivateKey, error) {
	path := filepath.Join(string(d), "key")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(string(d), 0o700); err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "make the key of the audit chain: %w", err)
		}
		seed := make([]byte, ed25519.SeedSize)
		rand.Read(seed) // never fails: crypto/rand aborts the program instead
		if err := atomicfile.Write(path, seed, 0o600); err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "make the key of the audit chain: %w", err)
		}
		return ed25519.NewKeyFromSeed(seed), nil
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "read the key of the audit chain: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, thole.Errorf(thole.CodeForbidden, "the key of the audit chain %s can be read by others", path).WithHint("chmod 600 %s", path)
	}
	seed, err := os.ReadFile(path)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, thole.Errorf(thole.CodeUnavailable, "the key of the audit chain %s is not a key of %d bytes", path, ed25519.SeedSize).WithHint("put the right file back; without it, move it away: heads are then signed with a new key")
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Last implements audit.Anchor.
func (d Dir) Last() (h audit.SignedHead, found bool, err error) {
	data, err := os.ReadFile(d.head())
	if errors.Is(err, fs.ErrNotExist) {
		return h, false, nil
	}
	if err == nil {
		err = strictjson.Unmarshal(data, &h)
	}
	if err != nil {
		return h, false, thole.Errorf(thole.CodeUnavailable, "read the signed head of the audit chain %s: %w", d.head(), err)
	}
	return h, true, nil
}

// Keep implements audit.Anchor.
func (d Dir) Keep(h audit.SignedHead) error {
	data, err := json.Marshal(h)
	if err == nil {
		err = atomicfile.Write(d.head(), append(data, '\n'), 0o600)
	}
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "keep the signed head of the audit chain: %w", err)
	}
	return nil
}

// SetAside moves the head away when an older store is put in the place of the one it is of;
// kept is where it is then, "" when there was none. It still proves what was cut off.
func (d Dir) SetAside(now time.Time) (kept string, err error) {
	kept = filepath.Join(string(d), "head."+now.UTC().Format("20060102-150405.000")+".json")
	if err := os.Rename(d.head(), kept); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "set the signed head of the audit chain aside: %w", err)
	}
	return kept, nil
}
