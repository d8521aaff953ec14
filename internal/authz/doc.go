// Package authz decides who may do what. Can is one pure function over a Subject that was
// loaded before: a user, the grants that reach them, and the scope of their token. What
// each role may do is a file, table.txt. What nothing allows is refused.
//
// A Scope is the same decision about all things of users at once: a predicate over owners
// that is asked in memory (Sees) and in a query (Where). The package reads no store and
// knows no wire.
package authz

import (
	"slices"

	thole "github.com/tholehq/thole"
)

// Action is what a subject wants to do.
type Action string

// The actions.
const (
	UseApp            Action = "use_app"
	ManageKB          Action = "manage_kb"
	ManageAgentConfig Action = "manage_agentconfig"
	BrowseFiles       Action = "browse_files"
	EditFiles         Action = "edit_files"
	ViewApp           Action = "view_app"
	ManageApp         Action = "manage_app"
	ViewThread        Action = "view_thread"
	RunThread         Action = "run_thread"
	AnswerAsk         Action = "answer_ask"
	DeleteThread      Action = "delete_thread"
	OpenTerminal      Action = "open_terminal"
	ManageMembers     Action = "manage_members"
	ManageBudget      Action = "manage_budget"
	ReadAudit         Action = "read_audit"
	ManageUsers       Action = "manage_users"
	ImpersonateRead   Action = "impersonate_read"
	// ReportJob is what a machine elsewhere does: it submits jobs and says how they ended.
	ReportJob Action = "report_job"
	// SeeSelf and ManageSelf are about one's own account: profile, logins, tokens, links.
	SeeSelf    Action = "see_self"
	ManageSelf Action = "manage_self"
)

// Actions are all of them, in the order of the table.
func Actions() []Action {
	return []Action{
		UseApp, ManageKB, ManageAgentConfig, BrowseFiles, EditFiles, ViewApp, ManageApp, ViewThread, RunThread, AnswerAsk, DeleteThread, OpenTerminal,
		ManageMembers, ManageBudget, ReadAudit, ManageUsers, ImpersonateRead, ReportJob, SeeSelf, ManageSelf,
	}
}

// Role is a named set of rights.
type Role string

// The roles. Every active user is a member of what is theirs, without a grant.
const (
	PlatformAdmin Role = "platform_admin"
	AppAdmin      Role = "app_admin"
	ProjectAdmin  Role = "project_admin"
	Member        Role = "member"
	Viewer        Role = "viewer"
)

// Roles are all of them.
func Roles() []Role { return []Role{PlatformAdmin, AppAdmin, ProjectAdmin, Member, Viewer} }

// Kind is what a grant is for.
type Kind string

// The kinds of a grant's scope.
const (
	OnPlatform   Kind = "platform"
	OnApp        Kind = "app"
	OnProject    Kind = "project"
	OnUser       Kind = "user"
	OnDepartment Kind = "department"
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{OnPlatform, OnApp, OnProject, OnUser, OnDepartment} }

// Grants reports whether the role means anything on that kind of scope: whether the table
// has a right for it there, or the role lets its holder into a place.
func (r Role) Grants(k Kind) bool {
	if r == Member {
		return k == OnApp || k == OnProject
	}
	for _, rel := range relationsOf(k) {
		for _, a := range Actions() {
			if builtin().allows(r, a, rel) {
				return true
			}
		}
	}
	return false
}

// May reports whether the table lets the role do that to things in that relation.
func (r Role) May(a Action, rel Relation) bool { return builtin().allows(r, a, rel) }

// Grant gives a subject a role on a scope.
type Grant struct {
	Role Role
	Kind Kind
	ID   string // of the app, project, user or department; "" for the platform
	// Users are those of a department and of the departments below it.
	Users []thole.UserID
}

// Subject is who asks, with all that the decision needs. The zero Subject may do nothing.
type Subject struct {
	User   thole.UserID
	Active bool
	// Program is the program itself: sweeps, dispatchers, deliveries. It may do everything.
	Program bool
	Grants  []Grant
	// Token narrows what the user may do to a scope of the table: "", not at all.
	Token string
}

// Resource is what the subject wants to do it to. A thing of a user has its owner; a thing of
// an app or a project has none; nothing at all is the platform.
type Resource struct {
	App     thole.AppID
	Project thole.ProjectID
	Owner   thole.UserID
}

// Of is a thing of an owner.
func Of(o thole.Owner) Resource { return Resource{App: o.App, Project: o.Project, Owner: o.User} }

// Can decides. why says which role allowed it, or what is missing.
func Can(s Subject, a Action, r Resource) (allow bool, why string) { return builtin().can(s, a, r) }

func (t *table) can(s Subject, a Action, r Resource) (bool, string) {
	switch {
	case s.Program:
		return true, "the program itself"
	case s.User == "":
		return false, "nobody is logged in"
	case !s.Active:
		return false, "the user is disabled"
	case s.Token != "" && !t.tokens[s.Token][a]:
		return false, "the token's scope " + s.Token + " does not cover " + string(a)
	}
	if r.Owner == s.User {
		rel := Away
		if s.admitted(r) {
			rel = Self
		}
		if t.allows(Member, a, rel) {
			return true, "it is the user's own"
		}
	}
	for _, g := range s.Grants {
		if rel, ok := g.relation(r); ok && t.allows(g.Role, a, rel) {
			return true, string(g.Role) + " of " + string(g.Kind) + " " + g.ID
		}
	}
	return false, "no grant allows " + string(a)
}

// relation is how a grant reaches a thing.
func (g Grant) relation(r Resource) (Relation, bool) {
	switch g.Kind {
	case OnPlatform:
		return Everything, true
	case OnApp:
		return shared(App, r), r.App != "" && g.ID == string(r.App)
	case OnProject:
		return shared(Project, r), r.Project != "" && g.ID == string(r.Project)
	case OnUser:
		return OfUser, r.Owner != "" && g.ID == string(r.Owner)
	case OnDepartment:
		return OfUser, r.Owner != "" && slices.Contains(g.Users, r.Owner)
	}
	return "", false
}

// shared is the relation to a thing of the place itself, or to a user's thing in it.
func shared(place Relation, r Resource) Relation {
	if r.Owner == "" {
		return place
	}
	return place + "_user"
}

// admitted reports whether a user's own thing is where the user has a part: in no place,
// in the one that is everybody's, or where some grant lets them in.
func (s Subject) admitted(r Resource) bool {
	if r.App == "" && r.Project == "" || r.App == thole.DefaultApp && r.Project == thole.DefaultProject {
		return true
	}
	return slices.ContainsFunc(s.Grants, func(g Grant) bool {
		switch g.Kind {
		case OnPlatform:
			return g.Role == PlatformAdmin
		case OnApp:
			return g.Role != Viewer && g.ID == string(r.App)
		case OnProject:
			return g.Role != Viewer && g.ID == string(r.Project)
		case OnUser, OnDepartment:
		}
		return false
	})
}
