// Package vault keeps secrets: the logins of agent CLIs, API keys, and what
// repositories and tools are reached with. It owns who may set and remove them, the
// states of an item, and the envelope that a value is sealed in: a data key for each
// owner, wrapped by a key that the store never sees (Keeper).
//
// A value leaves it in one way, Open, which records the use first; nothing shows a
// value to a person. Without the key the vault is locked (ErrLocked): names and
// fingerprints can still be listed and items removed. It knows no provider, no
// upstream and no file of a CLI.
package vault

import (
	"context"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// Can decides whether an actor may do something to a thing.
type Can func(ctx context.Context, actor thole.Actor, action authz.Action, on authz.Resource) (bool, error)

// Config makes a Vault.
type Config struct {
	Store Store
	Keys  Keeper
	// Check judges a value before it is sealed; nil: every value will do.
	Check func(kind Kind, provider string, value []byte) error
	// Probe tries an opened item and says in a line what it found; nil: opening it is
	// all that can be tried.
	Probe func(ctx context.Context, i Item, s Secret) (string, error)
	// Can decides who manages what users share: what is a project's, an app's or the
	// platform's; nil: the home's own user.
	Can Can
	Now func() time.Time // time.Now when nil
}

// Vault sets, finds, opens and removes secrets. Safe for concurrent use, also by
// several processes on one store: every change is a compare-and-set.
type Vault struct {
	store Store
	keys  Keeper
	check func(Kind, string, []byte) error
	probe func(context.Context, Item, Secret) (string, error)
	can   Can
	now   func() time.Time

	rotating sync.Mutex // one rotation at a time in this process
	// wrapping is held by who adds a data key, and alone by who changes the key that it
	// is wrapped with: a data key is never added under the old one after that.
	wrapping sync.RWMutex
}

// New makes a vault.
func New(cfg Config) *Vault {
	v := &Vault{store: cfg.Store, keys: cfg.Keys, check: cfg.Check, probe: cfg.Probe, can: cfg.Can, now: cfg.Now}
	if v.can == nil {
		v.can = homesUser
	}
	if v.now == nil {
		v.now = time.Now
	}
	if v.check == nil {
		v.check = func(Kind, string, []byte) error { return nil }
	}
	if v.probe == nil {
		v.probe = func(context.Context, Item, Secret) (string, error) { return "it opens", nil }
	}
	return v
}

func (v *Vault) time() time.Time { return v.now().UTC().Truncate(time.Millisecond) }

// may reports whether an actor manages the items of an owner. Agents and the program
// itself manage none, and nobody those of another user.
func (v *Vault) may(ctx context.Context, a thole.Actor, o Owner) (bool, error) {
	if !person(a) {
		return false, nil
	}
	on := authz.Resource{}
	switch o.Kind {
	case OfUser:
		return o.ID == string(a.User), nil
	case OfProject:
		on.Project = thole.ProjectID(o.ID)
	case OfApp:
		on.App = thole.AppID(o.ID)
	case OfPlatform:
	}
	ok, err := v.can(ctx, a, authz.ManageAgentConfig, on)
	if err != nil {
		err = thole.Errorf(thole.CodeOf(err), "read rights: %w", err)
	}
	return ok, err
}

// manages refuses an actor who does not manage the items of an owner.
func (v *Vault) manages(ctx context.Context, a thole.Actor, o Owner) error {
	ok, err := v.may(ctx, a, o)
	if err == nil && !ok {
		err = errForeign(a, o)
	}
	return err
}

// homesUser is the rule without roles: the home's own user manages what is shared.
func homesUser(_ context.Context, a thole.Actor, _ authz.Action, _ authz.Resource) (bool, error) {
	return a.User == thole.LocalUser, nil
}

func person(a thole.Actor) bool {
	return a.Valid() && a.Via != thole.AgentActor.Via && a.Via != thole.SystemActor.Via
}

func errNotPerson() error {
	return thole.Errorf(thole.CodeForbidden, "only a person manages secrets")
}

func errNoItem(what string) error {
	return thole.Errorf(thole.CodeNotFound, "no secret %s", what).WithHint("thole secret list shows them")
}
