package shelf

import (
	"slices"

	"github.com/tholehq/thole/internal/workspace/beneath"
)

// unfetched names submodules into which something was written without fetching them. Git
// looks for their files in a repository of their own, and there is none: it says nothing of
// them, and neither would a diff.
func (o *one) unfetched() (left []string) {
	if o.dir == "" || len(o.th.Files.Submodules) == 0 {
		return nil
	}
	root, err := beneath.Open(o.dir)
	if err != nil {
		return nil // what looks at the files says why
	}
	defer root.Close()
	for _, path := range o.th.Files.Submodules {
		at, last, err := root.Parent(path, false)
		if err != nil {
			continue
		}
		if sub, err := at.Sub(last); err == nil {
			if names, err := sub.Names(); err == nil && len(names) > 0 && !slices.Contains(names, ".git") {
				left = append(left, path+": a submodule that was not fetched; files in it belong to no repository")
			}
			sub.Close()
		}
		at.Close()
	}
	return left
}
