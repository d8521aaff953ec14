package identity

import (
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// Methods with which a server is asked for its users, over the home's socket or with a token.
const (
	MethodUserAdd     = "thole/user/add"
	MethodUserList    = "thole/user/list"
	MethodUserInvite  = "thole/user/invite"
	MethodUserReset   = "thole/user/reset"
	MethodUserDisable = "thole/user/disable"
	MethodUserEnable  = "thole/user/enable"

	MethodGrantAdd    = "thole/grant/add"
	MethodGrantList   = "thole/grant/list"
	MethodGrantRevoke = "thole/grant/revoke"

	MethodDepartmentAdd    = "thole/department/add"
	MethodDepartmentList   = "thole/department/list"
	MethodDepartmentMove   = "thole/department/move"
	MethodDepartmentRemove = "thole/department/remove"
	MethodDepartmentJoin   = "thole/department/join"
	MethodDepartmentLeave  = "thole/department/leave"
)

// UserParams are the params of the methods about users.
type UserParams struct {
	Login string `json:"login,omitempty"`
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
	Kind  Kind   `json:"kind,omitempty"`
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// UserDescription is a user as those see them who manage users. URL is the link of one who
// was just invited; only the hash of it is kept.
type UserDescription struct {
	ID         thole.UserID `json:"id"`
	Login      string       `json:"login"`
	Name       string       `json:"name"`
	Email      string       `json:"email,omitempty"`
	Kind       Kind         `json:"kind"`
	State      State        `json:"state"`
	CreatedAt  time.Time    `json:"created_at"`
	DisabledAt time.Time    `json:"disabled_at,omitzero"`
	URL        string       `json:"url,omitempty"`
}

// Describe converts a user.
func (u User) Describe() UserDescription {
	return UserDescription{ID: u.ID, Login: u.Login, Name: u.Name, Email: u.Email, Kind: u.Kind, State: u.State, CreatedAt: u.Created, DisabledAt: u.Disabled}
}

// GrantParams are the params of the methods about grants: To a user by login, or Department;
// on an app, project, user or department, or with none of them on the platform.
type GrantParams struct {
	ID         string     `json:"id,omitempty"`
	User       string     `json:"user,omitempty"`
	Department string     `json:"department,omitempty"`
	Role       authz.Role `json:"role,omitempty"`
	Kind       authz.Kind `json:"on,omitempty"`
	On         string     `json:"name,omitempty"`
	Life       int64      `json:"expires_in,omitempty"`
}

// New is the grant that the params ask for.
func (p GrantParams) New() NewGrant {
	n := NewGrant{Holder: ToUser, To: p.User, Role: p.Role, Kind: p.Kind, On: p.On, Life: time.Duration(p.Life) * time.Second}
	if p.Department != "" {
		n.Holder, n.To = ToDepartment, p.Department
	}
	if n.Kind == "" {
		n.Kind = authz.OnPlatform
	}
	return n
}

// GrantDescription is a grant on the wire.
type GrantDescription struct {
	ID        string       `json:"id"`
	Holder    Holder       `json:"to"`
	To        string       `json:"to_id"`
	Role      authz.Role   `json:"role"`
	Kind      authz.Kind   `json:"on"`
	On        string       `json:"on_id,omitempty"`
	Source    string       `json:"source,omitempty"`
	By        thole.UserID `json:"granted_by"`
	CreatedAt time.Time    `json:"created_at"`
	ExpiresAt time.Time    `json:"expires_at,omitzero"`
}

// Describe converts a grant.
func (g Grant) Describe() GrantDescription {
	return GrantDescription{ID: g.ID, Holder: g.Holder, To: g.To, Role: g.Role, Kind: g.Kind, On: g.On, Source: g.Source, By: g.By, CreatedAt: g.Created, ExpiresAt: g.Expires}
}

// DepartmentParams are the params of the methods about departments.
type DepartmentParams struct {
	Name   string `json:"name,omitempty"`
	Parent string `json:"parent,omitempty"`
	User   string `json:"user,omitempty"`
}

// DepartmentDescription is a department on the wire.
type DepartmentDescription struct {
	ID      DepartmentID   `json:"id"`
	Parent  DepartmentID   `json:"parent,omitempty"`
	Name    string         `json:"name"`
	Members []thole.UserID `json:"members,omitempty"`
}

// Describe converts a department.
func (d Department) Describe() DepartmentDescription {
	return DepartmentDescription{ID: d.ID, Parent: d.Parent, Name: d.Name, Members: d.Members}
}
