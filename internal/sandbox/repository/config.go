package repository

import (
	"path/filepath"
	"slices"
	"strings"
)

// The little of git's configuration that says where more of it lies: which files it
// includes, and where hooks are. Values with escapes are taken as they are.

// entry is one line of a configuration.
type entry struct{ key, value string }

// entries reads a configuration file. What is no configuration has none.
func entries(path string) (all []entry) {
	text, err := read(path)
	if err != nil {
		return nil
	}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line[1:], "]")
			name, _, _ := strings.Cut(head, " ")
			section, line = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(rest)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		if quoted, ok := strings.CutPrefix(value, `"`); ok {
			value, _, _ = strings.Cut(quoted, `"`)
		}
		all = append(all, entry{section + "." + strings.ToLower(strings.TrimSpace(key)), value})
	}
	return all
}

// configured is the last value of a key in one file.
func configured(path, key string) (value string, found bool) {
	for _, e := range entries(path) {
		if e.key == key {
			value, found = e.value, true
		}
	}
	return value, found
}

// included are the files that a configuration includes, under whichever condition, and
// the directories of hooks that it or they name, relative to the work tree.
func included(config, home string, hooks *[]string) (files []string) {
	const most = 32
	for todo := []string{config}; len(todo) > 0 && len(files) < most; todo = todo[1:] {
		for _, e := range entries(todo[0]) {
			switch e.key {
			case "include.path", "includeif.path":
				if path := expand(e.value, filepath.Dir(todo[0]), home); path != "" && !slices.Contains(files, path) {
					files, todo = append(files, path), append(todo, path)
				}
			case "core.hookspath":
				*hooks = append(*hooks, e.value)
			}
		}
	}
	return files
}

// HooksOfUser are the directories of hooks that the user's own configuration names for
// all repositories.
func HooksOfUser(home string) (hooks []string) {
	if home == "" {
		return nil
	}
	for _, path := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config"), "/etc/gitconfig"} {
		included(path, home, &hooks)
	}
	return hooks
}

// expand makes a path of a configuration absolute, "" for one that it cannot.
func expand(path, from, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
		return filepath.Join(home, rest)
	}
	switch {
	case path == "" || path[0] == '~' || path[0] == '%':
		return ""
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(from, path)
}
