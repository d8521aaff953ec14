package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
	login "github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
)

// people is a store with the rows of users, departments and grants.
type people struct {
	*store.DB
	ctx context.Context
}

func openPeople(dir string, hook sqldb.Hook) (*people, error) {
	p := &people{ctx: context.Background()}
	var err error
	p.DB, err = storetest.OpenAt(p.ctx, sqldb.Config{Path: dir + "/thole.db", Hook: hook, Now: func() time.Time { return platformStart }})
	return p, err
}

func (p *people) State() (string, error) {
	return crash.Rows(p.DB, "users", "user_identities", "passwords", "departments", "department_members", "grants", "account_links", "store_facts", "web_sessions", "audit_events", "audit_head")
}

func sessionOf(user thole.UserID) login.Session {
	v := session(string(user))
	v.User.ID = user
	return v
}

func did(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("nothing changed")
	}
	return err
}

func (p *people) Acts() []crash.Act {
	s, now := p.Identities(), platformStart
	ada := identity.User{ID: "ada", Login: "ada", Name: "ada", Kind: identity.Human, State: identity.Invited, Created: now}
	linked := func(hash string, purpose identity.Purpose, user thole.UserID) identity.Link {
		return identity.Link{Hash: hash, Purpose: purpose, User: user, By: thole.SystemUser, Created: now, Expires: now.Add(time.Hour)}
	}
	invite := linked("invite", identity.Invite, "ada")
	grant := identity.Grant{ID: "g", Holder: identity.ToUser, To: "ada", Role: authz.Viewer, Kind: authz.OnPlatform, By: "root", Created: now}
	use := func(hash string, a identity.Account) func() error {
		return func() error {
			_, _, found, err := s.UseLink(p.ctx, hash, a, now)
			return did(found, err)
		}
	}
	return []crash.Act{
		{Name: "set-up link", Do: func() error { return s.AddLink(p.ctx, linked("setup", identity.Setup, "")) }},
		{Name: "set up", Do: use("setup", identity.Account{Password: "sum", Grant: "first", User: identity.User{ID: "root", Login: "root", Name: "root", Kind: identity.Human, State: identity.Active, Created: now}})},
		{Name: "add", Do: func() error { return s.AddUser(p.ctx, ada, &invite) }},
		{Name: "join", Do: use("invite", identity.Account{Password: "sum"})},
		{Name: "password", Set: func() error { return p.LoginSessions().AddSession(p.ctx, sessionOf("ada")) }, Do: func() error {
			_, set, err := s.SetPassword(p.ctx, "ada", "sum", "other", "", now)
			return did(set, err)
		}},
		{Name: "department", Do: func() error {
			return s.AddDepartment(p.ctx, identity.Department{ID: "lab", Name: "lab", Created: now})
		}},
		{Name: "below", Do: func() error {
			return s.AddDepartment(p.ctx, identity.Department{ID: "bench", Name: "bench", Created: now})
		}},
		{Name: "move department", Do: func() error { return did(s.MoveDepartmentIf(p.ctx, "bench", "", "lab")) }},
		{Name: "member", Do: func() error { return did(s.SetMember(p.ctx, "bench", "ada", true)) }},
		{Name: "leave", Do: func() error { return did(s.SetMember(p.ctx, "bench", "ada", false)) }},
		{Name: "remove department", Do: func() error { return did(s.RemoveDepartment(p.ctx, "bench")) }},
		{Name: "grant", Do: func() error { return s.AddGrant(p.ctx, grant) }},
		{Name: "revoke", Do: func() error { return did(s.RemoveGrantIf(p.ctx, grant)) }},
		{Name: "groups", Do: func() error {
			g := grant
			g.ID, g.Source = "group", "https://id.example.org"
			return s.SetGroups(p.ctx, "ada", g.Source, []identity.Grant{g}, []identity.DepartmentID{"lab"})
		}},
		{Name: "bind", Do: func() error {
			_, found, err := s.Bind(p.ctx, identity.Identity{Issuer: "i", Subject: "s"}, &identity.User{ID: "bob", Login: "bob", Name: "bob", Kind: identity.Human, State: identity.Active, Created: now}, now)
			return did(found, err)
		}},
		{Name: "disable", Set: func() error { return p.LoginSessions().AddSession(p.ctx, sessionOf("ada")) }, Do: func() error {
			_, moved, err := s.MoveIf(p.ctx, "ada", identity.Active, identity.Disabled, now)
			return did(moved, err)
		}},
	}
}

// TestPeopleSurviveAKill: a link that was used works no second time, who was disabled has no
// login, and a server that was set up is not set up again.
func TestPeopleSurviveAKill(t *testing.T) {
	crash.Acts(t, openPeople, func(t *testing.T, p *people, done []string) {
		has := func(act string) bool { return slices.Contains(done, act) }
		s := p.Identities()
		r, err := audit.Verify(p.ctx, p.Audit(), nil, "")
		if err != nil || len(r.Faults) > 0 || r.Links < int64(len(done)) {
			t.Errorf("the chain after %v: %+v, %v", done, r, err)
		}
		for hash, used := range map[string]bool{"setup": has("set up"), "invite": has("join")} {
			if _, _, found, err := s.Link(p.ctx, hash, platformStart); err != nil || found && used {
				t.Errorf("link %s after %v: found %v, %v", hash, done, found, err)
			}
		}
		f, _, err := s.Facts(p.ctx, "root", platformStart)
		if err != nil || f.Team != has("set up") || (len(f.Grants) == 1) != has("set up") {
			t.Errorf("after %v: %+v, %v", done, f, err)
		}
		if has("disable") {
			if all, err := p.LoginSessions().Sessions(p.ctx, "ada"); err != nil || len(all) != 0 {
				t.Errorf("a disabled user has logins: %v, %v", all, err)
			}
		}
	})
}
