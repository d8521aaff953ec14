package repository

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tholehq/thole/internal/workspace/beneath"
)

// maxObjects bounds the directories of objects that a repository may refer to.
const maxObjects = 16

// findObjects finds the directories of objects that the repository refers to, and those that
// they refer to. What is not there git does without.
func (p *Place) findObjects(allowed func(string) error) error {
	own := filepath.Join(p.Common, "objects")
	real, err := filepath.EvalSymlinks(own)
	if err != nil {
		return refuse(own, "cannot be looked at: %w", err)
	}
	if real != own {
		if err := p.refer(real, allowed); err != nil {
			return err
		}
	}
	for todo := []string{real}; len(todo) > 0; todo = todo[1:] {
		list := filepath.Join(todo[0], "info", "alternates")
		text, err := beneath.ReadFile(todo[0], "info/alternates", maxLine)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return refuse(list, "cannot be read: %w", err).WithHint("git repack -a -d, and then remove it, makes the repository whole")
		}
		for line := range strings.Lines(string(text)) {
			dir := strings.TrimRight(line, "\r\n")
			if dir == "" || dir[0] == '#' {
				continue
			}
			if dir[0] == '"' {
				if dir, err = strconv.Unquote(dir); err != nil {
					return refuse(list, "names a directory in a way that is not understood").WithHint("write the path without quotes")
				}
			}
			dir, err := filepath.EvalSymlinks(resolve(todo[0], dir))
			if fi, gone := os.Stat(dir); err != nil || gone != nil || !fi.IsDir() || dir == real || slices.Contains(p.Objects, dir) {
				continue
			}
			if err := p.refer(dir, allowed); err != nil {
				return err
			}
			todo = append(todo, dir)
		}
	}
	return nil
}

// refer adds a directory of objects elsewhere.
func (p *Place) refer(dir string, allowed func(string) error) error {
	const whole = "git repack -a -d, and then remove objects/info/alternates, makes it whole"
	if len(p.Objects) == maxObjects {
		return refuse(p.Name(), "shares the objects of more than %d others", maxObjects).WithHint(whole)
	}
	if uid, err := beneath.Owner(dir); os.Geteuid() == 0 && (err != nil || uid != p.UID) {
		return refuse(p.Name(), "shares objects in %s, which belong to another user", dir).WithHint(whole)
	}
	if err := allowed(dir); err != nil {
		return err
	}
	p.Objects = append(p.Objects, dir)
	return nil
}
