package commandline

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Kind is what a command does with files.
type Kind string

// The kinds that clients show in a short form, and the rest.
const (
	Read    Kind = "read"
	List    Kind = "listFiles"
	Search  Kind = "search"
	Unknown Kind = "unknown"
)

// Action is what one command of a line does. Name and Path are of a file that is read;
// Path of a listing or search is its last meaningful part, as people name directories.
type Action struct {
	Kind    Kind
	Command string
	Name    string
	Path    string
	Query   string
}

// maxScript bounds what is read; longer scripts are programs.
const maxScript = 8 << 10

// Actions returns what a shell script does: reads, listings and searches when it does
// nothing else, otherwise the script as one unknown action. Paths of reads are
// absolute, from dir.
func Actions(script, dir string) []Action {
	unknown := []Action{{Kind: Unknown, Command: script}}
	if len(script) > maxScript {
		return unknown
	}
	list, piped, ok := commands(script)
	if !ok {
		return unknown
	}
	several := len(list) > 1
	list = slices.DeleteFunc(list, formats)
	var out []Action
	at := dir
	for _, words := range list {
		if words[0] == "cd" {
			at = resolve(at, directory(words[1:]))
			continue
		}
		a := action(words)
		if a.Kind == Read {
			a.Path = resolve(at, a.Path)
		}
		out = append(out, a)
	}
	out = slices.Compact(worth(out))
	if len(out) == 0 || slices.ContainsFunc(out, func(a Action) bool { return a.Kind == Unknown }) {
		return unknown
	}
	// A file that goes through sed -n is read by the whole line.
	if a := &out[0]; len(out) == 1 && a.Kind == Read && several && piped && strings.Contains(script, "sed -n") {
		a.Command = script
	}
	return out
}

// worth leaves out what says nothing about the rest: an echo before it, true, nl.
func worth(list []Action) []Action {
	for len(list) > 1 && list[0].Kind == Unknown && (list[0].Command == "echo" || strings.HasPrefix(list[0].Command, "echo ")) {
		list = list[1:]
	}
	for len(list) > 1 {
		i := slices.IndexFunc(list, func(a Action) bool { return a.Kind == Unknown && (a.Command == "true" || plainNumbering(a.Command)) })
		if i < 0 {
			break
		}
		list = slices.Delete(list, i, i+1)
	}
	return list
}

func plainNumbering(command string) bool {
	words, ok := Split(command)
	return ok && words[0] == "nl" && !slices.ContainsFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
}

func resolve(dir, name string) string {
	if name == "" || path.IsAbs(name) {
		return path.Join("/", cmp.Or(name, dir))
	}
	return path.Join("/", dir, name)
}

// directory is where cd goes, "" for home.
func directory(args []string) (dir string) {
	for i, a := range args {
		if a == "--" {
			return strings.Join(args[min(i+1, len(args)):min(i+2, len(args))], "")
		}
		if !strings.HasPrefix(a, "-") {
			dir = a
		}
	}
	return dir
}

// short is the part of a path that people name it by.
func short(name string) string {
	trimmed := strings.TrimRight(strings.ReplaceAll(name, `\`, "/"), "/")
	parts := strings.Split(trimmed, "/")
	for _, p := range slices.Backward(parts) {
		switch p {
		case "", "build", "dist", "node_modules", "src":
		default:
			return p
		}
	}
	return cmp.Or(trimmed, name)
}
