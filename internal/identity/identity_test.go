package identity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/unguarded"
)

var ctx = context.Background()

const word = "correct horse battery"

type rig struct {
	*identity.Machine
	t        *testing.T
	db       *store.DB
	sessions *session.Manager
	now      time.Time
	mu       sync.Mutex // guards ended while users race
	ended    []string
	stopped  []thole.UserID
}

func exercise(t *testing.T, suite func(t *testing.T, r *rig)) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := &rig{t: t, db: open(t), now: time.Now().UTC().Truncate(time.Millisecond)}
		clock := func() time.Time { return r.now }
		r.sessions = session.New(r.db.LoginSessions(), clock)
		r.Machine = identity.New(identity.Config{Store: r.db.Identities(), Now: clock, Disabled: func(_ context.Context, u thole.UserID) error { r.stopped = append(r.stopped, u); return nil }, Ended: func(ids []string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = append(r.ended, ids...)
		}})
		t.Cleanup(r.Close)
		suite(t, r)
		report, err := audit.Verify(ctx, r.db.Audit(), nil, "")
		if err != nil || len(report.Faults) > 0 {
			t.Errorf("the audit chain: %+v, %v", report, err)
		}
	})
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) refused(err error, want thole.Code) {
	r.t.Helper()
	if thole.CodeOf(err) != want {
		r.t.Fatalf("err = %v, want %s", err, want)
	}
}

func as(u identity.User) thole.Actor { return thole.Actor{User: u.ID, Via: "cookie"} }

// setUp makes the team's first administrator.
func (r *rig) setUp() thole.Actor {
	r.t.Helper()
	link, err := r.SetupLink(ctx)
	r.ok(err)
	u, err := r.Use(ctx, link, identity.Chosen{Login: "Root", Name: "The Root", Password: word})
	r.ok(err)
	return as(u)
}

// join invites a user and lets them in.
func (r *rig) join(admin thole.Actor, login string) thole.Actor {
	r.t.Helper()
	_, link, err := r.Add(ctx, admin, identity.NewUser{Login: login})
	r.ok(err)
	u, err := r.Use(ctx, link, identity.Chosen{Password: word})
	r.ok(err)
	return as(u)
}

// robot adds a user who needs no password, which takes time to compute.
func (r *rig) robot(admin thole.Actor, login string) thole.Actor {
	r.t.Helper()
	u, _, err := r.Add(ctx, admin, identity.NewUser{Login: login, Kind: identity.Service})
	r.ok(err)
	return thole.Actor{User: u.ID, Via: "token"}
}

func (r *rig) can(a thole.Actor, action authz.Action, on authz.Resource) bool {
	r.t.Helper()
	ok, err := r.Can(ctx, a, action, on)
	r.ok(err)
	return ok
}

func (r *rig) links(action string) int {
	r.t.Helper()
	all, err := r.db.Audit().Latest(ctx, audit.Filter{Action: action, Limit: 1000})
	r.ok(err)
	return len(all)
}

// The local user has everything until a server is set up, and is one among others then.
func TestSetUpWorksOnce(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		if !r.can(thole.LocalActor, authz.ManageUsers, authz.Resource{}) {
			t.Error("the local user of a home may not manage it")
		}
		old, err := r.SetupLink(ctx)
		r.ok(err)
		link, err := r.SetupLink(ctx)
		r.ok(err)
		_, err = r.Use(ctx, old, identity.Chosen{Login: "thief", Password: word})
		r.refused(err, thole.CodeUnauthorized) // another start replaced it
		_, err = r.Use(ctx, link, identity.Chosen{Login: "root", Password: "short"})
		r.refused(err, thole.CodeInvalid)
		_, err = r.Use(ctx, link, identity.Chosen{Login: "no such login!", Password: word})
		r.refused(err, thole.CodeInvalid)
		var wg sync.WaitGroup
		var won sync.Map
		for i := range 4 {
			wg.Go(func() {
				if u, err := r.Use(ctx, link, identity.Chosen{Login: fmt.Sprint("root", i), Password: word}); err == nil {
					won.Store(u.ID, u)
				} else if c := thole.CodeOf(err); c != thole.CodeUnauthorized && c != thole.CodeConflict {
					t.Errorf("a set-up that lost: %v", err)
				}
			})
		}
		wg.Wait()
		var admins []identity.User
		won.Range(func(_, v any) bool { admins = append(admins, v.(identity.User)); return true })
		if len(admins) != 1 || !r.can(as(admins[0]), authz.ManageUsers, authz.Resource{}) {
			t.Fatalf("set-ups that won: %v", admins)
		}
		if r.can(thole.LocalActor, authz.ManageUsers, authz.Resource{}) || !r.can(thole.LocalActor, authz.RunThread, authz.Resource{Owner: thole.LocalUser}) {
			t.Error("the socket of a team's server is its administrator, or cannot use it")
		}
		if next, err := r.SetupLink(ctx); err != nil || next != "" {
			t.Errorf("a second set-up: %q, %v", next, err)
		}
		if r.links("user.setup") != 1 {
			t.Errorf("%d set-ups in the chain", r.links("user.setup"))
		}
	})
}

