package daemon

import (
	"context"
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/strictjson"
)

// TokenMethods let the user of the home manage API tokens and browsers' logins over
// its socket, also while no page is served.
func TokenMethods(m *session.Manager) map[string]Method {
	with := func(do func(ctx context.Context, user thole.UserID, p session.TokenParams) (any, error)) Method {
		return func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p session.TokenParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "token: %w", err)
			}
			return do(ctx, actor.User, p)
		}
	}
	return map[string]Method{
		session.MethodTokenCreate: with(func(ctx context.Context, user thole.UserID, p session.TokenParams) (any, error) {
			secret, t, err := m.NewToken(ctx, user, session.Grant{Name: p.Name, Scope: p.Scope, Life: time.Duration(p.Life) * time.Second, Never: p.Never})
			d := t.Describe()
			d.Secret = secret
			return d, err
		}),
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
