package authz

import (
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
)

// Scope is the set of users' things to which a subject may do one thing. The zero Scope is
// empty.
type Scope struct {
	All bool
	// Self are the user's own: everywhere, or where they have a part.
	Self     thole.UserID
	Admitted *Places // nil: everywhere
	Users    []thole.UserID
	Places
}

// Places are apps and projects.
type Places struct {
	Apps     []thole.AppID
	Projects []thole.ProjectID
}

func (p Places) has(o thole.Owner) bool {
	return slices.Contains(p.Apps, o.App) || slices.Contains(p.Projects, o.Project)
}

// Own is the scope of those who see their own things and no others; the program sees all,
// but where it acts for a user.
func Own(a thole.Actor) Scope {
	if program(a) {
		return Scope{All: true}
	}
	return Scope{Self: a.User}
}

// Mine leaves the subject's own things of a scope; the program keeps all.
func (s Scope) Mine(a thole.Actor) Scope {
	switch {
	case program(a):
		return s
	case s.All:
		return Scope{Self: a.User}
	}
	return Scope{Self: s.Self, Admitted: s.Admitted}
}

func program(a thole.Actor) bool {
	return a.Via == thole.SystemActor.Via && a.User == thole.SystemUser
}

// ScopeOf compiles what the subject's grants say of an action.
func ScopeOf(s Subject, a Action) Scope { return builtin().scope(s, a) }

func (t *table) scope(s Subject, a Action) Scope {
	switch {
	case s.Program:
		return Scope{All: true}
	case s.User == "" || !s.Active || s.Token != "" && !t.tokens[s.Token][a]:
		return Scope{}
	}
	var out Scope
	self, away := t.allows(Member, a, Self), t.allows(Member, a, Away)
	if self || away {
		out.Self = s.User
	}
	if self && !away {
		out.Admitted = &Places{}
	}
	for _, g := range s.Grants {
		switch g.Kind {
		case OnPlatform:
			out.All = out.All || t.allows(g.Role, a, Everything)
			if out.Admitted != nil && g.Role == PlatformAdmin {
				out.Admitted = nil
			}
		case OnApp:
			if t.allows(g.Role, a, AppUser) {
				out.Apps = append(out.Apps, thole.AppID(g.ID))
			}
			if out.Admitted != nil && g.Role != Viewer {
				out.Admitted.Apps = append(out.Admitted.Apps, thole.AppID(g.ID))
			}
		case OnProject:
			if t.allows(g.Role, a, ProjectUser) {
				out.Projects = append(out.Projects, thole.ProjectID(g.ID))
			}
			if out.Admitted != nil && g.Role != Viewer {
				out.Admitted.Projects = append(out.Admitted.Projects, thole.ProjectID(g.ID))
			}
		case OnUser, OnDepartment:
			if !t.allows(g.Role, a, OfUser) {
				continue
			}
			if g.Kind == OnUser {
				out.Users = append(out.Users, thole.UserID(g.ID))
			}
			out.Users = append(out.Users, g.Users...)
		}
	}
	if out.All {
		return Scope{All: true}
	}
	return out
}

// Sees reports whether a thing of that owner is inside.
func (s Scope) Sees(o thole.Owner) bool {
	if s.All {
		return true
	}
	if s.Self != "" && s.Self == o.User {
		everybodys := o.App == thole.DefaultApp && o.Project == thole.DefaultProject
		if s.Admitted == nil || everybodys || s.Admitted.has(o) {
			return true
		}
	}
	return slices.Contains(s.Users, o.User) || s.has(o)
}

// Where is the scope as a condition on the columns app_id, project_id and user_id of a
// table, whose name and a dot is prefix. arg takes a value and returns its placeholder.
func (s Scope) Where(prefix string, arg func(any) string) string {
	if s.All {
		return "1 = 1"
	}
	var any []string
	if s.Self != "" {
		own := prefix + "user_id = " + arg(string(s.Self))
		if s.Admitted != nil {
			places := append([]string{"(" + prefix + "app_id = " + arg(string(thole.DefaultApp)) + " and " + prefix + "project_id = " + arg(string(thole.DefaultProject)) + ")"}, s.Admitted.where(prefix, arg)...)
			own = "(" + own + " and (" + strings.Join(places, " or ") + "))"
		}
		any = append(any, own)
	}
	any = append(any, in(prefix+"user_id", s.Users, arg)...)
	any = append(any, s.where(prefix, arg)...)
	switch len(any) {
	case 0:
		return "1 = 0"
	case 1:
		return any[0]
	}
	return "(" + strings.Join(any, " or ") + ")"
}

func (p Places) where(prefix string, arg func(any) string) []string {
	return append(in(prefix+"app_id", p.Apps, arg), in(prefix+"project_id", p.Projects, arg)...)
}

func in[T ~string](column string, values []T, arg func(any) string) []string {
	if len(values) == 0 {
		return nil
	}
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = arg(string(v))
	}
	return []string{column + " in (" + strings.Join(all, ", ") + ")"}
}
