package authz

import (
	"maps"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
)

const (
	me    thole.UserID    = "me"
	they  thole.UserID    = "they"
	app   thole.AppID     = "app"
	place thole.ProjectID = "project"
)

// says is the table in other words: what roles are for, and nothing else.
func says(r Role, a Action, rel Relation) bool {
	is := func(all string) bool { return strings.Contains(" "+all+" ", " "+string(a)+" ") }
	const runs = "use_app manage_kb manage_agentconfig browse_files edit_files view_app"
	const manages = runs + " manage_members manage_budget read_audit"
	switch string(r) + "/" + string(rel) {
	case "platform_admin/platform":
		return true
	case "app_admin/app":
		return is(manages + " manage_app")
	case "project_admin/project":
		return is(manages)
	case "member/self":
		return is(runs + " view_thread run_thread answer_ask delete_thread open_terminal report_job see_self manage_self")
	case "member/away":
		return is("browse_files view_thread delete_thread see_self manage_self")
	case "member/app", "member/project":
		return is("use_app view_app")
	case "viewer/app", "viewer/project":
		return is("view_app browse_files")
	case "viewer/app_user", "viewer/project_user", "viewer/user":
		return is("view_thread browse_files")
	case "viewer/platform":
		return is("view_app view_thread browse_files")
	}
	return false
}

// reach is a subject with one role whose grant reaches a thing by the relation, and by no
// other. ok is false where none can: nobody but a member has things of their own.
func reach(r Role, rel Relation) (s Subject, thing Resource, ok bool) {
	s = Subject{User: me, Active: true}
	grant := func(k Kind, id string, users ...thole.UserID) {
		s.Grants = []Grant{{Role: r, Kind: k, ID: id, Users: users}}
	}
	switch rel {
	case Self:
		return s, Resource{Owner: me}, r == Member
	case Away:
		return s, Resource{App: app, Project: place, Owner: me}, r == Member
	case OfUser:
		grant(OnDepartment, "department", they)
		return s, Resource{App: app, Project: place, Owner: they}, true
	case Project:
		grant(OnProject, string(place))
		return s, Resource{App: app, Project: place}, true
	case ProjectUser:
		grant(OnProject, string(place))
		return s, Resource{App: app, Project: place, Owner: they}, true
	case App:
		grant(OnApp, string(app))
		return s, Resource{App: app, Project: place}, true
	case AppUser:
		grant(OnApp, string(app))
		return s, Resource{App: app, Project: place, Owner: they}, true
	case Everything:
		grant(OnPlatform, "")
		return s, Resource{App: app, Project: place, Owner: they}, true
	}
	return s, thing, false
}

// differs finds a cell in which a table decides otherwise than it should.
func differs(t *table) string {
	for _, r := range Roles() {
		for _, rel := range Relations() {
			s, thing, ok := reach(r, rel)
			for _, a := range Actions() {
				got := t.allows(r, a, rel)
				if ok {
					got, _ = t.can(s, a, thing)
				}
				if got != says(r, a, rel) {
					return string(r) + " " + string(a) + " " + string(rel)
				}
			}
		}
	}
	return ""
}

func TestEveryCell(t *testing.T) {
	if at := differs(builtin()); at != "" {
		t.Errorf("the decision is wrong: %s", at)
	}
	if want := len(Roles()) * len(Actions()) * len(Relations()); len(builtin().cells) != want {
		t.Errorf("%d cells, want %d", len(builtin().cells), want)
	}
}

// A table in which one cell is flipped is found, whichever cell it is.
func TestEveryFlippedCellIsFound(t *testing.T) {
	for c := range builtin().cells {
		mutant := &table{cells: maps.Clone(builtin().cells), tokens: builtin().tokens}
		mutant.cells[c] = !mutant.cells[c]
		if differs(mutant) == "" {
			t.Errorf("nobody sees that %v is %v", c, mutant.cells[c])
		}
	}
}

