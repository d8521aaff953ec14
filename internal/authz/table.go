package authz

import (
	_ "embed" // the table
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Relation is how a thing stands to who asks: a column of the table.
type Relation string

// The relations.
const (
	Self        Relation = "self"         // the user's own, where the user has a part
	Away        Relation = "away"         // the user's own, in a place where they have none any more
	OfUser      Relation = "user"         // a thing of a user on whom, or on whose department, there is a grant
	Project     Relation = "project"      // a thing of a project that was granted
	ProjectUser Relation = "project_user" // a user's thing in it
	App         Relation = "app"
	AppUser     Relation = "app_user"
	Everything  Relation = "platform" // whatever it is
)

// Relations are all of them, in the order of the table's columns.
func Relations() []Relation {
	return []Relation{Self, Away, OfUser, Project, ProjectUser, App, AppUser, Everything}
}

func relationsOf(k Kind) []Relation {
	switch k {
	case OnPlatform:
		return []Relation{Everything}
	case OnApp:
		return []Relation{App, AppUser}
	case OnProject:
		return []Relation{Project, ProjectUser}
	case OnUser, OnDepartment:
		return []Relation{OfUser}
	}
	return nil
}

type cell struct {
	role     Role
	action   Action
	relation Relation
}

// table is what the file says; what it does not say is refused.
type table struct {
	cells  map[cell]bool
	tokens map[string]map[Action]bool // what a token's scope covers
}

func (t *table) allows(r Role, a Action, rel Relation) bool { return t.cells[cell{r, a, rel}] }

// TokenCovers reports whether a login or token of that scope is good for an action at all.
func TokenCovers(scope string, a Action) bool { return builtin().tokens[scope][a] }

//go:embed table.txt
var tableText string

var builtin = sync.OnceValue(func() *table {
	t, err := parse(tableText)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return t
})

// parse reads lines of a role, an action and a yes or - for each relation, and lines of
// token, a scope, and the actions that it covers. Every role has every action, once.
func parse(text string) (*table, error) {
	t := &table{cells: map[cell]bool{}, tokens: map[string]map[Action]bool{}}
	seen := map[string]bool{}
	for n, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || strings.HasPrefix(f[0], "#"):
			continue
		case f[0] == "token" && len(f) > 2:
			covers := map[Action]bool{}
			for _, a := range f[2:] {
				if !slices.Contains(Actions(), Action(a)) {
					return nil, fmt.Errorf("line %d: no action %s", n+1, a)
				}
				covers[Action(a)] = true
			}
			t.tokens[f[1]] = covers
			continue
		}
		if len(f) != 2+len(Relations()) || !slices.Contains(Roles(), Role(f[0])) || !slices.Contains(Actions(), Action(f[1])) || seen[f[0]+f[1]] {
			return nil, fmt.Errorf("line %d is not a role, an action and %d relations, once: %s", n+1, len(Relations()), line)
		}
		seen[f[0]+f[1]] = true
		for i, rel := range Relations() {
			if v := f[2+i]; v != "yes" && v != "-" {
				return nil, fmt.Errorf("line %d: %s is neither yes nor -", n+1, v)
			}
			t.cells[cell{Role(f[0]), Action(f[1]), rel}] = f[2+i] == "yes"
		}
	}
	if want := len(Roles()) * len(Actions()); len(seen) != want {
		return nil, fmt.Errorf("the table has %d lines for %d roles and actions", len(seen), want)
	}
	return t, nil
}
