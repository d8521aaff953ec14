// Package identity owns who there is: users with their states, passwords and the names that
// providers of logins have for them, departments, grants, and the links with which a person
// takes an account. It owns the moves between states and who may make them; what a granted
// role allows is internal/authz, and what proves a request is internal/platform/session.
//
// A home has one user, the local one, who may do everything. The set-up of a server makes
// its first administrator; from then on the local user is one among others.
package identity

import (
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// State is where a user is.
type State string

// The states. Only an active user can do anything.
const (
	Invited  State = "invited" // has a link, and was never in
	Active   State = "active"
	Disabled State = "disabled"
)

// moves are the legal ones.
var moves = map[State][]State{
	Invited:  {Active, Disabled},
	Active:   {Disabled},
	Disabled: {Active},
}

// Kind is what a user is.
type Kind string

// The kinds. A service has tokens and no login; the system is the program itself.
const (
	Human   Kind = "human"
	Service Kind = "service"
	System  Kind = "system"
)

// User is one who can own things.
type User struct {
	ID       thole.UserID
	Login    string
	Name     string
	Email    string
	Locale   string
	Kind     Kind
	State    State
	Created  time.Time
	Disabled time.Time // zero: is not
}

// DepartmentID names a department.
type DepartmentID string

// Department groups users; those of the departments below it belong to it too.
type Department struct {
	ID       DepartmentID
	Parent   DepartmentID // "": none
	Name     string
	External string // what a directory elsewhere calls it
	Created  time.Time
	Members  []thole.UserID
}

// Holder is who a grant is given to.
type Holder string

// The holders.
const (
	ToUser       Holder = "user"
	ToDepartment Holder = "department"
)

// Grant gives a user or the users of a department a role on a scope.
type Grant struct {
	ID      string
	Holder  Holder
	To      string // id of the user or department
	Role    authz.Role
	Kind    authz.Kind
	On      string // id of the app, project, user or department; "" for the platform
	Source  string // "": a person; else the provider of logins whose groups say so
	By      thole.UserID
	Created time.Time
	Expires time.Time // zero: never
}

// Purpose is what a link is for.
type Purpose string

// The purposes.
const (
	Setup  Purpose = "setup"  // makes the first administrator of a server
	Invite Purpose = "invite" // lets an invited user in
	Reset  Purpose = "reset"  // lets a user choose another password
)

// Link lets its holder choose a password, once. Its secret is not in it.
type Link struct {
	Hash    string
	Purpose Purpose
	User    thole.UserID // "" for a set-up
	By      thole.UserID
	Created time.Time
	Expires time.Time
}

// Identity is what a provider of logins knows a user as.
type Identity struct {
	Issuer, Subject    string
	Login, Name, Email string
	// Verified: the provider proved that the address is the user's.
	Verified bool
}

// Facts are all that decides what a user may do.
type Facts struct {
	User User
	// Team: the server was set up, and the local user is one among others.
	Team bool
	// Grants that reach the user, also through departments, and have not expired.
	Grants []Grant
	// Below are the users of the departments that grants are on, and of those below them.
	Below map[DepartmentID][]thole.UserID
}

// Subject is who decisions are about.
func (f Facts) Subject() authz.Subject {
	s := authz.Subject{User: f.User.ID, Active: f.User.State == Active}
	if f.User.ID == thole.LocalUser && !f.Team {
		s.Grants = []authz.Grant{{Role: authz.PlatformAdmin, Kind: authz.OnPlatform}}
	}
	for _, g := range f.Grants {
		granted := authz.Grant{Role: g.Role, Kind: g.Kind, ID: g.On}
		if g.Kind == authz.OnDepartment {
			granted.Users = f.Below[DepartmentID(g.On)]
		}
		s.Grants = append(s.Grants, granted)
	}
	return s
}
