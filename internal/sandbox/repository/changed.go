package repository

import (
	"os"
	"slices"
	"strings"
	"syscall"
)

// A person, or a program such as an editor, writes into the configuration while an agent
// works: git push --set-upstream does, and so does each new branch. The new file is not
// guarded, so the agent is ended either way; but where it differs only by entries by which
// git runs nothing and leads nowhere, the turn can go on, although it is not known who wrote them.

// plain are keys of such entries.
var plain = []string{
	"branch.remote", "branch.merge", "branch.pushremote", "branch.rebase", "branch.description", "branch.vscode-merge-base", "branch.gh-merge-base", "branch.github-pr-owner-number",
	"remote.url", "remote.pushurl", "remote.fetch", "remote.prune", "remote.tagopt", "remote.gh-resolved", "remote.pushdefault", "submodule.url", "submodule.active",
	"user.name", "user.email", "push.default", "push.autosetupremote", "pull.rebase", "pull.ff", "merge.ff", "fetch.prune", "rerere.enabled", "init.defaultbranch",
}

// isPlain reports whether an entry makes git run nothing. An address may name a program.
func (e entry) isPlain() bool {
	key := e.key()
	address := strings.HasSuffix(key, "url")
	return slices.Contains(plain, key) && !(address && (strings.Contains(e.value, "::") || strings.HasPrefix(e.value, "-")))
}

// settings is a configuration as it was when the guards were made.
type settings struct {
	entries []entry
	owner   uint32
}

// settingsOf reads a configuration that is a file itself, with one name, or is not there.
func settingsOf(path string) (s settings, ok bool) {
	fi, err := os.Lstat(path)
	if os.IsNotExist(err) || err == nil && isStay(fi) {
		return s, true
	}
	if err != nil || !fi.Mode().IsRegular() || many(path, fi) {
		return s, false
	}
	s.owner = fi.Sys().(*syscall.Stat_t).Uid
	s.entries, err = entries(path)
	return s, err == nil
}

// Changed returns the names of the entries by which a configuration differs from what it was
// when the guards were made, if all of them are such that git runs nothing because of them.
// Nothing may run in the box any more.
func (g *Guards) Changed(path string) (names []string, ok bool) {
	was, known := g.configs[path]
	now, read := settingsOf(path)
	if !known || !read || now.owner != was.owner && len(was.entries) > 0 && len(now.entries) > 0 {
		return nil, false
	}
	strange := func(all []entry) []entry {
		return slices.DeleteFunc(slices.Clone(all), entry.isPlain)
	}
	if !slices.Equal(strange(was.entries), strange(now.entries)) {
		return nil, false
	}
	for _, side := range [][2][]entry{{now.entries, was.entries}, {was.entries, now.entries}} {
		for _, e := range side[0] {
			if !slices.Contains(side[1], e) && !slices.Contains(names, e.name) {
				names = append(names, e.name)
			}
		}
	}
	return names, true
}
