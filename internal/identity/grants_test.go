package identity_test

import (
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/sqldb"
)

const (
	app     = "00000000-0000-7000-8000-0000000000a1"
	project = "00000000-0000-7000-8000-0000000000b1"
)

func (r *rig) addProject() {
	r.t.Helper()
	r.ok(r.db.Update(ctx, "test.project", func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(`insert into apps (id, name, created_at) values ($1, 'shop', 0)`, app); err != nil {
			return err
		}
		_, err := tx.Exec(`insert into projects (id, app_id, name, created_at) values ($1, $2, 'till', 0)`, project, app)
		return err
	}))
}

func to(login string, role authz.Role, kind authz.Kind, on string) identity.NewGrant {
	return identity.NewGrant{Holder: identity.ToUser, To: login, Role: role, Kind: kind, On: on}
}

// Nobody grants more than they have, whatever role they have, on whatever scope.
func TestNobodyGrantsMoreThanTheyHave(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		root := r.setUp()
		r.addProject()
		who := map[string]thole.Actor{"nothing": r.robot(root, "nothing"), "root": root}
		for login, g := range map[string]identity.NewGrant{
			"appadmin":  to("appadmin", authz.AppAdmin, authz.OnApp, "shop"),
			"projadmin": to("projadmin", authz.ProjectAdmin, authz.OnProject, "till"),
			"member":    to("member", authz.Member, authz.OnProject, "till"),
			"viewer":    to("viewer", authz.Viewer, authz.OnPlatform, ""),
			"other":     to("other", authz.AppAdmin, authz.OnApp, "default"),
		} {
			who[login] = r.robot(root, login)
			_, err := r.Grant(ctx, root, g)
			r.ok(err)
		}
		r.robot(root, "target")
		allowed := map[string]bool{
			"appadmin project_admin project": true, "appadmin member project": true, "appadmin member app": true, "appadmin app_admin app": true,
			"projadmin project_admin project": true, "projadmin member project": true,
		}
		on := map[authz.Kind]string{authz.OnPlatform: "", authz.OnApp: "shop", authz.OnProject: "till", authz.OnUser: "nothing", authz.OnDepartment: "all"}
		_, err := r.AddDepartment(ctx, root, "all", "", "")
		r.ok(err)
		for login, actor := range who {
			for _, role := range authz.Roles() {
				for _, kind := range authz.Kinds() {
					if !role.Grants(kind) {
						continue
					}
					for _, holder := range []string{"target", login} { // also to themselves
						g, err := r.Grant(ctx, actor, to(holder, role, kind, on[kind]))
						if err == nil {
							if login != "root" && !allowed[login+" "+string(role)+" "+string(kind)] {
								t.Errorf("%s granted %s on %s to %s", login, role, kind, holder)
							}
							r.ok(r.Revoke(ctx, root, g.ID))
							continue
						}
						if want := login == "root" || allowed[login+" "+string(role)+" "+string(kind)]; want && thole.CodeOf(err) != thole.CodeConflict {
							t.Errorf("%s cannot grant %s on %s: %v", login, role, kind, err)
						}
					}
				}
			}
		}
		// Their own grants cannot be prolonged, and others' are not theirs to take.
		f, err := r.Self(ctx, who["projadmin"])
		r.ok(err)
		for _, login := range []string{"nothing", "member", "viewer", "other"} {
			r.refused(r.Revoke(ctx, who[login], f.Grants[0].ID), thole.CodeNotFound)
		}
		for _, login := range []string{"appadmin", "projadmin", "member", "viewer"} {
			_, _, err := r.Add(ctx, who[login], identity.NewUser{Login: "x"})
			r.refused(err, thole.CodeForbidden)
			r.refused(r.SetMember(ctx, who[login], "all", login, true), thole.CodeForbidden)
		}
		_, err = r.Grant(ctx, root, to("target", authz.AppAdmin, authz.OnProject, "till"))
		r.refused(err, thole.CodeInvalid)
	})
}

