package identity

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// NewGrant is what is to be granted. Names are logins and names, or ids.
type NewGrant struct {
	Holder Holder
	To     string
	Role   authz.Role
	Kind   authz.Kind
	On     string
	Life   time.Duration // 0: for ever
}

// rightOver is what changes grants on a kind of scope.
func rightOver(k authz.Kind) authz.Action {
	if k == authz.OnApp || k == authz.OnProject {
		return authz.ManageMembers
	}
	return authz.ManageUsers
}

func (m *Machine) place(ctx context.Context, k authz.Kind, on string) (Place, error) {
	p, found, err := m.cfg.Store.Place(ctx, k, on)
	if err == nil && !found {
		err = thole.Errorf(thole.CodeNotFound, "no %s %s", k, on)
	}
	return p, err
}

// Grant gives a role, by an actor who manages the scope and has every right that the role
// gives there: nobody grants more than they have.
func (m *Machine) Grant(ctx context.Context, actor thole.Actor, n NewGrant) (Grant, error) {
	defer m.rights.forget()
	if !n.Role.Grants(n.Kind) {
		return Grant{}, thole.Errorf(thole.CodeInvalid, "role %q means nothing on %q", n.Role, n.Kind).WithHint("thole role list shows where each role can be granted")
	}
	if n.Life < 0 {
		return Grant{}, thole.Errorf(thole.CodeInvalid, "a grant ends in the future, or never")
	}
	s, err := m.read(ctx, actor)
	if err != nil {
		return Grant{}, err
	}
	where, err := m.managed(ctx, s, n.Kind, n.On)
	if err != nil {
		return Grant{}, err
	}
	if lacks := authz.Exceeds(s, authz.Grant{Role: n.Role, Kind: n.Kind, ID: where.ID, Users: where.Users}, where.Resource); lacks != "" {
		return Grant{}, thole.Errorf(thole.CodeForbidden, "role %s on %s gives the right to %s, which you do not have yourself", n.Role, named(n.Kind, n.On), lacks).WithHint("ask who runs this server")
	}
	to, err := m.holder(ctx, n.Holder, n.To)
	if err != nil {
		return Grant{}, err
	}
	now := m.now()
	g := Grant{ID: m.cfg.NewID(now), Holder: n.Holder, To: to, Role: n.Role, Kind: n.Kind, On: where.ID, By: actor.User, Created: now}
	if n.Life > 0 {
		g.Expires = now.Add(n.Life)
	}
	if err := m.cfg.Store.AddGrant(ctx, g); err != nil {
		return Grant{}, thole.Errorf(thole.CodeOf(err), "grant: %w", err)
	}
	return g, nil
}

// managed finds a scope whose grants a subject may change. Who may not does not learn
// whether it is there.
func (m *Machine) managed(ctx context.Context, s authz.Subject, k authz.Kind, on string) (Place, error) {
	where, err := m.place(ctx, k, on)
	if err != nil && thole.CodeOf(err) != thole.CodeNotFound {
		return where, err
	}
	at := where.Resource
	if k == authz.OnUser || k == authz.OnDepartment || k == authz.OnPlatform {
		at = authz.Resource{}
	}
	if ok, _ := authz.Can(s, rightOver(k), at); !ok {
		return where, thole.Errorf(thole.CodeForbidden, "this needs the right to %s on %s", rightOver(k), named(k, on)).WithHint("ask who runs this server")
	}
	return where, err
}

func named(k authz.Kind, on string) string {
	if k == authz.OnPlatform {
		return platform
	}
	return string(k) + " " + on
}

func (m *Machine) holder(ctx context.Context, h Holder, name string) (string, error) {
	switch h {
	case ToUser:
		u, err := m.find(ctx, name)
		if err == nil && u.Kind == System {
			err = errNoUser(name)
		}
		return string(u.ID), err
	case ToDepartment:
		p, err := m.place(ctx, authz.OnDepartment, name)
		return p.ID, err
	}
	return "", thole.Errorf(thole.CodeInvalid, "a grant is given to a user or a department, not to %q", h)
}

// Revoke takes a grant away, by an actor who manages its scope.
func (m *Machine) Revoke(ctx context.Context, actor thole.Actor, id string) error {
	defer m.rights.forget()
	s, err := m.read(ctx, actor)
	if err != nil {
		return err
	}
	all, err := m.cfg.Store.Grants(ctx, "", "")
	if err != nil {
		return err
	}
	for _, g := range all {
		if g.ID != id {
			continue
		}
		if _, err := m.managed(ctx, s, g.Kind, g.On); err != nil {
			break // whose grants are not theirs to change are not there
		}
		removed, err := m.cfg.Store.RemoveGrantIf(ctx, g)
		return orNow(err, removed, "the grant")
	}
	return thole.Errorf(thole.CodeNotFound, "no grant %s", id).WithHint("thole grant list shows them")
}

// Grants lists those that an actor may change, and the actor's own.
func (m *Machine) Grants(ctx context.Context, actor thole.Actor) ([]Grant, error) {
	s, err := m.read(ctx, actor)
	if err != nil {
		return nil, err
	}
	all, err := m.cfg.Store.Grants(ctx, "", "")
	if err != nil {
		return nil, err
	}
	var out []Grant
	for _, g := range all {
		_, err := m.managed(ctx, s, g.Kind, g.On)
		if err == nil || g.Holder == ToUser && g.To == string(actor.User) {
			out = append(out, g)
		}
	}
	return out, nil
}
