package vault

import (
	"context"
	"slices"

	thole "github.com/tholehq/thole"
)

// maxTrail bounds how many uses and changes of an item are shown.
const maxTrail = 200

// Items lists what an actor manages, oldest first; revoked ones too if asked.
func (v *Vault) Items(ctx context.Context, actor thole.Actor, revoked bool) ([]Item, error) {
	if !person(actor) {
		return nil, errNotPerson()
	}
	everything, err := v.may(ctx, actor, Owner{Kind: OfPlatform})
	if err != nil {
		return nil, err
	}
	if everything {
		all, err := v.store.Items(ctx, Filter{Revoked: revoked})
		return slices.DeleteFunc(all, func(i Item) bool { return i.Owner.Kind == OfUser && i.Owner.ID != string(actor.User) }), err
	}
	var owners []Owner
	for _, o := range ownersOf(thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: actor.User}) {
		ok, err := v.may(ctx, actor, o)
		if err != nil {
			return nil, err
		}
		if ok {
			owners = append(owners, o)
		}
	}
	return v.store.Items(ctx, Filter{Owners: owners, Revoked: revoked})
}

// Item finds one that the actor manages. What is another's does not exist.
func (v *Vault) Item(ctx context.Context, actor thole.Actor, id ItemID) (Item, error) {
	if !person(actor) {
		return Item{}, errNotPerson()
	}
	i, found, err := v.store.Item(ctx, id)
	if err != nil {
		return Item{}, err
	}
	ok := false
	if found {
		if ok, err = v.may(ctx, actor, i.Owner); err != nil {
			return Item{}, err
		}
	}
	if !ok {
		return Item{}, errNoItem(string(id))
	}
	return i, nil
}

// Named finds an owner's live item by its name.
func (v *Vault) Named(ctx context.Context, actor thole.Actor, o Owner, name string) (Item, error) {
	if err := v.manages(ctx, actor, o); err != nil {
		return Item{}, err
	}
	all, err := v.store.Items(ctx, Filter{Owners: []Owner{o}, Name: name})
	if err != nil {
		return Item{}, err
	}
	if len(all) == 0 {
		return Item{}, errNoItem(name)
	}
	return all[0], nil
}

// Uses lists the latest uses of an item.
func (v *Vault) Uses(ctx context.Context, actor thole.Actor, id ItemID) ([]Use, error) {
	if _, err := v.Item(ctx, actor, id); err != nil {
		return nil, err
	}
	return v.store.Uses(ctx, id, maxTrail)
}

// Changes lists the latest changes of an item: who set, replaced and revoked it.
func (v *Vault) Changes(ctx context.Context, actor thole.Actor, id ItemID) ([]Change, error) {
	if _, err := v.Item(ctx, actor, id); err != nil {
		return nil, err
	}
	return v.store.Changes(ctx, string(id), maxTrail)
}

// Test opens an item and tries it; the line says what was found.
func (v *Vault) Test(ctx context.Context, actor thole.Actor, id ItemID) (string, error) {
	i, err := v.Item(ctx, actor, id)
	if err != nil {
		return "", err
	}
	s, err := v.Open(ctx, id, Use{Purpose: "test"})
	if err != nil {
		return "", err
	}
	defer s.Wipe()
	return v.probe(ctx, i, s)
}

// Fault is an item that does not open, and why.
type Fault struct {
	Item Item
	Err  error
}

// Check opens every live item without recording a use. In a locked vault it returns
// ErrLocked besides what is wrong with those that can be opened.
func (v *Vault) Check(ctx context.Context) (faults []Fault, err error) {
	all, err := v.store.Items(ctx, Filter{})
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		st, found, err := v.store.Stored(ctx, i.ID, Use{})
		if err != nil {
			return nil, err
		}
		if !found || st.Item.State == Revoked || v.keys.Has(ctx, st.Key.KEK) != nil {
			continue
		}
		s, err := v.unseal(ctx, st)
		if err != nil {
			faults = append(faults, Fault{i, err})
		}
		s.Wipe()
	}
	return faults, v.Locked(ctx)
}