func TestSetUpLinkExpires(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		link, err := r.SetupLink(ctx)
		r.ok(err)
		r.now = r.now.Add(identity.SetupLife)
		_, err = r.Use(ctx, link, identity.Chosen{Login: "root", Password: word})
		r.refused(err, thole.CodeUnauthorized)
	})
}

func TestInvitation(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		root := r.setUp()
		u, first, err := r.Add(ctx, root, identity.NewUser{Login: "Ada", Email: "ada@example.org"})
		r.ok(err)
		if u.State != identity.Invited || u.Login != "ada" {
			t.Fatalf("the user is %+v", u)
		}
		_, _, err = r.Add(ctx, root, identity.NewUser{Login: "ADA"})
		r.refused(err, thole.CodeConflict)
		if r.can(as(u), authz.ViewThread, authz.Resource{Owner: u.ID}) {
			t.Error("an invited user may see")
		}
		_, err = r.LogIn(ctx, "ada", word, "")
		r.refused(err, thole.CodeUnauthorized)
		_, second, err := r.Again(ctx, root, "ada", identity.Invite)
		r.ok(err)
		_, err = r.Use(ctx, first, identity.Chosen{Password: word})
		r.refused(err, thole.CodeUnauthorized)
		got, err := r.Use(ctx, second, identity.Chosen{Name: "Ada", Password: word, Login: "other"})
		r.ok(err)
		if got.ID != u.ID || got.State != identity.Active || got.Name != "Ada" || got.Login != "ada" {
			t.Errorf("who came is %+v", got)
		}
		_, err = r.Use(ctx, second, identity.Chosen{Password: "another password"})
		r.refused(err, thole.CodeUnauthorized)
		_, _, err = r.Again(ctx, root, "ada", identity.Invite)
		r.refused(err, thole.CodeConflict)
		in, err := r.LogIn(ctx, " ADA ", word, "")
		if r.ok(err); in.ID != u.ID {
			t.Errorf("logged in as %+v", in)
		}
		_, late, err := r.Add(ctx, root, identity.NewUser{Login: "late"})
		r.ok(err)
		r.now = r.now.Add(identity.LinkLife)
		_, err = r.Use(ctx, late, identity.Chosen{Password: word})
		r.refused(err, thole.CodeUnauthorized)
	})
}

// Logins that nobody has, that are disabled, invited or services get one answer, and cost
// one computation of the same size.
func TestLoginAnswersTheSame(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		root := r.setUp()
		r.join(root, "gone")
		r.ok(r.Disable(ctx, root, "gone"))
		_, _, err := r.Add(ctx, root, identity.NewUser{Login: "new"})
		r.ok(err)
		_, _, err = r.Add(ctx, root, identity.NewUser{Login: "robot", Kind: identity.Service})
		r.ok(err)
		_, want := r.LogIn(ctx, "root", "wrong password", "1")
		for _, login := range []string{"gone", "new", "robot", "nobody", "system", "local", "", strings.Repeat("x", 1000)} {
			for _, password := range []string{word, strings.Repeat("y", 10_000)} {
				_, err := r.LogIn(ctx, login, password, login)
				if r.refused(err, thole.CodeUnauthorized); err.Error() != want.Error() || thole.HintOf(err) != thole.HintOf(want) {
					t.Errorf("login %.20q: %v, not %v", login, err, want)
				}
			}
		}
	})
}

func TestLoginsAreThrottled(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.setUp()
		for range 5 {
			_, err := r.LogIn(ctx, "root", "wrong password", "10.0.0.1")
			r.refused(err, thole.CodeUnauthorized)
		}
		_, err := r.LogIn(ctx, "root", word, "10.0.0.1") // also the right one, so that nobody learns it
		if unguarded.Build {                             // a password can be guessed
			r.ok(err)
			return
		}
		var many *identity.TooMany
		if r.refused(err, thole.CodeOverloaded); !errors.As(err, &many) || many.Seconds() < 1 || many.Seconds() > 60 {
			t.Errorf("the sixth: %v", err)
		}
		_, err = r.LogIn(ctx, "root", word, "10.0.0.2") // another address is another matter
		r.ok(err)
		for range 6 { // who knows the password is not throttled
			_, err = r.LogIn(ctx, "root", word, "10.0.0.2")
			r.ok(err)
		}
		r.now = r.now.Add(time.Minute)
		_, err = r.LogIn(ctx, "root", word, "10.0.0.1")
		r.ok(err)
	})
}

