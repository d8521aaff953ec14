package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Git runs what a repository's own configuration and hooks name as soon as someone
// says git status in it. An agent wrote them, so an export has neither: no hooks, and
// of configuration what is known to run nothing. A directory counts as a repository
// by what git looks for in one, whatever it is called.
type traps struct {
	repositories map[string]bool // their directories
	Stripped     []string
}

func findTraps(t *workspace.Tree) *traps {
	has := map[string]int{}
	for _, e := range t.Entries {
		dir, name := path.Split(e.Path)
		switch strings.ToLower(name) { // some file systems know no case
		case "head":
			has[path.Clean(dir)] |= 4
		case "objects":
			has[path.Clean(dir)] |= 1
		case "refs":
			has[path.Clean(dir)] |= 2
		}
	}
	out := &traps{repositories: map[string]bool{}}
	for dir, n := range has {
		out.repositories[dir] = n >= 3
	}
	return out
}

// drops reports whether an entry is left out.
func (t *traps) drops(e workspace.Entry) bool {
	for dir, name := path.Split(e.Path); name != ""; dir, name = path.Split(path.Clean(dir)) {
		if dir = path.Clean(dir); !t.repositories[dir] {
			if dir == "." {
				break
			}
			continue
		}
		hooks := strings.EqualFold(name, "hooks")
		if hooks || t.isConfig(dir, name) && e.Kind != beneath.File {
			if what := path.Join(dir, name); !slices.Contains(t.Stripped, what) {
				t.Stripped = append(t.Stripped, what)
			}
			return true
		}
		if dir == "." {
			break
		}
	}
	return false
}

// rewrites reports whether an entry is a repository's configuration.
func (t *traps) rewrites(e workspace.Entry) bool {
	dir, name := path.Split(e.Path)
	return e.Kind == beneath.File && t.isConfig(path.Clean(dir), name)
}

func (t *traps) isConfig(dir, name string) bool {
	name = strings.ToLower(name)
	return t.repositories[dir] && (name == "config" || name == "config.worktree")
}

const maxGitConfig = 1 << 20

// rewrite returns a repository's configuration as what of it runs nothing.
func (t *traps) rewrite(ctx context.Context, v *View, e workspace.Entry) (workspace.Entry, io.ReadCloser, error) {
	body, _, err := v.Open(ctx, e.Path, 0, min(e.Size, maxGitConfig))
	if err != nil {
		return e, nil, err
	}
	text, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		return e, nil, err
	}
	kept, gone := harmless(string(text))
	if e.Size > maxGitConfig {
		gone = append(gone, "what is beyond 1 MiB")
	}
	if len(gone) > 0 {
		t.Stripped = append(t.Stripped, e.Path+": "+strings.Join(gone, ", "))
	}
	e.Size, e.Data, e.Same = int64(len(kept)), nil, ""
	return e, io.NopCloser(strings.NewReader(kept)), nil
}

// settings are what a configuration may say, by section and name.
var settings = map[string][]string{
	"core":       {"repositoryformatversion", "filemode", "bare", "ignorecase", "symlinks", "logallrefupdates", "precomposeunicode", "autocrlf", "eol", "abbrev", "compression"},
	"extensions": {"objectformat", "compatobjectformat", "refstorage", "worktreeconfig", "noop", "preciousobjects"}, "user": {"name", "email"}, "init": {"defaultbranch"},
	"remote": {"url", "fetch", "tagopt", "prune"}, "branch": {"remote", "merge", "rebase", "description"}, "submodule": {"active", "url", "branch"},
	"pull": {"rebase", "ff"}, "push": {"default"},
}

var (
	header = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]`)
	})
	setting = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?$`)
	value   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^"\\;#\x00-\x1f]*$`) })
	address = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^((https?|ssh|git|file)://|[A-Za-z0-9_.][A-Za-z0-9_.@-]*:[^:]|[./])`)
	})
)

// harmless is the part of a configuration that is known to run nothing, written again,
// and the names of what is not in it. A line that git might read in another way is
// not in it either: only a plain value is.
func harmless(text string) (kept string, gone []string) {
	var b strings.Builder
	section, name, sub, open := "", "", "", false
	drop := func(what string) {
		if !slices.Contains(gone, what) {
			gone = append(gone, what)
		}
	}
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if m := header().FindStringSubmatch(line); m != nil {
			name, sub, open = strings.ToLower(m[1]), m[2], true
			section = "[" + name + "]"
			if sub != "" {
				section = fmt.Sprintf("[%s \"%s\"]", name, sub)
			}
			line = strings.TrimSpace(line[len(m[0]):])
			if value().MatchString(sub) && settings[name] != nil {
				b.WriteString(section + "\n")
			} else {
				open = false
			}
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		continued := strings.HasSuffix(line, `\`)
		m := setting.FindStringSubmatch(line)
		switch {
		case m == nil:
			drop("a line that is no setting")
		case continued || !open || !slices.Contains(settings[name], strings.ToLower(m[1])) || !value().MatchString(m[2]) || strings.EqualFold(m[1], "url") && !address().MatchString(m[2]):
			drop(strings.TrimPrefix(strings.Trim(section, "[]")+"."+strings.ToLower(m[1]), "."))
		default:
			fmt.Fprintf(&b, "\t%s = %s\n", strings.ToLower(m[1]), m[2])
		}
		for continued && i+1 < len(lines) {
			i++
			continued = strings.HasSuffix(strings.TrimSpace(lines[i]), `\`)
		}
	}
	return b.String(), gone
}
