package commandline

import (
	"slices"
	"strings"
)

// Options of programs that take the next word.
var (
	ofLS      = []string{"-I", "-w", "--block-size", "--format", "--time-style", "--color", "--quoting-style"}
	ofTree    = []string{"-L", "-P", "-I", "--charset", "--filelimit", "--sort"}
	ofDU      = []string{"-d", "--max-depth", "-B", "--block-size", "--exclude", "--time-style"}
	ofRG      = []string{"-g", "--glob", "--iglob", "-t", "--type", "--type-add", "--type-not", "-m", "--max-count", "-A", "-B", "-C", "--context", "--max-depth"}
	ofLsFiles = []string{"--exclude", "--exclude-from", "--pathspec-from-file"}
	ofFD      = []string{"-t", "--type", "-e", "--extension", "-E", "--exclude", "--search-path"}
	ofGrep    = []string{"-m", "--max-count", "-C", "--context", "-A", "--after-context", "-B", "--before-context"}
	ofSed     = []string{"-e", "-f", "--expression", "--file"}
	ofNL      = []string{"-s", "-w", "-v", "-i", "-b"}
	ofAwk     = []string{"-F", "-v", "-f", "--field-separator", "--assign", "--file"}
)

// action is what one simple command does.
func action(words []string) Action {
	name, args := words[0], words[1:]
	a := Action{Kind: Unknown, Command: Join(words...)}
	switch name {
	case "ls", "eza", "exa":
		return a.list(first(operands(args, ofLS)))
	case "tree":
		return a.list(first(operands(args, ofTree)))
	case "du":
		return a.list(first(operands(args, ofDU)))
	case "rg", "rga":
		rest := operands(args, ofRG)
		if slices.Contains(args, "--files") {
			return a.list(first(rest))
		}
		return a.search(rest)
	case "git":
		switch first(args) {
		case "grep":
			return a.grep(args[1:])
		case "ls-files":
			return a.list(first(operands(args[1:], ofLsFiles)))
		}
	case "grep", "egrep", "fgrep":
		return a.grep(args)
	case "fd":
		switch rest := operands(args, ofFD); {
		case len(rest) == 0, len(rest) == 1 && pathish(rest[0]):
			return a.list(first(rest))
		default:
			return a.search(rest)
		}
	case "find":
		return a.find(args)
	case "cat", "more":
		if files := operands(args, nil); len(files) == 1 {
			return a.read(files[0])
		}
	case "head", "tail":
		return a.read(ending(name, args))
	case "nl":
		return a.read(first(operands(args, ofNL)))
	case "sed":
		return a.read(sedFile(args))
	case "awk":
		return a.read(awkFile(args))
	}
	return a
}

func (a Action) read(file string) Action {
	if file != "" {
		a.Kind, a.Path, a.Name = Read, file, short(file)
	}
	return a
}

func (a Action) list(dir string) Action {
	a.Kind, a.Path = List, short(dir)
	return a
}

// search has the pattern and then the place.
func (a Action) search(rest []string) Action {
	a.Kind, a.Query = Search, first(rest)
	if len(rest) > 1 {
		a.Path = short(rest[1])
	}
	return a
}

// grep may name its pattern by an option.
func (a Action) grep(args []string) Action {
	pattern := ""
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if pattern == "" && i+1 < len(args) && slices.Contains([]string{"-e", "--regexp", "-f", "--file"}, arg) {
			pattern = args[i+1]
		}
	}
	rest := operands(args, append([]string{"-e", "--regexp", "-f", "--file"}, ofGrep...))
	if pattern != "" {
		rest = append([]string{pattern}, rest...)
	}
	return a.search(rest)
}

func (a Action) find(args []string) Action {
	dir := ""
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") && arg != "!" && arg != "(" && arg != ")" {
			dir = arg
			break
		}
	}
	if slices.ContainsFunc(args, func(s string) bool { return slices.Contains(findActs, s) }) {
		return a
	}
	for i, arg := range args[:max(len(args)-1, 0)] {
		if slices.Contains([]string{"-name", "-iname", "-path", "-regex"}, arg) {
			a.Query = args[i+1]
			break
		}
	}
	if a.Query == "" {
		return a.list(dir)
	}
	a.Kind, a.Path = Search, short(dir)
	return a
}

// findActs make find do more than look.
var findActs = []string{"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}

// operands are the words that are neither options nor their values.
func operands(args, valued []string) (out []string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			return append(out, args[i+1:]...)
		case slices.Contains(valued, a):
			i++
		case !strings.HasPrefix(a, "-"):
			out = append(out, a)
		}
	}
	return out
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func pathish(s string) bool {
	return s == "." || s == ".." || strings.ContainsAny(s, `/\`)
}

// ending is the file of head or tail.
func ending(name string, args []string) string {
	if len(args) == 1 && !strings.HasPrefix(args[0], "-") {
		return args[0]
	}
	if len(args) == 0 {
		return ""
	}
	count, attached := strings.CutPrefix(args[0], "-n")
	rest := args[1:]
	if !attached {
		return ""
	}
	if count == "" && len(rest) > 0 {
		count, rest = rest[0], rest[1:]
	}
	if name == "tail" {
		count = strings.TrimPrefix(count, "+")
	}
	if !digits(count) {
		return ""
	}
	return first(operands(rest, nil))
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// sedFile is the file of which sed -n prints a range of lines.
func sedFile(args []string) string {
	if !slices.Contains(args, "-n") || inPlace(args) {
		return ""
	}
	ranged := slices.ContainsFunc(args, func(a string) bool {
		from, to, both := strings.Cut(strings.TrimSuffix(a, "p"), ",")
		return strings.HasSuffix(a, "p") && digits(from) && (!both || digits(to))
	})
	rest := operands(args, ofSed)
	switch {
	case !ranged || len(rest) == 0:
		return ""
	case slices.ContainsFunc(args, func(a string) bool { return slices.Contains(ofSed, a) }):
		return rest[0]
	case len(rest) < 2:
		return ""
	}
	return rest[1]
}

// inPlace reports whether sed changes files.
func inPlace(args []string) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return false
		case slices.Contains(ofSed, a):
			i++
		case strings.HasPrefix(a, "--in-place"):
			return true
		case strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.ContainsRune(a, 'i'):
			return true
		}
	}
	return false
}

// awkFile is what awk reads apart from its program.
func awkFile(args []string) string {
	rest := operands(args, ofAwk)
	if !slices.Contains(args, "-f") && !slices.Contains(args, "--file") && len(rest) > 0 {
		rest = rest[1:]
	}
	return first(rest)
}

// formats reports whether a command only changes how another's output looks.
func formats(words []string) bool {
	name, args := words[0], words[1:]
	switch name {
	case "wc", "tr", "cut", "sort", "uniq", "column", "printf":
		return true
	case "head", "tail":
		if len(args) == 2 && (args[0] == "-n" || args[0] == "-c") && digits(strings.TrimPrefix(args[1], "+")) {
			return true
		}
		return len(args) == 0 || len(args) == 1 && strings.HasPrefix(args[0], "-")
	case "awk":
		return awkFile(args) == ""
	case "sed":
		return !inPlace(args) && sedFile(args) == ""
	}
	return false
}