// Disabling ends all that proves a user, and a race with it leaves nothing.
func TestDisable(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		root := r.setUp()
		ada := r.join(root, "ada")
		secrets, in, err := r.sessions.Begin(ctx, session.User{ID: ada.User}, "browser", session.Proven{With: "password"})
		r.ok(err)
		token, made, err := r.sessions.NewToken(ctx, ada.User, session.Grant{Name: "ci"})
		r.ok(err)
		code, err := r.sessions.NewLogin(ctx, ada.User)
		r.ok(err)
		_, reset, err := r.Again(ctx, root, "ada", identity.Reset)
		r.ok(err)
		r.refused(r.Disable(ctx, ada, "root"), thole.CodeForbidden)
		r.ok(r.Disable(ctx, root, "ada"))
		if len(r.stopped) != 1 || r.stopped[0] != ada.User {
			t.Errorf("what runs was stopped for %v", r.stopped)
		}
		if got := strings.Join(r.ended, " "); !strings.Contains(got, in.ID) || !strings.Contains(got, made.ID) {
			t.Errorf("ended %s", got)
		}
		out := func() {
			t.Helper()
			_, err := r.sessions.Resolve(ctx, secrets)
			r.refused(err, thole.CodeUnauthorized)
			_, err = r.sessions.Bearer(ctx, token)
			r.refused(err, thole.CodeUnauthorized)
			_, _, err = r.sessions.Redeem(ctx, code, "")
			r.refused(err, thole.CodeUnauthorized)
			_, err = r.Use(ctx, reset, identity.Chosen{Password: "another password"})
			r.refused(err, thole.CodeUnauthorized)
		}
		out()
		_, _, err = r.sessions.Begin(ctx, session.User{ID: ada.User}, "browser", session.Proven{With: "password"}) // was proven just before
		r.refused(err, thole.CodeUnauthorized)
		_, _, err = r.sessions.NewToken(ctx, ada.User, session.Grant{Name: "ci"})
		r.refused(err, thole.CodeUnauthorized)
		if r.can(ada, authz.ViewThread, authz.Resource{Owner: ada.User}) {
			t.Error("a disabled user may see")
		}
		r.ok(r.Enable(ctx, root, "ada"))
		out() // what ended stays so
		_, err = r.LogIn(ctx, "ada", word, "")
		r.ok(err)
		if r.links("user.disable") != 1 || r.links("user.enable") != 1 {
			t.Error("the chain lacks what happened")
		}
		for _, login := range []string{"local", "system"} {
			r.refused(r.Disable(ctx, root, login), thole.CodeInvalid)
		}
		r.refused(r.Disable(ctx, root, "root"), thole.CodeConflict) // nobody would be left
		f, err := r.Self(ctx, root)
		r.ok(err)
		r.refused(r.Revoke(ctx, root, f.Grants[0].ID), thole.CodeConflict)
	})
}

func TestPasswords(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		root := r.setUp()
		ada := r.join(root, "ada")
		_, keep, err := r.sessions.Begin(ctx, session.User{ID: ada.User}, "this", session.Proven{With: "password"})
		r.ok(err)
		other, _, err := r.sessions.Begin(ctx, session.User{ID: ada.User}, "other", session.Proven{With: "password"})
		r.ok(err)
		r.refused(r.ChangePassword(ctx, ada, "not the old one", "a new password", keep.ID, ""), thole.CodeUnauthorized)
		r.refused(r.ChangePassword(ctx, ada, word, "short", keep.ID, ""), thole.CodeInvalid)
		r.ok(r.ChangePassword(ctx, ada, word, "a new password", keep.ID, ""))
		_, err = r.sessions.Resolve(ctx, other)
		r.refused(err, thole.CodeUnauthorized)
		if all, err := r.sessions.Logins(ctx, ada.User); err != nil || len(all) != 1 || all[0].ID != keep.ID {
			t.Errorf("logins left: %+v, %v", all, err)
		}
		_, err = r.LogIn(ctx, "ada", word, "")
		r.refused(err, thole.CodeUnauthorized)
		var stored string
		r.ok(r.db.View(ctx, func(tx *sqldb.Tx) error {
			return tx.QueryRow(`select argon2id from passwords where user_id = $1`, ada.User).Scan(&stored)
		}))
		if !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") {
			t.Errorf("stored as %.40s", stored)
		}
		_, reset, err := r.Again(ctx, root, "ada", identity.Reset)
		r.ok(err)
		_, err = r.Use(ctx, reset, identity.Chosen{Password: "a third password"})
		r.ok(err)
		if all, _ := r.sessions.Logins(ctx, ada.User); len(all) != 0 {
			t.Errorf("logins after a reset: %+v", all)
		}
		_, err = r.LogIn(ctx, "ada", "a third password", "")
		r.ok(err)
	})
}

