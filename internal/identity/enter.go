package identity

import (
	"context"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// FailedLogin is a login that is not let in, whatever the reason. User is whose account was
// tried, "" for nobody's: it is for those who run the server, never for who tries.
type FailedLogin struct{ User thole.UserID }

func (*FailedLogin) Error() string { return "the login or the password is wrong" }

// errLogin is the one answer to them all.
func errLogin(user thole.UserID) error {
	return thole.Errorf(thole.CodeUnauthorized, "%w", &FailedLogin{user}).WithHint("who runs this server can make a link for another password")
}

// LogIn finds the active human of a login and a password. It takes as long, and answers
// the same, for a login that nobody has.
func (m *Machine) LogIn(ctx context.Context, login, password, address string) (User, error) {
	login = strings.ToLower(strings.TrimSpace(login))
	if len(login) > 64 {
		login = login[:64]
	}
	giveBack, wait := m.tries.take(login, address, m.now())
	if wait > 0 {
		return User{}, thole.Errorf(thole.CodeOverloaded, "log in: %w", &TooMany{wait})
	}
	if len(password) > maxPassword {
		return User{}, errLogin("")
	}
	u, stored, found, err := m.cfg.Store.ByLogin(ctx, login)
	if err != nil {
		giveBack()
		return User{}, thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	}
	ok, err := m.hash.is(ctx, password, stored)
	if err != nil {
		return User{}, thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	}
	if !ok || !found || u.State != Active || u.Kind != Human {
		return User{}, errLogin(u.ID)
	}
	giveBack()
	return u, nil
}

// SetupLink makes the link that sets the server up, unless that was done: then it is "".
func (m *Machine) SetupLink(ctx context.Context) (string, error) {
	f, err := m.facts(ctx, thole.LocalUser)
	if err != nil || f.Team {
		return "", err
	}
	value, link := m.link(Setup, "", thole.SystemActor)
	if err := m.cfg.Store.AddLink(ctx, *link); thole.CodeOf(err) == thole.CodeConflict { // another server was set up meanwhile
		return "", nil
	} else if err != nil {
		return "", thole.Errorf(thole.CodeOf(err), "make the set-up link: %w", err)
	}
	return value, nil
}

// Team reports whether the server was set up.
func (m *Machine) Team(ctx context.Context) (bool, error) {
	f, err := m.facts(ctx, thole.LocalUser)
	return f.Team, err
}

func errLink() error {
	return thole.Errorf(thole.CodeUnauthorized, "this link was used or is too old").WithHint("who runs this server can make another")
}

// LinkURL is the address that a link leads to, from the server's own name and never from what
// a request calls it. The secret is in the fragment, which browsers send to nobody.
func LinkURL(page, secret string) string { return page + "/auth/account#code=" + secret }

// Look says what a link is for, and for whom, without using it.
func (m *Machine) Look(ctx context.Context, value string) (Purpose, User, error) {
	l, u, found, err := m.cfg.Store.Link(ctx, sum(value), m.now())
	if err == nil && !found {
		err = errLink()
	}
	return l.Purpose, u, err
}

// Chosen is what the holder of a link chose. Login is for a set-up alone.
type Chosen struct{ Login, Name, Password string }

// Use uses a link up and returns whose account it gave.
func (m *Machine) Use(ctx context.Context, value string, c Chosen) (User, error) {
	defer m.rights.forget()
	if err := checkPassword(c.Password); err != nil {
		return User{}, err
	}
	name, err := checkText("name", c.Name, 200)
	if err != nil {
		return User{}, err
	}
	purpose, _, err := m.Look(ctx, value) // before a password is summed for it
	if err != nil {
		return User{}, err
	}
	now := m.now()
	a := Account{User: User{Name: name}}
	if purpose == Setup {
		if a.User, err = m.user(NewUser{Login: c.Login, Name: name}); err != nil {
			return User{}, err
		}
		a.User.State, a.Grant = Active, m.cfg.NewID(now)
	}
	if a.Password, err = m.hash.sum(ctx, c.Password); err != nil {
		return User{}, err
	}
	u, ended, found, err := m.cfg.Store.UseLink(ctx, sum(value), a, now)
	m.cfg.Ended(ended)
	if err == nil && !found {
		err = errLink()
	}
	return u, err
}

// ChangePassword lets a user choose another; every other login and token ends. keep is the
// login that stays.
func (m *Machine) ChangePassword(ctx context.Context, actor thole.Actor, was, password, keep, address string) error {
	defer m.rights.forget()
	f, err := m.facts(ctx, actor.User)
	if err != nil {
		return err
	}
	if err := checkPassword(password); err != nil {
		return err
	}
	if _, err := m.LogIn(ctx, f.User.Login, was, address); err != nil {
		return err
	}
	_, stored, _, err := m.cfg.Store.ByLogin(ctx, f.User.Login)
	if err != nil {
		return err
	}
	next, err := m.hash.sum(ctx, password)
	if err != nil {
		return err
	}
	ended, set, err := m.cfg.Store.SetPassword(ctx, actor.User, stored, next, keep, m.now())
	m.cfg.Ended(ended)
	return orNow(err, set, "the password")
}

// Enter finds the user whom a provider of logins proved, by issuer and subject alone. One
// who is not known yet is an invited user of the same proven address, or with create a new
// one, unless an account has the address already: it is never taken over, and nobody gets a
// second one unnoticed. A disabled user is refused.
func (m *Machine) Enter(ctx context.Context, i Identity, create bool) (User, error) {
	defer m.rights.forget()
	if i.Issuer == "" || i.Subject == "" || len(i.Issuer)+len(i.Subject) > 1000 {
		return User{}, thole.Errorf(thole.CodeInvalid, "an identity has an issuer and a subject")
	}
	own := "user-" + sum(i.Issuer + "\x00" + i.Subject)[:12]
	logins := []string{i.Login, own} // one that is taken stays whose it is
	if _, err := checkLogin(i.Login); err != nil {
		logins = logins[1:]
	}
	if !i.Verified {
		i.Email = "" // anybody can say any
	}
	var u User
	var found bool
	var err error
	for _, login := range logins {
		var add *User
		if create {
			fresh, err := m.user(NewUser{Login: login, Name: i.Name, Email: i.Email})
			if err != nil {
				return User{}, err
			}
			fresh.State = Active
			add = &fresh
		}
		if u, found, err = m.cfg.Store.Bind(ctx, i, add, m.now()); thole.CodeOf(err) != thole.CodeConflict {
			break
		}
	}
	switch {
	case err != nil:
		return User{}, thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	case !found:
		return User{}, thole.Errorf(thole.CodeForbidden, "nobody here has this login").WithHint("ask who runs this server for an invitation")
	case u.State != Active || u.Kind != Human:
		return User{}, thole.Errorf(thole.CodeForbidden, "the user is disabled")
	}
	return u, nil
}

// GroupRule says what the users of a provider's group are here: members of a department, or
// holders of a role on something that is named.
type GroupRule struct {
	Group      string
	Department string // "": Role is given
	Role       authz.Role
	Kind       authz.Kind
	On         string
}

// Groups makes what a provider of logins says about a user exactly what these rules give. The
// configuration of the server has the rules; nobody is asked for a right. A rule that names
// what is not there gives nothing, and is returned.
func (m *Machine) Groups(ctx context.Context, user thole.UserID, issuer string, rules []GroupRule) (missing []GroupRule, err error) {
	defer m.rights.forget()
	now := m.now()
	var grants []Grant
	var in []DepartmentID
	for _, r := range rules {
		kind, name := r.Kind, r.On
		if r.Department != "" {
			kind, name = authz.OnDepartment, r.Department
		} else if issuer == "" || !r.Role.Grants(r.Kind) {
			return nil, thole.Errorf(thole.CodeInvalid, "role %s means nothing on a %s", r.Role, r.Kind)
		}
		p, err := m.place(ctx, kind, name)
		switch {
		case thole.CodeOf(err) == thole.CodeNotFound, thole.CodeOf(err) == thole.CodeInvalid:
			missing = append(missing, r)
		case err != nil:
			return nil, err
		case r.Department != "":
			in = append(in, DepartmentID(p.ID))
		default:
			grants = append(grants, Grant{ID: m.cfg.NewID(now), Holder: ToUser, To: string(user), Role: r.Role, Kind: kind, On: p.ID, Source: issuer, By: thole.SystemUser, Created: now})
		}
	}
	return missing, m.cfg.Store.SetGroups(ctx, user, issuer, grants, in)
}
