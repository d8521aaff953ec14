package vault

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
)

// ErrLocked says that the key which wraps the data keys is not there. It has
// thole.CodeUnavailable and a hint that says how to unlock.
var ErrLocked = errors.New("the vault is locked")

// Keeper holds the keys that wrap data keys, outside of the store: a file, later a
// service. Words bind what is wrapped as in Seal. An error of Wrap, Unwrap and Has
// that is about the key itself wraps ErrLocked. Safe for concurrent use.
type Keeper interface {
	// Make makes the first key unless there is one.
	Make(ctx context.Context) error
	// Wrap wraps with the newest key and names it.
	Wrap(ctx context.Context, dek []byte, words ...string) (kek string, wrapped []byte, err error)
	Unwrap(ctx context.Context, kek string, wrapped []byte, words ...string) ([]byte, error)
	// Has returns nil when Unwrap can use the key.
	Has(ctx context.Context, kek string) error
}

// Rotator is a Keeper whose key can be changed.
type Rotator interface {
	// Next makes a new key durable next to the present one, or finds the one that an
	// interrupted rotation made. From then on Wrap takes it.
	Next(ctx context.Context) (kek string, err error)
	// Rotating reports whether Next was called and Settle was not.
	Rotating(ctx context.Context) (bool, error)
	// Settle puts the new key in the place of the old one, which is kept for backups
	// from before; kept is where.
	Settle(ctx context.Context) (kept string, err error)
}

// Key is the data key of one owner.
type Key struct {
	ID      string
	Owner   Owner
	KEK     string // the key that wraps it
	Wrapped []byte
	Created time.Time
}

// dek returns an owner's data key, made if the owner has none. The caller wipes it.
func (v *Vault) dek(ctx context.Context, o Owner) (Key, []byte, error) {
	if err := v.unlocked(ctx); err != nil {
		return Key{}, nil, err
	}
	k, found, err := v.store.Key(ctx, o)
	if err != nil {
		return Key{}, nil, err
	}
	if !found {
		if k, err = v.newKey(ctx, o); err != nil {
			return Key{}, nil, err
		}
	}
	plain, err := v.keys.Unwrap(ctx, k.KEK, k.Wrapped, k.words()...)
	return k, plain, err
}

func (v *Vault) newKey(ctx context.Context, o Owner) (Key, error) {
	v.wrapping.RLock()
	defer v.wrapping.RUnlock()
	if err := v.keys.Make(ctx); err != nil {
		return Key{}, err
	}
	now := v.time()
	k := Key{ID: thole.NewID[string](now), Owner: o, Created: now}
	plain := randomKey()
	defer clear(plain)
	var err error
	if k.KEK, k.Wrapped, err = v.keys.Wrap(ctx, plain, k.words()...); err != nil {
		return Key{}, err
	}
	return v.store.AddKey(ctx, k)
}

// unlocked returns nil when every data key can be unwrapped. Nothing is sealed
// before: a second key in the place of a missing one would lock what is there for good.
func (v *Vault) unlocked(ctx context.Context) error {
	all, err := v.store.Keys(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, k := range all {
		if seen[k.KEK] {
			continue
		}
		seen[k.KEK] = true
		if err := v.keys.Has(ctx, k.KEK); err != nil {
			return err
		}
	}
	return nil
}

// Locked returns nil while the vault is unlocked, else why it is locked, with ErrLocked
// in its chain and a hint.
func (v *Vault) Locked(ctx context.Context) error { return v.unlocked(ctx) }