// Identities of a provider are found by issuer and subject; an address alone gives nothing.
func TestEnter(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		root := r.setUp()
		ada := r.join(root, "ada")
		invited, _, err := r.Add(ctx, root, identity.NewUser{Login: "bob", Email: "Bob@example.org"})
		r.ok(err)
		who := identity.Identity{Issuer: "https://id.example.org", Subject: "1", Login: "ada", Email: "bob@example.org"}
		_, err = r.Enter(ctx, who, false)
		r.refused(err, thole.CodeForbidden)
		named, err := r.Enter(ctx, identity.Identity{Issuer: who.Issuer, Subject: "0", Login: "ada", Email: "bob@example.org"}, true)
		if r.ok(err); named.ID == ada.User || named.Login == "ada" || named.Email != "" { // nobody becomes another by choosing a name or an address
			t.Errorf("who chose a login that is taken is %+v", named)
		}
		who.Verified = true
		u, err := r.Enter(ctx, who, false)
		if r.ok(err); u.ID != invited.ID || u.State != identity.Active {
			t.Errorf("entered as %+v", u)
		}
		again, err := r.Enter(ctx, identity.Identity{Issuer: who.Issuer, Subject: "1", Login: "changed"}, true)
		if r.ok(err); again.ID != u.ID {
			t.Errorf("again as %+v", again)
		}
		for _, address := range []string{"bob@example.org", "BOB@example.org"} { // an account has it: it is not taken over, and there is no second one
			_, err = r.Enter(ctx, identity.Identity{Issuer: who.Issuer, Subject: "2", Login: "Ünïcode", Email: address, Verified: true}, true)
			r.refused(err, thole.CodeForbidden)
		}
		fresh, err := r.Enter(ctx, identity.Identity{Issuer: who.Issuer, Subject: "2", Login: "Ünïcode", Email: "eve@example.org", Verified: true}, true)
		if r.ok(err); fresh.ID == u.ID || fresh.ID == ada.User {
			t.Errorf("another subject is %+v", fresh)
		}
		r.ok(r.Disable(ctx, root, "bob"))
		_, err = r.Enter(ctx, who, true)
		r.refused(err, thole.CodeForbidden)
	})
}

// What groups of a provider give is theirs to take, and nothing else.
func TestGroups(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		root := r.setUp()
		ada, bob := r.join(root, "ada"), r.join(root, "bob")
		for _, name := range []string{"lab", "house"} {
			_, err := r.AddDepartment(ctx, root, name, "", "")
			r.ok(err)
		}
		in := func(name string) bool {
			all, err := r.Departments(ctx, root)
			r.ok(err)
			return slices.ContainsFunc(all, func(d identity.Department) bool { return d.Name == name && slices.Contains(d.Members, bob.User) })
		}
		r.ok(r.SetMember(ctx, root, "house", "bob", true))
		viewer := identity.GroupRule{Role: authz.Viewer, Kind: authz.OnPlatform}
		lab, house, gone := identity.GroupRule{Department: "lab"}, identity.GroupRule{Department: "house"}, identity.GroupRule{Department: "gone"}
		groups := func(rules ...identity.GroupRule) []identity.GroupRule {
			missing, err := r.Groups(ctx, bob.User, "https://id.example.org", rules)
			r.ok(err)
			return missing
		}
		if missing := groups(viewer, viewer, lab, house, gone); len(missing) != 1 || missing[0] != gone {
			t.Errorf("missing %v", missing)
		}
		if !r.can(bob, authz.ViewThread, authz.Resource{Owner: ada.User}) || !in("lab") || !in("house") {
			t.Error("groups give nothing")
		}
		groups()
		if r.can(bob, authz.ViewThread, authz.Resource{Owner: ada.User}) || in("lab") {
			t.Error("a group that was left still gives")
		}
		if !in("house") {
			t.Error("whom a person put into a department was taken out by a provider")
		}
		groups(lab)
		r.ok(r.SetMember(ctx, root, "lab", "bob", true)) // a person insists
		if groups(); !in("lab") {
			t.Error("whom a person put into a department after a provider was taken out by it")
		}
	})
}
