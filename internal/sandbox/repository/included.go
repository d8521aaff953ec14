package repository

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// The little of git's configuration that says where more of it lies: which files it
// includes, and where hooks are.

// configured is the last value of a key in one file.
func configured(path, key string) (value string, found bool) {
	all, _ := entries(path)
	for _, e := range all {
		if e.name == key {
			value, found = e.value, true
		}
	}
	return value, found
}

// maxIncluded bounds the files that a configuration includes.
const maxIncluded = 32

// included are the files that a configuration includes, under whichever condition, and
// the directories of hooks that it or they name, relative to the work tree.
func included(config, home string) (files, hooks []string, err error) {
	for todo := []string{config}; len(todo) > 0; todo = todo[1:] {
		all, err := entries(todo[0])
		if errors.Is(err, fs.ErrInvalid) { // git would wait for a pipe
			return files, hooks, refuse(todo[0], "says what git includes, and is not a file").WithHint("remove it if you did not make it")
		}
		if err != nil {
			return files, hooks, refuse(todo[0], "says what git includes, and cannot be read as git does: %w", err).WithHint("correct it: git config --list --file %s names the line", todo[0])
		}
		for _, e := range all {
			include := e.key() == "include.path" || e.key() == "includeif.path"
			if !include && e.name != "core.hookspath" {
				continue
			}
			if e.blank || strings.HasPrefix(e.value, "~") && e.value != "~" && !strings.HasPrefix(e.value, "~/") {
				return files, hooks, refuse(todo[0], "has a path that git may read in several ways: %s = %s", e.name, e.value).WithHint("write it in full, and in quotes")
			}
			if !include {
				hooks = append(hooks, e.value)
				if rest, ok := strings.CutPrefix(e.value, ":(optional)"); ok { // since git 2.52
					hooks = append(hooks, rest)
				}
				continue
			}
			path := expand(e.value, todo[0][:strings.LastIndexByte(todo[0], '/')], home)
			if path == "" || slices.Contains(files, path) {
				continue
			}
			if len(files) == maxIncluded {
				return files, hooks, refuse(config, "includes more than %d files", maxIncluded).WithHint("include fewer")
			}
			files, todo = append(files, path), append(todo, path)
		}
	}
	return files, hooks, nil
}

// expand makes a path of a configuration absolute, "" for one that it cannot. It may lead
// through links.
func expand(path, from, home string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home == "" {
			return ""
		}
		return home + path[1:]
	}
	switch {
	case path == "" || path[0] == '~' || strings.HasPrefix(path, "%(prefix)/"):
		return ""
	case filepath.IsAbs(path):
		return path
	}
	if from == "" {
		return path
	}
	return from + "/" + path
}

// follow is where a path leads that a configuration names. A link on the way is refused
// where agents could replace it.
func (p Place) follow(path string) (string, error) {
	at, links := sandbox.Follow(path)
	if slices.ContainsFunc(links, p.writable) {
		return "", refuse(path, "is named by the configuration of git and led to by a symbolic link, which an agent could replace").WithHint("name %s itself in the configuration", at)
	}
	return at, nil
}

// writable reports whether agents write where a path is.
func (p Place) writable(path string) bool { return beneath.Within(path, append(p.Outside(), p.Dir)...) }

// Named is a path that configuration names: a directory of hooks, which may be relative to
// each work tree, or a file.
type Named struct {
	Path  string `json:"path"`
	Hooks bool   `json:"hooks,omitempty"`
}

// NamedOutside are the paths that configuration outside of a place names, which a box in it
// does not show: files of the user's own configuration, what those and the repository's
// include, and directories of hooks. Those that agents cannot write are left out.
func (p Place) NamedOutside() (all []Named, err error) {
	configs := []string{"/etc/gitconfig"}
	if p.Home != "" {
		configs = append(configs, p.Home+"/.gitconfig", p.Home+"/.config/git/config")
	}
	own := p.gitDirs()
	for _, dir := range own {
		configs = append(configs, dir+"/config", dir+"/config.worktree")
	}
	for _, config := range configs {
		files, hooks, err := included(config, p.Home)
		if err != nil && !errors.Is(err, fs.ErrPermission) { // nor can the user's git read it
			return nil, err
		}
		from := p.Top
		if !beneath.Within(config, own...) {
			files, from = append(files, config), "" // for any work tree
		}
		named := []Named{}
		for _, path := range files {
			named = append(named, Named{Path: path})
		}
		for _, path := range hooks {
			named = append(named, Named{Path: expand(path, from, p.Home), Hooks: true})
		}
		for _, n := range named {
			if filepath.IsAbs(n.Path) {
				if n.Path, err = p.follow(n.Path); err != nil {
					return nil, err
				}
				if !p.writable(n.Path) {
					continue
				}
			}
			if n.Path != "" && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all, nil
}