// A token covers what its scope says and what its user may, never more.
func TestTokensNarrow(t *testing.T) {
	read := "view_app view_thread browse_files read_audit see_self impersonate_read"
	want := map[string]string{"jobs": "report_job", "agent": "view_thread use_app run_thread report_job", "read": read, "act": read + " use_app manage_kb edit_files run_thread answer_ask delete_thread open_terminal report_job"}
	admin := Subject{User: me, Active: true, Grants: []Grant{{Role: PlatformAdmin, Kind: OnPlatform}}}
	for _, a := range Actions() {
		for _, scope := range []string{"jobs", "agent", "read", "act", "admin", "unknown"} {
			s := admin
			s.Token = scope
			should := scope == "admin" || strings.Contains(" "+want[scope]+" ", " "+string(a)+" ")
			if got, why := Can(s, a, Resource{Owner: they}); got != should {
				t.Errorf("scope %s, %s: %v (%s)", scope, a, got, why)
			}
			if s.Grants = nil; ScopeOf(s, a).Sees(thole.Owner{App: app, Project: place, User: they}) {
				t.Errorf("scope %s, %s of another's thing without a grant", scope, a)
			}
		}
	}
}

// Nobody, a disabled user and an unknown action get nothing, whatever was granted.
func TestNothingByDefault(t *testing.T) {
	all := []Grant{{Role: PlatformAdmin, Kind: OnPlatform}}
	for _, s := range []Subject{{}, {Active: true, Grants: all}, {User: me, Grants: all}, {User: me, Active: true, Grants: []Grant{{Role: "unknown", Kind: OnPlatform}}}, {User: me, Active: true, Grants: []Grant{{Role: PlatformAdmin, Kind: "unknown"}}}} {
		for _, a := range append(Actions(), "unknown", "") {
			if ok, _ := Can(s, a, Resource{App: app, Project: place, Owner: they}); ok {
				t.Errorf("%+v may %s", s, a)
			}
			if ScopeOf(s, a).Sees(thole.Owner{App: app, Project: place, User: they}) {
				t.Errorf("%+v sees for %s", s, a)
			}
		}
	}
	if ok, _ := Can(Subject{User: me, Active: true, Grants: all}, "unknown", Resource{}); ok {
		t.Error("an unknown action is allowed")
	}
	if ok, _ := Can(Subject{Program: true}, DeleteThread, Resource{Owner: they}); !ok {
		t.Error("the program is refused")
	}
}

func TestTableIsRead(t *testing.T) {
	for _, bad := range []string{"", strings.Replace(tableText, "yes", "maybe", 1), strings.Replace(tableText, "app_admin ", "app_owner ", 1), strings.Replace(tableText, "token read", "token read fly", 1), tableText + "\nmember use_app yes - - - - - - -"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("read: %.80s", bad)
		}
	}
}

func TestRolesMeanSomething(t *testing.T) {
	want := map[Role]string{PlatformAdmin: "platform", AppAdmin: "app", ProjectAdmin: "project", Member: "app project", Viewer: "platform app project user department"}
	for _, r := range Roles() {
		var got []string
		for _, k := range Kinds() {
			if r.Grants(k) {
				got = append(got, string(k))
			}
		}
		if strings.Join(got, " ") != want[r] {
			t.Errorf("%s is granted on %v, want %s", r, got, want[r])
		}
	}
}

// Who grants a role has every right that it gives, whatever cell of the table gives one.
func TestExceeds(t *testing.T) {
	for _, have := range Roles() {
		for _, k := range Kinds() {
			if !have.Grants(k) {
				continue
			}
			places := map[Kind]Resource{OnApp: {App: app}, OnProject: {App: app, Project: place}}
			ids := map[Kind]string{OnApp: string(app), OnProject: string(place), OnUser: string(they), OnDepartment: "d"}
			s := Subject{User: me, Active: true, Grants: []Grant{{Role: have, Kind: k, ID: ids[k], Users: []thole.UserID{they}}}}
			for _, give := range Roles() {
				for _, on := range Kinds() {
					got := Exceeds(s, Grant{Role: give, Kind: on, ID: ids[on], Users: []thole.UserID{they}}, places[on])
					with := s
					with.Grants = append([]Grant{{Role: give, Kind: on, ID: ids[on], Users: []thole.UserID{they}}}, s.Grants...)
					for _, a := range Actions() {
						for _, r := range []Resource{{}, {App: app}, {App: app, Project: place}, {App: app, Project: place, Owner: they}, {Owner: they}, {App: "other", Project: "other", Owner: "stranger"}} {
							if before, _ := Can(s, a, r); !before && got == "" {
								if after, why := Can(with, a, r); after {
									t.Errorf("%s on %s gives %s on %s, and with it %s of %+v: %s", have, k, give, on, a, r, why)
								}
							}
						}
					}
				}
			}
		}
	}
}
