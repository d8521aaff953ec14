package thread

import (
	"slices"

	thole "github.com/tholehq/thole"
)

// Scope is the set of threads an actor may see. The zero Scope sees nothing.
type Scope struct {
	All      bool
	User     thole.UserID
	Projects []thole.ProjectID
}

// Sees reports whether a thread of that owner is inside the scope.
func (s Scope) Sees(o thole.Owner) bool {
	return s.All || s.User != "" && s.User == o.User || slices.Contains(s.Projects, o.Project)
}

// ownThreads is the access rule without a platform: everybody sees their own
// threads and the program itself sees all.
func ownThreads(a thole.Actor) Scope {
	return Scope{All: a.Via == "system", User: a.User}
}

func errNoThread(id thole.ThreadID) error {
	return thole.Errorf(thole.CodeNotFound, "thread not found: %s", id).WithHint("thole thread list shows the threads")
}

func errNoTurn(id thole.TurnID) error {
	return thole.Errorf(thole.CodeNotFound, "turn not found: %s", id)
}
