package shelf

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// ignoredByUser is what the user has git ignore in all repositories. It counts in their own:
// there it is what git says to them.
func (r *userRepo) ignoredByUser(ctx context.Context, g *git.Runner) string {
	if r.UID != os.Geteuid() {
		return ""
	}
	path := theUser(g).Ignored(ctx)
	if path == "" {
		return ""
	}
	text, err := beneath.ReadFile(filepath.Dir(path), filepath.Base(path), maxSmallFile)
	if err != nil {
		return "" // without it nothing more is left out
	}
	return strings.TrimSuffix(string(text), "\n") + "\n"
}

// ignoredAbove is what the .gitignore files above a directory say about what is in it, as
// patterns of that directory: git that looks at the directory alone does not read them.
func ignoredAbove(top, dir string) string {
	rel, err := filepath.Rel(top, dir)
	if err != nil || rel == "." || strings.HasPrefix(rel, "..") {
		return ""
	}
	var out strings.Builder
	below := strings.Split(filepath.ToSlash(rel), "/")
	for i := range below {
		text, err := beneath.ReadFile(filepath.Join(append([]string{top}, below[:i]...)...), ".gitignore", maxSmallFile)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if p := lowered(strings.TrimRight(line, "\r\n"), below[i:]); p != "" {
				out.WriteString(p + "\n")
			}
		}
	}
	return out.String()
}

// lowered is a pattern of a directory as one of a directory below it, "" where it says
// nothing about what is there.
func lowered(pattern string, below []string) string {
	if pattern == "" || pattern[0] == '#' {
		return ""
	}
	not := ""
	if pattern[0] == '!' {
		not, pattern = "!", pattern[1:]
	}
	if !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
		return not + pattern // of any depth
	}
	parts := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for i, name := range below {
		if i >= len(parts) || parts[i] == "" {
			return "" // the directory itself
		}
		if parts[i] == "**" {
			return not + strings.Join(slices.Concat([]string{"**"}, parts[i+1:]), "/")
		}
		if ok, err := path.Match(parts[i], name); err != nil || !ok {
			return ""
		}
	}
	rest := strings.Join(parts[len(below):], "/")
	if rest == "" {
		return ""
	}
	return not + "/" + rest
}
