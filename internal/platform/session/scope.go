package session

// Scope is what a login or a token may do. Read, act and admin each include the one
// before; jobs is a part of act for machines that report from elsewhere, and sees nothing.
type Scope string

const (
	ScopeJobs  Scope = "jobs"  // submit jobs, and report how they ended
	ScopeRead  Scope = "read"  // see everything of its user
	ScopeAct   Scope = "act"   // also send, answer, edit and remove
	ScopeAdmin Scope = "admin" // also manage logins and tokens
)

var ranks = map[Scope]int{ScopeRead: 1, ScopeAct: 2, ScopeAdmin: 3}

// Valid reports whether s is one of the four.
func (s Scope) Valid() bool { return s == ScopeJobs || ranks[s] > 0 }

// Covers reports whether s permits what needs the other scope.
func (s Scope) Covers(need Scope) bool {
	if need == ScopeJobs {
		return s == ScopeJobs || s.Covers(ScopeAct)
	}
	return ranks[need] > 0 && ranks[s] >= ranks[need]
}
