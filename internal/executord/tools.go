package executord

import (
	"errors"
	"io/fs"
	"maps"

	"github.com/tholehq/thole/internal/toolchain"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// with adds variables of the user's shell to an environment. What executord sets itself
// stays, but for the language.
func (d Dirs) with(tools map[string]string) map[string]string {
	env := maps.Clone(tools)
	if env == nil {
		env = map[string]string{}
	}
	own := d.environ()
	if env["LANG"] != "" {
		delete(own, "LANG")
	}
	maps.Copy(env, own)
	return env
}

// plant lays seeds in the agent's home where nothing is yet, before there is a box. What
// an agent left on the way, links above all, is neither followed nor changed: then that
// seed is left out.
func plant(home string, seeds []toolchain.Seed) (err error) {
	if len(seeds) == 0 {
		return nil
	}
	root, err := beneath.Trusted(home)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, s := range seeds {
		err = errors.Join(err, plantOne(root, s))
	}
	return err
}

func plantOne(root *beneath.Dir, s toolchain.Seed) error {
	parent, name, err := root.Parent(s.Path, true)
	if err != nil {
		return err
	}
	defer parent.Close()
	if _, err := parent.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.Link != "" {
		return parent.Symlink(s.Link, name)
	}
	f, err := parent.Create(name, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(s.Text)
	return errors.Join(err, f.Close())
}
