//go:build unix

package beneath

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// aside is what is appended to the name of something that stood in the way.
const aside = ".moved-aside"

// claims is how often a name is claimed again that a process keeps taking.
const claims = 10

// Claim makes every name of a path a directory that its owner may use. What else
// stands there, a file, a link, a pipe, is moved aside, as it is and without
// being followed. The names that were taken and what they are called now come
// back in pairs. Directories that are missing are made with a mode; with none they
// stay missing, except in the place of what was moved.
func (d *Dir) Claim(path string, perm uint32) (moved [][2]string, err error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	at, err := d.dup()
	if err != nil {
		return nil, err
	}
	prefix := ""
	for name := range strings.SplitSeq(path, "/") {
		next, away, err := at.claim(name, perm)
		at.Close()
		for _, to := range away {
			moved = append(moved, [2]string{prefix + name, prefix + to})
		}
		if err != nil {
			return moved, fmt.Errorf("claim %q: %w", path, err)
		}
		if next == nil {
			return moved, nil
		}
		at, prefix = next, prefix+name+"/"
	}
	return moved, at.Close()
}

func (d *Dir) claim(name string, perm uint32) (sub *Dir, moved []string, err error) {
	for range claims {
		var st Stat
		st, err = d.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && perm == 0 && len(moved) == 0:
			return nil, nil, nil
		case errors.Is(err, fs.ErrNotExist):
			err = d.Mkdir(name, cmp.Or(perm, 0o755))
		case err != nil:
			return nil, moved, err
		case st.Kind != Folder:
			var to string
			if to, err = d.MoveAside(name); err == nil {
				moved = append(moved, to)
				continue
			}
		case st.Mode&0o700 != 0o700:
			err = d.Chmod(name, st.Mode|0o700)
		}
		if err == nil {
			if sub, err = d.Sub(name); err == nil {
				return sub, moved, nil
			}
		}
		if errors.Is(err, fs.ErrPermission) {
			break
		}
	}
	return nil, moved, err
}

// MoveAside gives a thing the first free name next to its own.
func (d *Dir) MoveAside(name string) (string, error) {
	for n := 1; ; n++ {
		to := name + aside
		if n > 1 {
			to = fmt.Sprintf("%s-%d", to, n)
		}
		if _, err := d.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return to, d.Rename(name, to)
		} else if err != nil {
			return "", err
		}
	}
}
