package daemon

import (
	"context"
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/vault"
)

// SecretMethods let the user of the home manage secrets over its socket.
func SecretMethods(v *vault.Vault, now func() time.Time) map[string]Method {
	s := &secrets{v, now}
	return map[string]Method{
		vault.MethodSet:    s.with(s.set),
		vault.MethodList:   s.with(s.list),
		vault.MethodShow:   s.with(s.show),
		vault.MethodRevoke: s.with(s.revoke),
		vault.MethodTest:   s.with(s.test),
		vault.MethodRotate: s.with(func(ctx context.Context, actor thole.Actor, _ vault.Params) (any, error) { return v.Rotate(ctx, actor) }),
	}
}

type secrets struct {
	vault *vault.Vault
	now   func() time.Time
}

// with decodes the params. They may hold a value, so a refusal does not repeat them.
func (*secrets) with(do func(context.Context, thole.Actor, vault.Params) (any, error)) Method {
	return func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
		defer clear(params)
		return method(func(ctx context.Context, actor thole.Actor, p vault.Params) (any, error) {
			defer clear(p.Value)
			return do(ctx, actor, p)
		})(ctx, actor, params)
	}
}

func (s *secrets) find(ctx context.Context, actor thole.Actor, p vault.Params) (vault.Owner, vault.Item, error) {
	if p.Owner == "" {
		p.Owner = vault.OfUser
	}
	o, err := vault.OwnerOf(p.Owner, thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: actor.User})
	if err != nil {
		return o, vault.Item{}, err
	}
	i, err := s.vault.Named(ctx, actor, o, p.Name)
	return o, i, err
}

// set makes an item, or gives the one of that name a new value.
func (s *secrets) set(ctx context.Context, actor thole.Actor, p vault.Params) (any, error) {
	o, i, err := s.find(ctx, actor, p)
	switch {
	case thole.CodeOf(err) == thole.CodeNotFound:
		n := vault.NewItem{Owner: o, Name: p.Name, Kind: p.Kind, Provider: p.Provider, Value: p.Value}
		if n.Kind == "" {
			n.Kind = vault.Env
			if n.Provider != "" {
				n.Kind = vault.ProviderAuth
			}
		}
		if p.Life > 0 {
			n.Expires = s.now().Add(time.Duration(p.Life) * time.Second)
		}
		i, err = s.vault.Create(ctx, actor, n)
	case err != nil:
	case p.Kind != "" && p.Kind != i.Kind || p.Provider != "" && p.Provider != i.Provider || p.Life > 0:
		err = thole.Errorf(thole.CodeConflict, "secret %s is of kind %s for %q: only its value can be replaced", i.Name, i.Kind, i.Provider).
			WithHint("leave kind, provider and expiry out, or remove it first: thole secret rm %s", i.Name)
	default:
		i, err = s.vault.Put(ctx, actor, i.ID, p.Value, nil)
	}
	return i.Describe(), err
}

func (s *secrets) list(ctx context.Context, actor thole.Actor, p vault.Params) (any, error) {
	all, err := s.vault.Items(ctx, actor, p.All)
	if err != nil {
		return nil, err
	}
	out := vault.Listed{Items: vault.Describe(all)}
	if locked := s.vault.Locked(ctx); locked != nil {
		out.Locked, out.Hint = locked.Error(), thole.HintOf(locked)
	}
	return out, nil
}

func (s *secrets) show(ctx context.Context, actor thole.Actor, p vault.Params) (any, error) {
	_, i, err := s.find(ctx, actor, p)
	if err != nil {
		return nil, err
	}
	uses, err := s.vault.Uses(ctx, actor, i.ID)
	if err != nil {
		return nil, err
	}
	changes, err := s.vault.Changes(ctx, actor, i.ID)
	return vault.Shown{Description: i.Describe(), Uses: vault.DescribeUses(uses), Changes: vault.DescribeChanges(changes)}, err
}

func (s *secrets) revoke(ctx context.Context, actor thole.Actor, p vault.Params) (any, error) {
	_, i, err := s.find(ctx, actor, p)
	if err == nil {
		i, err = s.vault.Revoke(ctx, actor, i.ID, nil)
	}
	return i.Describe(), err
}

func (s *secrets) test(ctx context.Context, actor thole.Actor, p vault.Params) (any, error) {
	_, i, err := s.find(ctx, actor, p)
	if err != nil {
		return nil, err
	}
	found, err := s.vault.Test(ctx, actor, i.ID)
	return vault.Tested{Found: found}, err
}
