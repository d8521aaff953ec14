package identity

import (
	"context"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// NewUser is who is to be added.
type NewUser struct {
	Login, Name, Email string
	Kind               Kind // "": human
}

// Add adds a user. A human is invited: the secret of the link is returned here and never
// again. A service is active, and is given tokens by who manages users.
func (m *Machine) Add(ctx context.Context, actor thole.Actor, n NewUser) (User, string, error) {
	defer m.rights.forget()
	if _, err := m.may(ctx, actor, authz.ManageUsers, authz.Resource{}, platform); err != nil {
		return User{}, "", err
	}
	u, err := m.user(n)
	if err != nil {
		return User{}, "", err
	}
	u.State = Active
	var link *Link
	value := ""
	if u.Kind == Human {
		u.State = Invited
		value, link = m.link(Invite, u.ID, actor)
	}
	if err := m.cfg.Store.AddUser(ctx, u, link); err != nil {
		return User{}, "", thole.Errorf(thole.CodeOf(err), "add user: %w", err)
	}
	return u, value, nil
}

func (m *Machine) user(n NewUser) (u User, err error) {
	if n.Kind == "" {
		n.Kind = Human
	}
	if n.Kind != Human && n.Kind != Service {
		return u, thole.Errorf(thole.CodeInvalid, "kind %q is neither human nor service", n.Kind)
	}
	now := m.now()
	u = User{ID: thole.UserID(m.cfg.NewID(now)), Kind: n.Kind, Created: now}
	if u.Login, err = checkLogin(n.Login); err != nil {
		return u, err
	}
	if u.Name, err = checkText("name", n.Name, 200); err != nil {
		return u, err
	}
	if u.Name == "" {
		u.Name = u.Login
	}
	u.Email, err = checkText("mail address", n.Email, 200)
	return u, err
}

// List lists users by login.
func (m *Machine) List(ctx context.Context, actor thole.Actor, after string, limit int) ([]User, error) {
	if _, err := m.may(ctx, actor, authz.ManageUsers, authz.Resource{}, platform); err != nil {
		return nil, err
	}
	return m.cfg.Store.Users(ctx, after, min(max(limit, 1), 1000))
}

// Find finds a user by login, or by id.
func (m *Machine) Find(ctx context.Context, actor thole.Actor, login string) (User, error) {
	if _, err := m.may(ctx, actor, authz.ManageUsers, authz.Resource{}, platform); err != nil {
		return User{}, err
	}
	return m.find(ctx, login)
}

// Service finds a service for whose tokens an actor may care: it has nobody who logs in for it.
func (m *Machine) Service(ctx context.Context, actor thole.Actor, login string) (User, error) {
	u, err := m.Find(ctx, actor, login)
	if err == nil && u.Kind != Service {
		err = thole.Errorf(thole.CodeForbidden, "user %s is no service: people make tokens for themselves", u.Login).WithHint("thole user add LOGIN --service adds one")
	}
	return u, err
}

func (m *Machine) find(ctx context.Context, login string) (User, error) {
	u, _, found, err := m.cfg.Store.ByLogin(ctx, login)
	if err == nil && !found {
		var f Facts
		f, found, err = m.cfg.Store.Facts(ctx, thole.UserID(login), m.now())
		u = f.User
	}
	if err == nil && !found {
		err = errNoUser(login)
	}
	return u, err
}

// Self is the account of an actor.
func (m *Machine) Self(ctx context.Context, actor thole.Actor) (Facts, error) {
	return m.facts(ctx, actor.User)
}

// manage finds a user whom an actor may change. The program and the user of this machine
// stay as they are: without them the server could not work.
func (m *Machine) manage(ctx context.Context, actor thole.Actor, login string) (User, error) {
	u, err := m.Find(ctx, actor, login)
	if err == nil && (u.Kind == System || u.ID == thole.LocalUser) {
		err = thole.Errorf(thole.CodeInvalid, "user %s belongs to the server itself", u.Login)
	}
	return u, err
}

func (m *Machine) move(ctx context.Context, u User, to State) error {
	defer m.rights.forget()
	if u.State == to {
		return nil
	}
	if !slices.Contains(moves[u.State], to) {
		return thole.Errorf(thole.CodeConflict, "user %s is %s and cannot become %s", u.Login, u.State, to)
	}
	ended, moved, err := m.cfg.Store.MoveIf(ctx, u.ID, u.State, to, m.now())
	m.cfg.Ended(ended)
	return orNow(err, moved, "user "+u.Login)
}

// Disable ends everything that proves a user, lets none begin, and stops what runs for them.
// Repeated, it stops what an earlier call could not.
func (m *Machine) Disable(ctx context.Context, actor thole.Actor, login string) error {
	u, err := m.manage(ctx, actor, login)
	if err != nil {
		return err
	}
	if err := m.move(ctx, u, Disabled); err != nil {
		return err
	}
	if err := m.cfg.Disabled(context.WithoutCancel(ctx), u.ID); err != nil {
		return thole.Errorf(thole.CodeOf(err), "user %s is disabled, but not all that runs for them was stopped: %w", u.Login, err).WithHint("repeat it")
	}
	return nil
}

// Enable lets a disabled user in again.
func (m *Machine) Enable(ctx context.Context, actor thole.Actor, login string) error {
	u, err := m.manage(ctx, actor, login)
	if err != nil {
		return err
	}
	if u.State == Invited {
		return thole.Errorf(thole.CodeConflict, "user %s has not used the invitation yet", u.Login).WithHint("thole user invite %s makes another link", u.Login)
	}
	return m.move(ctx, u, Active)
}

// Again makes another link for a user: an invitation, or the reset of a password.
func (m *Machine) Again(ctx context.Context, actor thole.Actor, login string, p Purpose) (User, string, error) {
	u, err := m.manage(ctx, actor, login)
	switch {
	case err != nil:
		return u, "", err
	case u.Kind != Human:
		return u, "", thole.Errorf(thole.CodeInvalid, "user %s is a service and has no password", u.Login).WithHint("a service is given an API token")
	case p == Invite && u.State != Invited:
		return u, "", thole.Errorf(thole.CodeConflict, "user %s is %s", u.Login, u.State).WithHint("thole user reset %s lets them choose a password again", u.Login)
	case p == Reset && u.State != Active:
		return u, "", thole.Errorf(thole.CodeConflict, "user %s is %s", u.Login, u.State).WithHint("thole user enable or invite comes first")
	}
	value, link := m.link(p, u.ID, actor)
	if err := m.cfg.Store.AddLink(ctx, *link); err != nil {
		return u, "", thole.Errorf(thole.CodeOf(err), "make link: %w", err)
	}
	return u, value, nil
}

func (m *Machine) link(p Purpose, u thole.UserID, by thole.Actor) (string, *Link) {
	value, now := secret(), m.now()
	life := LinkLife
	if p == Setup {
		life = SetupLife
	}
	return value, &Link{Hash: sum(value), Purpose: p, User: u, By: by.User, Created: now, Expires: now.Add(life)}
}
