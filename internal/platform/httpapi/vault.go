package httpapi

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/vault"
)

// ItemIn names a secret.
type ItemIn struct {
	Item string `path:"item_id" maxLength:"64"`
}

func (in ItemIn) id() vault.ItemID { return vault.ItemID(in.Item) }

// ConfirmIn is the proof that setting a secret needs: what is set here pays for turns
// and sees what they send.
type ConfirmIn struct {
	Code string `json:"confirm_code,omitempty" maxLength:"200" doc:"code of a new login link, used up by this; needed but for a login by link of the last 10 minutes"`
}

type secretIn struct {
	Name      string          `json:"name" minLength:"1" maxLength:"128"`
	Kind      vault.Kind      `json:"kind" enum:"provider_auth,git,mcp,env"`
	Provider  string          `json:"provider,omitempty" maxLength:"128" doc:"the agent or service that a provider_auth logs in to"`
	Owner     vault.OwnerKind `json:"owner,omitempty" enum:"user,project,app,platform" doc:"user when absent: the caller's own"`
	Value     string          `json:"value" minLength:"1" doc:"never shown again; of a provider_auth the agent's whole login file, or a key of one line"`
	ExpiresIn int64           `json:"expires_in,omitempty" minimum:"0" maximum:"315360000" doc:"seconds; never when absent"`
	ConfirmIn
}

// named is a request to make a secret without the value.
func (in secretIn) named() []any { return []any{in.Name, in.Kind, in.Provider, in.Owner, in.ExpiresIn} }

func itemTag(i vault.Item) string { return `"` + i.ETag + `"` }

func taggedItem(i vault.Item, err error) (*tagged[vault.Description], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[vault.Description]{itemTag(i), i.Describe()}, nil
}

func (s *Server) vaultRoutes() {
	op(s, "GET", "/vault/items", "List secrets, oldest first, without their values", 200, func(ctx context.Context, in *struct {
		Revoked bool `query:"revoked" doc:"also revoked ones"`
	}) (*body[vault.Listed], error) {
		v, err := s.secrets()
		if err != nil {
			return nil, err
		}
		all, err := v.Items(ctx, actorOf(ctx), in.Revoked)
		out := vault.Listed{Items: vault.Describe(all)}
		if locked := v.Locked(ctx); locked != nil {
			out.Locked, out.Hint = locked.Error(), thole.HintOf(locked)
		}
		return answer(out, err)
	})
	op(s, "POST", "/vault/items", "Set a new secret; needs scope admin", 201, func(ctx context.Context, in *struct {
		KeyIn
		Body secretIn
	}) (*tagged[vault.Description], error) {
		d, err := once(ctx, s, "POST /vault/items", in.Key, in.Body.named(), func() (vault.Description, error) { return s.createSecret(ctx, in.Body) })
		if err != nil {
			return nil, err
		}
		return &tagged[vault.Description]{`"` + d.ETag + `"`, d}, nil
	})
	op(s, "GET", "/vault/items/{item_id}", "Show a secret without its value", 200, func(ctx context.Context, in *ItemIn) (*tagged[vault.Description], error) {
		v, err := s.secrets()
		if err != nil {
			return nil, err
		}
		return taggedItem(v.Item(ctx, actorOf(ctx), in.id()))
	})
	op(s, "PUT", "/vault/items/{item_id}/value", "Replace a secret's value, which makes it active; needs scope admin", 200, func(ctx context.Context, in *struct {
		ItemIn
		MatchIn
		Body struct {
			Value string `json:"value" minLength:"1" doc:"never shown again"`
			ConfirmIn
		}
	}) (*tagged[vault.Description], error) {
		return taggedItem(s.putSecret(ctx, in.id(), in.Body.Value, in.Body.Code, unless(in.MatchIn, itemTag)))
	})
	op(s, "DELETE", "/vault/items/{item_id}", "Erase a secret's value; the record of its uses stays; needs scope admin", 204, func(ctx context.Context, in *struct {
		ItemIn
		MatchIn
	}) (*empty, error) {
		v, err := s.secrets()
		if err == nil {
			_, err = v.Revoke(context.WithoutCancel(ctx), actorOf(ctx), in.id(), unless(in.MatchIn, itemTag))
		}
		return done(err)
	})
	op(s, "GET", "/vault/items/{item_id}/uses", "List the latest uses of a secret, the last first", 200, func(ctx context.Context, in *ItemIn) (*body[list[vault.UseView]], error) {
		v, err := s.secrets()
		if err != nil {
			return nil, err
		}
		all, err := v.Uses(ctx, actorOf(ctx), in.id())
		return answer(list[vault.UseView]{Items: vault.DescribeUses(all)}, err)
	})
	op(s, "GET", "/vault/items/{item_id}/changes", "List who set, replaced and revoked a secret, the last change first", 200, func(ctx context.Context, in *ItemIn) (*body[list[vault.ChangeView]], error) {
		v, err := s.secrets()
		if err != nil {
			return nil, err
		}
		all, err := v.Changes(ctx, actorOf(ctx), in.id())
		return answer(list[vault.ChangeView]{Items: vault.DescribeChanges(all)}, err)
	})
	op(s, "POST", "/vault/items/{item_id}/test", "Open a secret and say what it is, without showing it", 200, func(ctx context.Context, in *ItemIn) (*body[vault.Tested], error) {
		v, err := s.secrets()
		if err != nil {
			return nil, err
		}
		found, err := v.Test(ctx, actorOf(ctx), in.id())
		return answer(vault.Tested{Found: found}, err)
	})
}

func (s *Server) secrets() (*vault.Vault, error) {
	if s.cfg.Vault == nil {
		return nil, thole.Errorf(thole.CodeUnsupported, "no secrets are kept here")
	}
	return s.cfg.Vault, nil
}

func (s *Server) createSecret(ctx context.Context, in secretIn) (vault.Description, error) {
	v, err := s.secrets()
	if err != nil {
		return vault.Description{}, err
	}
	actor := actorOf(ctx)
	if in.Owner == "" {
		in.Owner = vault.OfUser
	}
	owner, err := vault.OwnerOf(in.Owner, thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: actor.User})
	if err != nil {
		return vault.Description{}, err
	}
	if err := s.confirm(ctx, in.Code); err != nil {
		return vault.Description{}, err
	}
	n := vault.NewItem{Owner: owner, Name: in.Name, Kind: in.Kind, Provider: in.Provider, Value: []byte(in.Value)}
	if in.ExpiresIn > 0 {
		n.Expires = s.cfg.Now().Add(time.Duration(in.ExpiresIn) * time.Second)
	}
	i, err := v.Create(context.WithoutCancel(ctx), actor, n)
	return i.Describe(), err
}

// putSecret looks at the precondition before it uses a code up, and again with the
// change.
func (s *Server) putSecret(ctx context.Context, id vault.ItemID, value, code string, unless func(vault.Item) error) (vault.Item, error) {
	v, err := s.secrets()
	if err != nil {
		return vault.Item{}, err
	}
	i, err := v.Item(ctx, actorOf(ctx), id)
	if err == nil {
		err = unless(i)
	}
	if err == nil {
		err = s.confirm(ctx, code)
	}
	if err != nil {
		return vault.Item{}, err
	}
	return v.Put(context.WithoutCancel(ctx), actorOf(ctx), id, []byte(value), unless)
}

func (s *Server) confirm(ctx context.Context, code string) error {
	return s.cfg.Sessions.Confirm(ctx, actorOf(ctx).User, ctx.Value(whoKey).(who).by, code)
}
