// Package ownconfig makes of the configuration that the user of this machine has written
// for an agent CLI what a session of that CLI gets. One table for each CLI says of every
// file and every key whether it passes, becomes something else, or is refused and why; what
// a table does not know is refused.
//
// Entry points: Read for a session, Table and Markdown for people. It reads files of the
// user and nothing that an agent wrote, runs no program that they name, and reports no
// value that looks like a secret.
package ownconfig

//go:generate go run github.com/tholehq/thole/scripts/gen/agents

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/provider/table"
)

// Fate is what becomes of a file or a key.
type Fate string

const (
	Passed  Fate = "passed"
	Mapped  Fate = "mapped" // a session gets something else for it
	Refused Fate = "refused"
)

// User is the user of this machine and what they consent to.
type User struct {
	Home   string
	Getenv func(string) string
	// Hooks are the CLIs whose hooks, plugins and tools of the user run in sessions.
	Hooks []string
	// Secrets are the MCP servers that get the secrets which the configuration has for them.
	Secrets []string
	// Written is a directory that the session's agent writes in place: what lies there is
	// the agent's word and not the user's. It may be "".
	Written string
	// Shown reports whether a session sees a program, by its path; nil: it sees all.
	Shown func(path string) bool
}

// Line says what became of one file or one key of one.
type Line struct {
	From string `json:"from"`          // the user's file
	Key  string `json:"key,omitempty"` // dotted, "" for all of the file
	Fate Fate   `json:"fate"`
	Why  string `json:"why,omitempty"`
	To   string `json:"to,omitempty"` // the session's file
}

// Config is what a session gets.
type Config struct {
	// Files are those of provider.Grant.Config.
	Files map[string][]byte
	// Env are variables that a driver of thole reads.
	Env   map[string]string
	Lines []Line
	// Secret are values in Files that nobody must be shown.
	Secret []string
	// from are the user's files of settings, by those of the session; home is the user's.
	from map[string]string
	home string
}

// Bounds of what is laid for a session.
const (
	maxFile  = 1 << 20
	maxAll   = 8 << 20
	maxFiles = 2000
)

// Read reads the user's configuration of a CLI. A file that cannot be read is a line that
// says so: a session without it is better than none.
func Read(u User, cli string) Config {
	t, ok := Of(cli)
	if !ok {
		return Config{Files: map[string][]byte{}, Env: map[string]string{}}
	}
	if to, err := filepath.EvalSymlinks(u.Written); u.Written != "" && err == nil {
		u.Written = to
	}
	r := &reader{User: u, cli: cli, merged: map[string]*object{}, secret: map[string]bool{}}
	r.Files, r.Env, r.from, r.home = map[string][]byte{}, map[string]string{}, map[string]string{}, u.Home
	for _, f := range t.Files {
		r.from[f.To] = filepath.Join(r.root(f.Root), filepath.FromSlash(f.From))
		r.file(f)
	}
	r.finish(t)
	for value := range r.secret {
		r.Secret = append(r.Secret, value)
	}
	slices.Sort(r.Secret)
	return r.Config
}

// reader reads the files of one table.
type reader struct {
	User
	Config
	cli    string
	merged map[string]*object // settings, by the file they go to
	secret map[string]bool
	bytes  int
	// imported counts files that others import.
	imported int
}

func (r *reader) note(l Line) { r.Lines = append(r.Lines, l) }

// root is the directory below which a file of the table is.
func (r *reader) root(at Root) string {
	row := table.Of(r.cli).Login
	moved := r.getenv(row.Variable)
	switch at {
	case Home:
		return r.Home
	case HomeOrDir:
		return cmp.Or(moved, r.Home)
	case XDG:
		return filepath.Join(cmp.Or(r.getenv("XDG_CONFIG_HOME"), filepath.Join(r.Home, ".config")), r.cli)
	}
	return cmp.Or(moved, filepath.Join(r.Home, filepath.FromSlash(row.Dir)))
}

func (r *reader) getenv(name string) string {
	if r.Getenv == nil || name == "" {
		return ""
	}
	return r.Getenv(name)
}

// shown is a path as people write it.
func (r *reader) shown(path string) string {
	if rest, ok := strings.CutPrefix(path, r.Home+"/"); ok {
		return "~/" + rest
	}
	return path
}

func (r *reader) file(f File) {
	path := filepath.Join(r.root(f.Root), filepath.FromSlash(f.From))
	from := r.shown(path)
	fail := func(err error) {
		if !errors.Is(err, fs.ErrNotExist) {
			r.note(Line{From: from, Fate: Refused, Why: "cannot be read: " + reason(err)})
		}
	}
	if f.Fate == Refused || f.Consent && !slices.Contains(r.Hooks, r.cli) {
		if there(path) {
			r.note(Line{From: from, Fate: Refused, Why: f.why()})
		}
		return
	}
	if f.Dir {
		if err := r.tree(f, path); err != nil {
			fail(err)
		}
		return
	}
	body, err := r.read(path)
	if err != nil {
		fail(err)
		return
	}
	if len(f.Keys) > 0 {
		err = r.settings(f, path, body)
	} else {
		if f.Imports {
			body = r.imports(filepath.Dir(path), filepath.ToSlash(filepath.Dir(f.To)), body, 0)
		}
		r.text(f, from, body)
	}
	if err != nil {
		fail(err)
	}
}

// text lays a file as it is. The first of several for the same place counts.
func (r *reader) text(f File, from string, body []byte) {
	if _, taken := r.Files[f.To]; taken {
		r.note(Line{From: from, Fate: Refused, Why: "the session has another file in its place"})
		return
	}
	r.lay(Line{From: from, Fate: Passed, Why: f.Why}, f.To, body)
}

// lay puts a file into the session, if there is room.
func (r *reader) lay(l Line, to string, body []byte) bool {
	if r.bytes+len(body) > maxAll || len(r.Files) >= maxFiles {
		l.Fate, l.Why = Refused, "more than 8 MiB or 2000 files"
		r.note(l)
		return false
	}
	r.bytes += len(body)
	r.Files[to], l.To = body, to
	r.note(l)
	return true
}
