package daemon

import (
	"context"
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/strictjson"
)

// Services finds a service for whose tokens an actor may care.
type Services interface {
	Service(ctx context.Context, actor thole.Actor, login string) (identity.User, error)
}

// TokenMethods manage API tokens and browsers' logins, also while no page is served: one's own,
// and those of services. A token of one's own is made on the home's socket alone; elsewhere its
// maker proves again who they are.
func TokenMethods(m *session.Manager, services Services) map[string]Method {
	with := func(do func(ctx context.Context, user thole.UserID, p session.TokenParams) (any, error)) Method {
		return func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p session.TokenParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "token: %w", err)
			}
			if p.User == "" {
				return do(ctx, actor.User, p)
			}
			u, err := services.Service(ctx, actor, p.User)
			if err != nil {
				return nil, err
			}
			return do(ctx, u.ID, p)
		}
	}
	create := with(func(ctx context.Context, user thole.UserID, p session.TokenParams) (any, error) {
		secret, t, err := m.NewToken(ctx, user, session.Grant{Name: p.Name, Scope: p.Scope, Life: time.Duration(p.Life) * time.Second, Never: p.Never})
		d := t.Describe()
		d.Secret = secret
		return d, err
	})
	return map[string]Method{
		session.MethodTokenCreate: create,
		// A login or token of the network makes none for its own user here.
		session.MethodServiceToken: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p session.TokenParams
			if err := strictjson.Unmarshal(params, &p); err != nil || p.User == "" {
				return nil, thole.Errorf(thole.CodeInvalid, "token: name the service whose token it is to be").WithHint("a token of your own is made on the page, after a new login")
			}
			return create(ctx, actor, params)
		},
		session.MethodTokenList: with(func(ctx context.Context, user thole.UserID, _ session.TokenParams) (any, error) {
			all, err := m.Tokens(ctx, user)
			out := make([]session.Description, 0, len(all))
			for _, t := range all {
				out = append(out, t.Describe())
			}
			return out, err
		}),
		session.MethodTokenRevoke: with(func(ctx context.Context, user thole.UserID, p session.TokenParams) (any, error) {
			return struct{}{}, m.Revoke(ctx, user, p.ID)
		}),
		session.MethodLoginList: with(func(ctx context.Context, user thole.UserID, _ session.TokenParams) (any, error) {
			all, err := m.Logins(ctx, user)
			out := make([]session.Login, 0, len(all))
			for _, s := range all {
				out = append(out, s.Describe())
			}
			return out, err
		}),
		session.MethodLoginRevoke: with(func(ctx context.Context, user thole.UserID, p session.TokenParams) (any, error) {
			return struct{}{}, m.EndLogin(ctx, user, p.ID)
		}),
	}
}

// Reader finds a thread, if it lets the actor do what the request wants (authz.Doing).
type Reader interface {
	Get(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Thread, error)
}

// ShareMethods let the user of the home manage share links over its socket. page returns the
// page's address, "" while none is served.
func ShareMethods(m *session.Manager, threads Reader, page func() string) map[string]Method {
	return map[string]Method{
		session.MethodShareCreate: method(func(ctx context.Context, actor thole.Actor, p session.ShareParams) (session.ShareDescription, error) {
			if _, err := threads.Get(ctx, actor, p.Thread); err != nil {
				return session.ShareDescription{}, err
			}
			secret, s, err := m.NewShare(ctx, actor.User, p.Thread, time.Duration(p.Life)*time.Second)
			d := s.Describe()
			if d.Secret, d.Path = secret, session.SharePath(secret); page() != "" {
				d.URL = page() + d.Path
			}
			return d, err
		}),
		session.MethodShareList: method(func(ctx context.Context, actor thole.Actor, p session.ShareParams) ([]session.ShareDescription, error) {
			return m.Shares(ctx, actor.User, p.Thread)
		}),
		session.MethodShareRevoke: method(func(ctx context.Context, actor thole.Actor, p session.ShareParams) (struct{}, error) {
			return struct{}{}, m.EndShare(ctx, actor.User, p.ID)
		}),
	}
}
