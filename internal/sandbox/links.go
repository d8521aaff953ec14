package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks is how many links a path may lead through.
const maxLinks = 40

// Follow is where a path leads, whether or not there is anything, and the links on its way,
// each by its real directory and its name. It ends at the link that is one too many.
func Follow(path string) (at string, links []string) {
	at = "/"
	for todo := strings.Split(path, "/"); len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		target, err := os.Readlink(next)
		if err != nil { // no link, or nothing: what follows is as it is written
			at = next
			continue
		}
		if links = append(links, next); len(links) > maxLinks {
			return next, links
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return at, links
}

// planted refuses entries that give more than the others do through a link in a writable
// directory: a program may have laid it there, in the place of what was meant. What the
// profile does not ask for itself is left out instead. Rules are sorted.
func (p *Policy) planted() error {
	suspect := func(r rule) bool {
		return slices.ContainsFunc(r.via, func(link string) bool { return decide(p.rules, filepath.Dir(link)) == Write })
	}
	sure := slices.DeleteFunc(slices.Clone(p.rules), suspect)
	if len(sure) == len(p.rules) {
		return nil
	}
	for _, r := range p.rules {
		if !r.implied && suspect(r) && r.access > decide(sure, r.path) {
			return refuse("%s is reached through %s, a link in a writable directory", r.path, r.via[len(r.via)-1])
		}
	}
	p.rules = slices.DeleteFunc(p.rules, func(r rule) bool { return r.implied && suspect(r) && r.access > decide(sure, r.path) })
	return nil
}

// pin adds the directories that lie between a writable one and what has a rule of its own
// below it. Each is mounted on itself: what is mounted on is neither renamed nor removed,
// and what is below it keeps its path. Rules are sorted.
func (p *Policy) pin() {
	named := map[string]bool{}
	below := []string{}
	for _, r := range p.rules {
		named[r.path] = true
		below = append(below, r.path)
	}
	for _, g := range p.globs {
		below = append(below, filepath.Join(g.base(), "*"))
	}
	var pins []rule
	for _, path := range below {
		for dir := filepath.Dir(path); dir != "/" && !named[dir]; dir = filepath.Dir(dir) {
			if decide(p.rules, dir) != Write {
				continue
			}
			named[dir] = true
			if fi, err := os.Lstat(dir); err == nil && fi.IsDir() {
				pins = append(pins, rule{path: dir, access: Write, exists: true})
			}
		}
	}
	p.rules = append(p.rules, pins...)
	p.sort()
}
