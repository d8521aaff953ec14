package vault

import (
	"cmp"
	"context"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
)

// opens bounds how often Open reads again what changed while it was opened.
const opens = 5

// Find returns the secret that serves an owner's things: the user's own, else the
// project's, the app's, the platform's. One that needs a login is found too: a user who
// has a login of their own never runs on another's without knowing it.
func (v *Vault) Find(ctx context.Context, who thole.Owner, kind Kind, provider string) (Item, error) {
	all, err := v.Candidates(ctx, who, kind, provider)
	if err != nil {
		return Item{}, err
	}
	if len(all) == 0 {
		return Item{}, thole.Errorf(thole.CodeNotFound, "no secret of kind %s for %s", kind, provider).WithHint("set one with: thole secret set")
	}
	return all[0], nil
}

// Candidates are all secrets that Find chooses from, the first first: by owner, active
// ones before others, then by age.
func (v *Vault) Candidates(ctx context.Context, who thole.Owner, kind Kind, provider string) ([]Item, error) {
	all, err := v.store.Items(ctx, Filter{Owners: ownersOf(who), Kind: kind, Provider: provider})
	if err != nil {
		return nil, err
	}
	now := v.time()
	all = slices.DeleteFunc(all, func(i Item) bool { return i.expired(now) })
	slices.SortStableFunc(all, func(a, b Item) int {
		return cmp.Or(cmp.Compare(slices.Index(OwnerKinds, a.Owner.Kind), slices.Index(OwnerKinds, b.Owner.Kind)), cmp.Compare(rank(a.State), rank(b.State)))
	})
	return all, nil
}

func rank(s State) int {
	if s == Active {
		return 0
	}
	return 1
}

// Open returns the value of an item, after its use is recorded. The caller wipes it. A
// locked vault is ErrLocked; an item that needs a login is thole.CodeHeld, one that is
// revoked or expired thole.CodeGone.
func (v *Vault) Open(ctx context.Context, id ItemID, u Use) (Secret, error) {
	var err error
	for range opens { // a value that is renewed at the same time is read again
		var s Secret
		if s, err = v.open(ctx, id, u); thole.CodeOf(err) != thole.CodeConflict {
			return s, err
		}
	}
	return Secret{}, err
}

func (v *Vault) open(ctx context.Context, id ItemID, u Use) (Secret, error) {
	u.At = v.time()
	st, found, err := v.store.Stored(ctx, id, u)
	if err != nil {
		return Secret{}, err
	}
	if !found {
		return Secret{}, errNoItem(string(id))
	}
	if err := st.Item.usable(u.At); err != nil {
		return Secret{}, err
	}
	s, err := v.unseal(ctx, st)
	if err != nil {
		return Secret{}, wrap("open secret "+st.Item.Name, err)
	}
	if !st.Used {
		if err := v.store.UseItemIf(ctx, id, st.Item.ETag, u); err != nil {
			s.Wipe()
			return Secret{}, wrap("open secret "+st.Item.Name, err)
		}
	}
	return s, nil
}

func (v *Vault) unseal(ctx context.Context, st Stored) (Secret, error) {
	dek, err := v.keys.Unwrap(ctx, st.Key.KEK, st.Key.Wrapped, st.Key.words()...)
	if err != nil {
		return Secret{}, err
	}
	defer clear(dek)
	plain, err := Unseal(dek, st.Sealed, st.Item.words()...)
	if err != nil {
		return Secret{}, thole.Errorf(thole.CodeInternal, "%w", err).WithHint("set it again: thole secret set %s", st.Item.Name)
	}
	return newSecret(plain), nil
}

// usable says why an item is not to be opened.
func (i Item) usable(now time.Time) error {
	switch {
	case i.State == Revoked:
		return thole.Errorf(thole.CodeGone, "secret %s was revoked", i.Name).WithHint("set another: thole secret set %s", i.Name)
	case i.State == NeedsLogin:
		return thole.Errorf(thole.CodeHeld, "the login %s is refused by %s and needs a new one", i.Name, i.Provider).
			WithHint("log in again: thole provider login %s, or thole secret set %s", i.Provider, i.Name)
	case i.expired(now):
		return thole.Errorf(thole.CodeGone, "secret %s expired", i.Name).WithHint("set another: thole secret set %s", i.Name)
	}
	return nil
}

func (i Item) expired(now time.Time) bool { return !i.Expires.IsZero() && !now.Before(i.Expires) }