func TestGrantsExpireAndReachDepartments(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		root := r.setUp()
		ada, bob := r.robot(root, "ada"), r.robot(root, "bob")
		_, err := r.Grant(ctx, root, identity.NewGrant{Holder: identity.ToUser, To: "ada", Role: authz.Viewer, Kind: authz.OnUser, On: "bob", Life: time.Hour})
		r.ok(err)
		of := authz.Resource{Owner: bob.User}
		if !r.can(ada, authz.ViewThread, of) || r.can(ada, authz.RunThread, of) || r.can(bob, authz.ViewThread, authz.Resource{Owner: ada.User}) {
			t.Error("a viewer of a user")
		}
		r.now = r.now.Add(time.Hour)
		if r.can(ada, authz.ViewThread, of) {
			t.Error("an expired grant counts")
		}
		for _, d := range [][2]string{{"house", ""}, {"lab", "house"}, {"bench", "lab"}} {
			_, err := r.AddDepartment(ctx, root, d[0], d[1], "")
			r.ok(err)
		}
		_, err = r.AddDepartment(ctx, root, "lab", "house", "")
		r.refused(err, thole.CodeConflict)
		r.ok(r.SetMember(ctx, root, "bench", "bob", true))
		r.ok(r.SetMember(ctx, root, "lab", "ada", true))
		// On a department: its users and those below. To one: the users of those below, too.
		_, err = r.Grant(ctx, root, identity.NewGrant{Holder: identity.ToDepartment, To: "lab", Role: authz.Viewer, Kind: authz.OnDepartment, On: "house"})
		r.ok(err)
		for _, a := range []thole.Actor{ada, bob} {
			if !r.can(a, authz.ViewThread, of) || r.can(a, authz.ViewThread, authz.Resource{Owner: root.User}) {
				t.Error("a department's grant on a department")
			}
		}
		r.refused(r.MoveDepartment(ctx, root, "house", "bench"), thole.CodeConflict)
		r.refused(r.RemoveDepartment(ctx, root, "lab"), thole.CodeConflict)
		r.ok(r.MoveDepartment(ctx, root, "bench", ""))
		if r.can(bob, authz.ViewThread, authz.Resource{Owner: ada.User}) || r.can(ada, authz.ViewThread, of) {
			t.Error("a department that was moved away")
		}
		r.ok(r.SetMember(ctx, root, "bench", "bob", false))
		r.ok(r.RemoveDepartment(ctx, root, "bench"))
		scope, err := r.Access(ctx, ada, authz.ViewThread)
		if r.ok(err); scope.Sees(thole.Owner{User: bob.User}) || !scope.Sees(thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: ada.User}) {
			t.Error("the scope is not what was granted")
		}
	})
}

// An agent has what its user owns and none of the user's grants; the program for a user has no
// more than the user, and the program itself has everything.
func TestWhoActsForAUser(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		root := r.setUp()
		bob := r.robot(root, "bob")
		of := func(u thole.UserID) thole.Owner {
			return thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: u}
		}
		sees := func(a thole.Actor, action authz.Action, u thole.UserID) bool {
			s, err := r.Access(ctx, a, action)
			r.ok(err)
			return s.Sees(of(u))
		}
		agent, program := thole.Actor{User: root.User, Via: thole.AgentActor.Via}, thole.Actor{User: bob.User, Via: thole.SystemActor.Via}
		for _, action := range authz.Actions() {
			own := action == authz.ViewThread || action == authz.RunThread || action == authz.UseApp || action == authz.ReportJob
			if sees(agent, action, bob.User) || sees(agent, action, root.User) != own || sees(thole.AgentActor, action, root.User) {
				t.Errorf("an agent of the administrator: %s", action)
			}
			if sees(program, action, root.User) || sees(program, action, bob.User) != sees(bob, action, bob.User) || !sees(thole.SystemActor, action, root.User) {
				t.Errorf("the program for a user: %s", action)
			}
		}
		r.ok(r.Disable(ctx, root, "bob"))
		if sees(program, authz.RunThread, bob.User) {
			t.Error("the program acts for a disabled user")
		}
	})
}
