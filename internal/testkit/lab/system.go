package lab

import (
	"sync"
	"testing"
)

// program is a command of the system that tests run as it is.
type program struct {
	name, pkg string
	version   []string

	once       sync.Once
	path, told string
	err        error
}

var (
	chromium = program{name: "chromium", pkg: "chromium", version: []string{"--version", "--no-sandbox"}}
	tmux     = program{name: "tmux", pkg: "tmux", version: []string{"-V"}}
	shells   = map[string]*program{
		"bash": {name: "bash", pkg: "bash", version: []string{"--version"}}, "zsh": {name: "zsh", pkg: "zsh", version: []string{"--version"}}, "fish": {name: "fish", pkg: "fish", version: []string{"--version"}},
	}
	git   = program{name: "git", pkg: "git", version: []string{"--version"}}
	sshd  = program{name: "sshd", pkg: "openssh-server", version: []string{"-V"}}
	jq    = program{name: "jq", pkg: "jq", version: []string{"--version"}}
	bwrap = program{name: "bwrap", pkg: "bubblewrap", version: []string{"--version"}}
)

// Chromium returns the path of the browser. Run it with --headless, --no-sandbox
// when root, and a --user-data-dir of the test's own.
func Chromium(t testing.TB) string { t.Helper(); return chromium.use(t) }

// Tmux returns the path of tmux. Give it a socket of the test's own with -S.
func Tmux(t testing.TB) string { t.Helper(); return tmux.use(t) }

// Shell returns the path of bash, zsh or fish.
func Shell(t testing.TB, name string) string {
	t.Helper()
	p, ok := shells[name]
	if !ok {
		t.Fatalf("no shell %q", name)
	}
	return p.use(t)
}

// Git returns the path of git.
func Git(t testing.TB) string { t.Helper(); return git.use(t) }

// SSHD returns the path of OpenSSH's server.
func SSHD(t testing.TB) string { t.Helper(); return sshd.use(t) }

// JQ returns the path of jq, which documented scripts use.
func JQ(t testing.TB) string { t.Helper(); return jq.use(t) }

// Bwrap returns the path of bubblewrap, which is known to make a sandbox here.
func Bwrap(t testing.TB) string { t.Helper(); return bwrap.use(t) }

func (p *program) use(t testing.TB) string {
	t.Helper()
	p.once.Do(func() {
		if p.path, p.err = command(p.name, p.pkg); p.err == nil {
			p.told, p.err = versionOf(p.path, p.version...)
		}
	})
	Need(t, p.name, p.err)
	use(t, p.name, p.told)
	return p.path
}
