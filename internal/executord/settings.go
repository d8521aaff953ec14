package executord

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// settings are those of all CLIs, as the server decides them. They lie where no box
// shows them, and each is bound read-only over its name when a box is made. So a box
// that lives sees what is laid for its next session, and nothing of what agents
// left at those names counts.
type settings struct {
	dir  string // executord's alone
	dirs Dirs
	all  []setting
}

type setting struct {
	provider.Setting
	provider string
	from     string // where it is laid
	top, at  string // what agents write in, and the name below it
}

func newSettings(dirs Dirs, providers []provider.Provider) *settings {
	s := &settings{dir: filepath.Join(dirs.State, "settings"), dirs: dirs}
	for _, p := range providers {
		c, ok := p.(provider.Configured)
		if !ok {
			continue
		}
		for _, one := range c.Settings() {
			name := setting{Setting: one, provider: p.Name(), from: filepath.Join(s.dir, p.Name(), strings.ReplaceAll(one.Path, "/", "%"))}
			if rest, home := strings.CutPrefix(one.Path, "~/"); home {
				name.top, name.at = dirs.Home, rest
			} else {
				name.top, name.at = dirs.Data, path.Join(p.Name(), one.Path)
			}
			s.all = append(s.all, name)
		}
	}
	return s
}

// lay makes the settings of one CLI what the server decides for the next session.
// Files keep their place, to which they are bound.
func (s *settings) lay(providerName string, config map[string][]byte, project projectTexts) error {
	used := 0
	for _, one := range s.all {
		if one.provider != providerName {
			continue
		}
		var err error
		if one.Dir {
			var n int
			n, err = one.layDir(config, project.skills(one.Skills))
			used += n
		} else {
			body, given := config[one.Path]
			if given {
				used++
			} else {
				body = []byte(one.Content)
			}
			err = layFile(one.from, append(slices.Clip(body), project.after(one.Setting)...))
		}
		if err != nil {
			return thole.Errorf(thole.CodeUnavailable, "lay the settings of %s: %w", providerName, err)
		}
	}
	if used != len(config) {
		return thole.Errorf(thole.CodeInvalid, "lay the settings of %s: some are at names that agents could write", providerName)
	}
	return nil
}

func layFile(at string, body []byte) error {
	if was, err := os.ReadFile(at); err == nil && bytes.Equal(was, body) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return os.WriteFile(at, body, 0o600)
}

// layDir fills a directory, and returns how much of the config is below it.
func (one setting) layDir(config, more map[string][]byte) (n int, err error) {
	at := one.from
	if err := os.MkdirAll(at, 0o700); err != nil {
		return 0, err
	}
	old, err := os.ReadDir(at)
	for _, e := range old {
		err = errors.Join(err, os.RemoveAll(filepath.Join(at, e.Name())))
	}
	if err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	files := map[string][]byte{}
	maps.Copy(files, more)
	for name, text := range one.Files {
		files[name] = []byte(text)
	}
	for name, body := range config {
		if rest, ours := strings.CutPrefix(name, one.Path+"/"); ours {
			files[rest] = body
			n++
		}
	}
	for name, body := range files {
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return n, err
		}
		if err := root.WriteFile(name, body, modeOf(body)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// modeOf lets scripts run.
func modeOf(body []byte) os.FileMode {
	if bytes.HasPrefix(body, []byte("#!")) {
		return 0o700
	}
	return 0o600
}

// binds are bubblewrap's arguments for the settings of all CLIs, over a home and
// conversations that are bound. A directory above a setting is bound to itself: what is mounted
// cannot be moved away. The places are made here, and only while no box lives: in one
// that does, they are mounts that no agent can exchange.
func (s *settings) binds(alone bool) (args []string, err error) {
	var above, over []string
	for _, one := range s.all {
		if err := s.laid(one); err != nil {
			return nil, err
		}
		if alone {
			if err := place(one); err != nil {
				return nil, err
			}
		}
		for dir := path.Dir(one.at); dir != "."; dir = path.Dir(dir) {
			above = append(above, filepath.Join(one.top, filepath.FromSlash(dir)))
		}
		over = append(over, "--ro-bind", one.from, filepath.Join(one.top, filepath.FromSlash(one.at)))
	}
	slices.Sort(above) // a directory before what is in it
	for _, dir := range slices.Compact(above) {
		args = append(args, "--bind", dir, dir)
	}
	return append(args, over...), nil
}

// hold reports whether a box still shows the settings of a CLI: a restore, which
// exchanges files from outside, takes away what was bound over them.
func (s *settings) hold(in *box.Box, providerName string) bool {
	for _, one := range s.all {
		if one.provider != providerName {
			continue
		}
		want, err := os.Lstat(one.from)
		if err != nil {
			return false
		}
		if seen, err := in.Stat(filepath.Join(one.top, filepath.FromSlash(one.at))); err != nil || !os.SameFile(want, seen) {
			return false
		}
	}
	return true
}

// laid makes sure that there is something to bind, for CLIs of which no session began.
func (s *settings) laid(one setting) error {
	_, err := os.Lstat(one.from)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case one.Dir:
		_, err = one.layDir(nil, nil)
		return err
	}
	return layFile(one.from, []byte(one.Content))
}

// place makes what a setting is bound over. What stands in its way is moved aside.
func place(one setting) error {
	root, err := beneath.Trusted(one.top)
	if err != nil {
		return err
	}
	defer root.Close()
	dir := one.at
	if !one.Dir {
		dir = path.Dir(one.at)
	}
	if dir != "." {
		if _, err := root.Claim(dir, 0o700); err != nil {
			return err
		}
	}
	if one.Dir {
		return nil
	}
	parent, name, err := root.Parent(one.at, false)
	if err != nil {
		return err
	}
	defer parent.Close()
	st, err := parent.Lstat(name)
	if err == nil && st.Kind == beneath.File {
		return nil
	}
	if err == nil {
		_, err = parent.MoveAside(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := parent.Create(name, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
