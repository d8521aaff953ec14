package daemon

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/identity"
)

// IdentityMethods manage users, departments and grants. page returns the address that links
// lead to, "" while no page is served.
func IdentityMethods(m *identity.Machine, page func() string) map[string]Method {
	made := func(u identity.User, secret string, err error) (identity.UserDescription, error) {
		d := u.Describe()
		if secret != "" {
			d.URL = identity.LinkURL(page(), secret)
		}
		return d, err
	}
	user := func(do func(context.Context, thole.Actor, identity.UserParams) (identity.UserDescription, error)) Method {
		return method(do)
	}
	nothing := struct{}{}
	return map[string]Method{
		identity.MethodUserAdd: user(func(ctx context.Context, a thole.Actor, p identity.UserParams) (identity.UserDescription, error) {
			return made(m.Add(ctx, a, identity.NewUser{Login: p.Login, Name: p.Name, Email: p.Email, Kind: p.Kind}))
		}),
		identity.MethodUserInvite: user(func(ctx context.Context, a thole.Actor, p identity.UserParams) (identity.UserDescription, error) {
			return made(m.Again(ctx, a, p.Login, identity.Invite))
		}),
		identity.MethodUserReset: user(func(ctx context.Context, a thole.Actor, p identity.UserParams) (identity.UserDescription, error) {
			return made(m.Again(ctx, a, p.Login, identity.Reset))
		}),
		identity.MethodUserList: method(func(ctx context.Context, a thole.Actor, p identity.UserParams) ([]identity.UserDescription, error) {
			all, err := m.List(ctx, a, p.After, p.Limit)
			return describe(all, identity.User.Describe), err
		}),
		identity.MethodUserDisable: method(func(ctx context.Context, a thole.Actor, p identity.UserParams) (struct{}, error) {
			return nothing, m.Disable(ctx, a, p.Login)
		}),
		identity.MethodUserEnable: method(func(ctx context.Context, a thole.Actor, p identity.UserParams) (struct{}, error) {
			return nothing, m.Enable(ctx, a, p.Login)
		}),
		identity.MethodGrantAdd: method(func(ctx context.Context, a thole.Actor, p identity.GrantParams) (identity.GrantDescription, error) {
			g, err := m.Grant(ctx, a, p.New())
			return g.Describe(), err
		}),
		identity.MethodGrantList: method(func(ctx context.Context, a thole.Actor, _ identity.GrantParams) ([]identity.GrantDescription, error) {
			all, err := m.Grants(ctx, a)
			return describe(all, identity.Grant.Describe), err
		}),
		identity.MethodGrantRevoke: method(func(ctx context.Context, a thole.Actor, p identity.GrantParams) (struct{}, error) {
			return nothing, m.Revoke(ctx, a, p.ID)
		}),
		identity.MethodDepartmentAdd: method(func(ctx context.Context, a thole.Actor, p identity.DepartmentParams) (identity.DepartmentDescription, error) {
			d, err := m.AddDepartment(ctx, a, p.Name, p.Parent, "")
			return d.Describe(), err
		}),
		identity.MethodDepartmentList: method(func(ctx context.Context, a thole.Actor, _ identity.DepartmentParams) ([]identity.DepartmentDescription, error) {
			all, err := m.Departments(ctx, a)
			return describe(all, identity.Department.Describe), err
		}),
		identity.MethodDepartmentMove: method(func(ctx context.Context, a thole.Actor, p identity.DepartmentParams) (struct{}, error) {
			return nothing, m.MoveDepartment(ctx, a, p.Name, p.Parent)
		}),
		identity.MethodDepartmentRemove: method(func(ctx context.Context, a thole.Actor, p identity.DepartmentParams) (struct{}, error) {
			return nothing, m.RemoveDepartment(ctx, a, p.Name)
		}),
		identity.MethodDepartmentJoin: method(func(ctx context.Context, a thole.Actor, p identity.DepartmentParams) (struct{}, error) {
			return nothing, m.SetMember(ctx, a, p.Name, p.User, true)
		}),
		identity.MethodDepartmentLeave: method(func(ctx context.Context, a thole.Actor, p identity.DepartmentParams) (struct{}, error) {
			return nothing, m.SetMember(ctx, a, p.Name, p.User, false)
		}),
	}
}

func describe[A, B any](all []A, to func(A) B) []B {
	out := make([]B, 0, len(all))
	for _, v := range all {
		out = append(out, to(v))
	}
	return out
}
