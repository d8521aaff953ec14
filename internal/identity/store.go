package identity

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// Place is what a grant can be on, as decisions see it.
type Place struct {
	ID       string
	Resource authz.Resource
	Users    []thole.UserID // of a department
}

// Account is what the holder of a link chose.
type Account struct {
	User     User // of a set-up; a link for a user takes only a name that is not ""
	Password string
	Grant    string // id of a set-up's grant
}

// Store keeps the rows. Every change is one transaction with its link of the audit chain,
// and finds the state that it expects or changes nothing.
type Store interface {
	// Facts are those of a user at a time; found=false: there is no such user.
	Facts(ctx context.Context, id thole.UserID, now time.Time) (f Facts, found bool, err error)
	// Users lists by login, those after one, at most limit.
	Users(ctx context.Context, after string, limit int) ([]User, error)
	// ByLogin finds a user and the sum of their password, "" for none.
	ByLogin(ctx context.Context, login string) (u User, password string, found bool, err error)

	// AddUser refuses a taken login with thole.CodeConflict. A link is for an invited user.
	AddUser(ctx context.Context, u User, link *Link) error
	// MoveIf changes a user's state. A user who is not active has no logins, tokens and links:
	// ended has the ids of what ended. moved=false: the user is not in that state. The last
	// administrator of a team is refused with thole.CodeConflict.
	MoveIf(ctx context.Context, id thole.UserID, from, to State, at time.Time) (ended []string, moved bool, err error)
	// AddLink replaces the earlier links of the user, or of the set-up. A set-up that was
	// done is refused with thole.CodeConflict.
	AddLink(ctx context.Context, l Link) error
	// Link finds one that works, and whose it is.
	Link(ctx context.Context, hash string, now time.Time) (l Link, u User, found bool, err error)
	// UseLink uses a link up: the set-up's adds an active user who administers the platform,
	// the others set the password of theirs; an invited user becomes active, a reset ends
	// logins and tokens. Of two callers one gets found=false.
	UseLink(ctx context.Context, hash string, a Account, now time.Time) (u User, ended []string, found bool, err error)
	// SetPassword ends all logins and tokens of an active user but one login; set=false: there
	// is no such user, or the old sum is not theirs any more.
	SetPassword(ctx context.Context, id thole.UserID, was, password, keep string, at time.Time) (ended []string, set bool, err error)

	Departments(ctx context.Context) ([]Department, error)
	// AddDepartment refuses a name that the parent has, and a parent that is not there.
	AddDepartment(ctx context.Context, d Department) error
	// MoveDepartmentIf puts a department below another; a circle is refused.
	MoveDepartmentIf(ctx context.Context, id, from, to DepartmentID) (moved bool, err error)
	// RemoveDepartment refuses one with members, grants or departments below it.
	RemoveDepartment(ctx context.Context, id DepartmentID) (found bool, err error)
	SetMember(ctx context.Context, id DepartmentID, user thole.UserID, member bool) (changed bool, err error)

	// Grants lists those of a holder, or all with To "".
	Grants(ctx context.Context, holder Holder, to string) ([]Grant, error)
	// Place finds what a grant can be on, by its id or name.
	Place(ctx context.Context, kind authz.Kind, name string) (p Place, found bool, err error)
	// AddGrant refuses one that is there already, and a holder that is not.
	AddGrant(ctx context.Context, g Grant) error
	// RemoveGrantIf refuses to take the last administrator of a team away.
	RemoveGrantIf(ctx context.Context, g Grant) (removed bool, err error)

	// Bind finds the user of an identity, or gives it to an invited user whose address was
	// verified, or adds the user; add=nil: nobody is added. found=false: nobody is. To add one
	// whose address another user has is refused with thole.CodeForbidden, and one whose login is taken
	// with thole.CodeConflict.
	Bind(ctx context.Context, i Identity, add *User, at time.Time) (u User, found bool, err error)
	// SetGroups makes the user's grants and departments of a source exactly these. What a person
	// granted stays, and so does who a person put into a department.
	SetGroups(ctx context.Context, user thole.UserID, source string, grants []Grant, in []DepartmentID) error

	// Watch calls fn after something here changed, in any process; it must not wait.
	Watch(fn func()) (cancel func())
}
