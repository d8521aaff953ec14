package vault

import (
	"context"
	"crypto/rand"
	"time"

	thole "github.com/tholehq/thole"
)

// NewItem is a secret to be set. The value is the caller's to wipe.
type NewItem struct {
	Owner    Owner
	Name     string
	Kind     Kind
	Provider string
	Value    []byte
	Expires  time.Time // zero: never
}

// Create seals a new item.
func (v *Vault) Create(ctx context.Context, actor thole.Actor, n NewItem) (Item, error) {
	if err := v.manages(ctx, actor, n.Owner); err != nil {
		return Item{}, err
	}
	now := v.time()
	if err := validate(n, now); err != nil {
		return Item{}, err
	}
	if err := v.check(n.Kind, n.Provider, n.Value); err != nil {
		return Item{}, err
	}
	i := Item{
		ID: thole.NewID[ItemID](now), Owner: n.Owner, Name: n.Name, Kind: n.Kind, Provider: n.Provider, State: Active, ETag: thole.NewID[string](now),
		Version: 1, CreatedBy: actor.Who(), Created: now, Updated: now, Expires: n.Expires,
	}
	key, sealed, err := v.seal(ctx, &i, n.Value)
	if err != nil {
		return Item{}, wrap("set secret "+n.Name, err)
	}
	err = v.store.AddItem(ctx, i, key, sealed, maxItems, change(i, actor, eventCreate, ""))
	return i, wrap("set secret "+n.Name, err)
}

// seal seals a value as the item's and notes its fingerprint there.
func (v *Vault) seal(ctx context.Context, i *Item, value []byte) (key string, s Sealed, err error) {
	k, dek, err := v.dek(ctx, i.Owner)
	if err != nil {
		return "", s, err
	}
	defer clear(dek)
	if i.Fingerprint, err = fingerprint(dek, value); err != nil {
		return "", s, err
	}
	s, err = Seal(dek, value, i.words()...)
	return k.ID, s, err
}

// Put replaces the value of an item, which makes it active. Only an item that passes
// unless is changed.
func (v *Vault) Put(ctx context.Context, actor thole.Actor, id ItemID, value []byte, unless func(Item) error) (Item, error) {
	i, err := v.Item(ctx, actor, id)
	if err != nil {
		return Item{}, err
	}
	if unless != nil {
		if err := unless(i); err != nil {
			return Item{}, err
		}
	}
	return v.replace(ctx, actor, i, value)
}

// Replace stores a renewed value, if the item is still as etag says.
func (v *Vault) Replace(ctx context.Context, id ItemID, etag string, value []byte) (Item, error) {
	i, err := v.expect(ctx, id, etag)
	if err != nil {
		return Item{}, err
	}
	return v.replace(ctx, thole.SystemActor, i, value)
}

func (v *Vault) replace(ctx context.Context, actor thole.Actor, was Item, value []byte) (Item, error) {
	if err := checkSize(value); err != nil {
		return Item{}, err
	}
	if err := v.check(was.Kind, was.Provider, value); err != nil {
		return Item{}, err
	}
	now := v.time()
	i, err := was.move(eventReplace, thole.NewID[string](now), now)
	if err != nil {
		return Item{}, err
	}
	i.Version++
	_, sealed, err := v.seal(ctx, &i, value)
	if err == nil {
		err = v.store.ReplaceItemIf(ctx, was.ETag, i, sealed, change(i, actor, eventReplace, was.State))
	}
	return i, wrap("replace secret "+was.Name, err)
}

// MarkNeedsLogin records that the provider refuses the value, if the item is still as
// etag says. Until it has a new value it is not opened.
func (v *Vault) MarkNeedsLogin(ctx context.Context, id ItemID, etag string) (Item, error) {
	was, err := v.expect(ctx, id, etag)
	if err != nil {
		return Item{}, err
	}
	if was.Kind != ProviderAuth {
		return Item{}, thole.Errorf(thole.CodeInvalid, "secret %s is of kind %s, not a login", was.Name, was.Kind)
	}
	now := v.time()
	i, err := was.move(eventMark, thole.NewID[string](now), now)
	if err == nil {
		err = v.store.MarkItemIf(ctx, was.ETag, i, change(i, thole.SystemActor, eventMark, was.State))
	}
	return i, err
}

// Revoke erases the value of an item for good. It works while the vault is locked.
func (v *Vault) Revoke(ctx context.Context, actor thole.Actor, id ItemID, unless func(Item) error) (Item, error) {
	was, err := v.Item(ctx, actor, id)
	if err != nil {
		return Item{}, err
	}
	if unless != nil {
		if err := unless(was); err != nil {
			return Item{}, err
		}
	}
	now := v.time()
	i, err := was.move(eventRevoke, thole.NewID[string](now), now)
	if err == nil {
		err = v.store.RevokeItemIf(ctx, was.ETag, i, change(i, actor, eventRevoke, was.State))
	}
	return i, err
}

// expect reads an item that must still be as etag says.
func (v *Vault) expect(ctx context.Context, id ItemID, etag string) (Item, error) {
	i, found, err := v.store.Item(ctx, id)
	switch {
	case err != nil:
		return Item{}, err
	case !found:
		return Item{}, errNoItem(string(id))
	case i.ETag != etag:
		return Item{}, thole.Errorf(thole.CodeConflict, "secret %s was changed meanwhile", i.Name)
	}
	return i, nil
}

func change(i Item, actor thole.Actor, event string, from State) Change {
	return Change{Subject: string(i.ID), At: i.Updated, Actor: actor, Event: event, From: string(from), To: string(i.State), Version: i.Version}
}

// errForeign refuses without saying whether there is such an owner.
func errForeign(a thole.Actor, o Owner) error {
	if !person(a) {
		return errNotPerson()
	}
	return thole.Errorf(thole.CodeForbidden, "you cannot set secrets of this %s", o.Kind)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return thole.Errorf(thole.CodeOf(err), "%s: %w", what, err)
}

func randomKey() []byte {
	b := make([]byte, KeySize)
	rand.Read(b) // never fails: crypto/rand aborts the program instead
	return b
}
