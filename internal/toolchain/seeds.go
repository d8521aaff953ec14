package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxFile bounds a file of settings that is read, maxSeeds the links of one tool.
const (
	maxFile  = 256 << 10
	maxSeeds = 512
)

// seed gives installers that write in their own directory one in the agent's home,
// which refers to the user's installations, and returns what of these must be shown.
// What is installed there is the agent's.
func (l *look) seed(dir string) (need []string) {
	switch {
	case there(dir, "rustup"):
		need = l.rustup(dir)
	case there(filepath.Dir(dir), "shims") && there(filepath.Dir(dir), "installs"):
		need = l.mise(filepath.Dir(dir))
	}
	if text, ok := readFile(filepath.Join(l.Home, ".tool-versions")); ok && there(filepath.Dir(dir), "shims") {
		l.plan.Seeds = append(l.plan.Seeds, Seed{Path: ".tool-versions", Text: text})
	}
	return need
}

// rustup finds the toolchains next to the proxies in a directory, or in the user's home.
func (l *look) rustup(bin string) []string {
	for _, home := range []string{l.vars["RUSTUP_HOME"], filepath.Join(filepath.Dir(filepath.Dir(bin)), ".rustup"), filepath.Join(l.Home, ".rustup")} {
		all := filepath.Join(home, "toolchains")
		if home == "" || !there(home, "toolchains") || l.mayShow([]string{all}) != nil {
			continue
		}
		need := append([]string{all}, l.link(all, ".rustup/toolchains")...)
		if text, ok := readFile(filepath.Join(home, "settings.toml")); ok {
			l.plan.Seeds = append(l.plan.Seeds, Seed{Path: ".rustup/settings.toml", Text: text})
		}
		return need
	}
	return nil
}

// mise refers to each version that is installed, and to the user's choice of versions
// without the rest of that file, which may set variables.
func (l *look) mise(root string) (need []string) {
	tools, _ := os.ReadDir(filepath.Join(root, "installs"))
	for _, tool := range tools {
		need = append(need, l.link(filepath.Join(root, "installs", tool.Name()), filepath.Join(".local/share/mise/installs", tool.Name()))...)
	}
	text, _ := readFile(filepath.Join(l.Home, ".config/mise/config.toml"))
	var config struct {
		Tools map[string]any `toml:"tools"`
	}
	if _, err := toml.Decode(text, &config); err != nil || len(config.Tools) == 0 {
		return need
	}
	if text, err := toml.Marshal(config); err == nil {
		l.plan.Seeds = append(l.plan.Seeds, Seed{Path: ".config/mise/config.toml", Text: string(text)})
	}
	return need
}

// link refers to each entry of a directory from another one of the agent's home. A link
// out of it is followed, and what it leads to must be shown too, if that may be.
func (l *look) link(from, to string) (need []string) {
	list, _ := os.ReadDir(from)
	for i, e := range list {
		if i >= maxSeeds {
			break
		}
		at := filepath.Join(from, e.Name())
		if alias, _ := os.Readlink(at); alias != "" && filepath.Base(alias) == strings.TrimPrefix(alias, "./") {
			at = alias // of another entry
		} else if alias != "" {
			real, err := filepath.EvalSymlinks(at)
			if err != nil {
				continue
			}
			if !covered(real, slices.Concat(l.plan.Show, need, []string{from})) {
				if l.mayShow([]string{real}) != nil {
					continue
				}
				need = append(need, real)
			}
			at = real
		}
		l.plan.Seeds = append(l.plan.Seeds, Seed{Path: filepath.Join(to, e.Name()), Link: at})
	}
	return need
}

func readFile(path string) (string, bool) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxFile {
		return "", false
	}
	text, err := os.ReadFile(path)
	return string(text), err == nil
}
