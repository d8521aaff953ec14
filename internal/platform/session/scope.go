package session

// Scope is what a login or a token may do. Each includes the one before.
type Scope string

const (
	ScopeRead  Scope = "read"  // see everything of its user
	ScopeAct   Scope = "act"   // also send, answer, edit and remove
	ScopeAdmin Scope = "admin" // also manage logins and tokens
)

var ranks = map[Scope]int{ScopeRead: 1, ScopeAct: 2, ScopeAdmin: 3}

// Valid reports whether s is one of the three.
func (s Scope) Valid() bool { return ranks[s] > 0 }

// Covers reports whether s permits what needs the other scope.
func (s Scope) Covers(need Scope) bool { return need.Valid() && ranks[s] >= ranks[need] }
