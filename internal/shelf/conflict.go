package shelf

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
)

// side is one of two that are merged: a tree or a commit, and what a person calls it.
type side struct{ id, name string }

// leftInTree ends git's words on some conflicts. Nothing is left anywhere here.
var leftInTree = regexp.MustCompile(`\s+Version .* left in tree\.$`)

// plainWhy says what git says of a conflict, to a person who sees its path next to it.
func plainWhy(path, said string) string {
	said = strings.TrimSpace(said)
	switch {
	case strings.HasPrefix(said, "CONFLICT (content): "):
		return "both changed it"
	case strings.HasPrefix(said, "CONFLICT (add/add): "):
		return "both added it"
	case strings.HasPrefix(said, "CONFLICT ("):
		_, said, _ = strings.Cut(said, "): ")
	}
	return strings.TrimPrefix(leftInTree.ReplaceAllString(said, ""), path+" ")
}

// parseMerge reads what git merge-tree -z --name-only says.
func parseMerge(out []byte, failed error, sides ...side) (tree string, conflicts []Conflict, err error) {
	var exit *git.Error
	if failed != nil && (!errors.As(failed, &exit) || exit.Exit != 1) {
		return "", nil, failed
	}
	fields := strings.Split(string(out), "\x00")
	if tree = fields[0]; !validID(tree) {
		return "", nil, thole.Errorf(thole.CodeInternal, "git named no tree")
	}
	at := map[string]int{}
	rest := fields[1:]
	for len(rest) > 0 && rest[0] != "" {
		at[rest[0]] = len(conflicts)
		conflicts = append(conflicts, Conflict{Path: rest[0], Why: "both changed it"})
		rest = rest[1:]
	}
	for rest = tail(rest, 1); len(rest) >= 3; { // NUMBER, that many paths, kind, message
		n, err := strconv.Atoi(rest[0])
		if err != nil || n < 0 || len(rest) < n+3 {
			break
		}
		for _, path := range rest[1 : n+1] {
			if i, ok := at[path]; ok && strings.HasPrefix(rest[n+1], "CONFLICT") {
				conflicts[i].Why = plainWhy(path, rest[n+2])
			}
		}
		rest = rest[n+3:]
	}
	if failed != nil && len(conflicts) == 0 {
		return "", nil, failed
	}
	for i, c := range conflicts {
		for _, s := range sides {
			c.Why = strings.ReplaceAll(c.Why, s.id, s.name)
		}
		conflicts[i] = c
	}
	return tree, conflicts, nil
}
