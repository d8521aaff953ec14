package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Layout is how an installer of tools lays them out: programs in Bins of PATH, below a
// root of that Name, need the paths of Show below it.
type Layout struct {
	// Name ends the path of the root. The variable Root names another place.
	Name, Root string
	Bins       []string
	Show       []string
	// Set has Root name the root in the box, whose programs would look in the agent's home.
	Set bool
}

// Layouts are those that programs cannot be seen to need by where they lie. All others
// show the installation that a directory belongs to (see installation), or that
// directory alone.
var Layouts = []Layout{
	// rustup writes in its home: the box has one of its own that refers to the toolchains.
	{Name: ".cargo", Root: "CARGO_HOME", Bins: []string{"bin"}, Show: []string{"bin"}},
	{Name: ".volta", Root: "VOLTA_HOME", Bins: []string{"bin"}, Show: []string{"."}, Set: true},
	{Name: ".pyenv", Root: "PYENV_ROOT", Bins: []string{"shims", "bin", "plugins"}, Show: []string{"."}, Set: true},
	{Name: ".rbenv", Root: "RBENV_ROOT", Bins: []string{"shims", "bin"}, Show: []string{"."}, Set: true},
	{Name: ".nodenv", Root: "NODENV_ROOT", Bins: []string{"shims", "bin"}, Show: []string{"."}, Set: true},
	{Name: ".goenv", Root: "GOENV_ROOT", Bins: []string{"shims", "bin"}, Show: []string{"."}, Set: true},
	{Name: ".jenv", Root: "JENV_ROOT", Bins: []string{"shims", "bin"}, Show: []string{"."}, Set: true},
	{Name: ".asdf", Root: "ASDF_DATA_DIR", Bins: []string{"shims", "bin"}, Show: []string{"."}, Set: true},
	// mise writes in its data directory too, see .cargo.
	{Name: ".local/share/mise", Root: "MISE_DATA_DIR", Bins: []string{"shims"}, Show: []string{"shims", "installs", "plugins"}},
	{Name: ".sdkman", Root: "SDKMAN_DIR", Bins: []string{"bin"}, Show: []string{"bin", "candidates", "src", "var"}, Set: true},
	{Name: ".linuxbrew", Root: "HOMEBREW_PREFIX", Bins: []string{"bin", "sbin"}, Show: []string{"."}, Set: true},
	{Name: ".ghcup", Bins: []string{"bin"}, Show: []string{"."}},
	{Name: ".elan", Root: "ELAN_HOME", Bins: []string{"bin"}, Show: []string{"."}, Set: true},
	{Name: ".juliaup", Bins: []string{"bin"}, Show: []string{"."}},
	{Name: ".dotnet", Root: "DOTNET_ROOT", Bins: []string{".", "tools"}, Show: []string{"."}, Set: true},
}

// needs are the paths that the programs of a directory of PATH need, itself first.
func (l *look) needs(dir string) []string {
	need := l.root(dir)
	if !covered(dir, need) {
		need = append([]string{dir}, need...)
	}
	return need
}

// root is what a directory of programs belongs to, none where only it is known.
func (l *look) root(dir string) []string {
	for _, lay := range Layouts {
		if top, ok := l.top(lay, dir); ok {
			if lay.Set {
				l.plan.Env[lay.Root] = top
			}
			return lay.shown(top)
		}
	}
	if before, _, ok := strings.Cut(dir+"/", "/lib/node_modules/"); ok {
		return []string{before + "/lib/node_modules"}
	}
	if before, after, ok := strings.Cut(dir, "/mise/installs/"); ok {
		if f := strings.SplitN(after, "/", 3); len(f) > 1 {
			return []string{filepath.Join(before, "mise/installs", f[0], f[1])}
		}
	}
	prefix := filepath.Dir(dir)
	if base := filepath.Base(dir); base != "bin" && base != "sbin" || !l.installation(prefix) {
		return nil
	}
	need := []string{prefix}
	if there(prefix, "pyvenv.cfg") { // its interpreter lies elsewhere
		if python, err := filepath.EvalSymlinks(filepath.Join(dir, "python")); err == nil && !l.System(python) && !covered(python, need) {
			need = append(need, l.root(filepath.Dir(python))...)
		}
	}
	return need
}

// top is the root of a layout that a directory of programs is laid out by.
func (l *look) top(lay Layout, dir string) (string, bool) {
	for _, bin := range lay.Bins {
		for at := dir; at != "/"; at = filepath.Dir(at) {
			top, ok := strings.CutSuffix(at, "/"+bin)
			if bin == "." {
				top, ok = at, true
			}
			if ok && (strings.HasSuffix(top, "/"+lay.Name) || lay.Root != "" && top == l.vars[lay.Root]) {
				return top, true
			}
			if bin != "plugins" { // which alone has directories of programs deeper down
				break
			}
		}
	}
	return "", false
}

func (lay Layout) shown(top string) (out []string) {
	for _, name := range lay.Show {
		if p := filepath.Join(top, name); there(p, ".") {
			out = append(out, p)
		}
	}
	return out
}

// installation reports whether a directory is that of one program or toolchain and
// nothing else: it has what such have, and nothing of a home directory.
func (l *look) installation(dir string) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return there(dir, name) })
	}
	if filepath.Base(dir) == ".local" || has(".config", ".profile", ".bashrc", ".zshrc", ".bash_history") || within(l.Home, dir) {
		return false
	}
	if has("pyvenv.cfg", "conda-meta") {
		return true
	}
	if filepath.Dir(dir) == l.Home || filepath.Dir(dir) == "/" { // may be anything
		return has("VERSION", "version", "release")
	}
	return has("lib", "lib64", "libexec", "share", "pkg")
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func there(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
