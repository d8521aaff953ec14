package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// words splits a line as a shell does, up to a redirection, a pipe or a comment.
func words(t *testing.T, line string) (out []string) {
	var word strings.Builder
	var quoted rune
	started := false
	for _, r := range line + " " {
		switch {
		case quoted != 0 && r == quoted:
			quoted = 0
		case quoted != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quoted, started = r, true
		case r == ' ':
			if started || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteRune(r)
		}
	}
	if quoted != 0 {
		t.Errorf("%s: a quote is open", line)
	}
	if i := slices.IndexFunc(out, func(w string) bool { return w == ">" || w == "|" || w == "#" }); i >= 0 {
		out = out[:i]
	}
	return out
}

// visible visits every command that the help shows.
func visible(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	visit(cmd)
	for _, sub := range cmd.Commands() {
		visible(sub, visit)
	}
}

// Every command has an example, and each is one that the command takes.
func TestExamples(t *testing.T) {
	var all []string
	visible(Tree(), func(cmd *cobra.Command) {
		if cmd.Example == "" {
			t.Errorf("%s has no example (examples.go)", cmd.CommandPath())
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			if !strings.HasPrefix(strings.TrimSpace(line)+" ", cmd.CommandPath()+" ") && !(cmd.HasSubCommands() && strings.HasPrefix(line, "  thole ")) {
				t.Errorf("%s: example %q is not of the command", cmd.CommandPath(), line)
			}
			all = append(all, line)
		}
	})
	for _, line := range all {
		root := Tree() // parsing leaves values
		args := words(t, strings.TrimSpace(line))
		if len(args) == 0 || args[0] != "thole" {
			t.Errorf("%q does not begin with thole", line)
			continue
		}
		cmd, rest, err := root.Find(args[1:])
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil && cmd.Args != nil && cmd.RunE != nil {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		if err == nil && cmd.HasSubCommands() && len(cmd.Flags().Args()) > 0 && cmd.Name() != "exec" && cmd.Name() != "share" && cmd.Name() != "queue" {
			t.Errorf("%q: no such command", line)
		}
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// The help lists commands in groups, the daily ones first, and none outside of them.
func TestHelpInGroups(t *testing.T) {
	out, _, _ := run("--help")
	last := -1
	for _, g := range groups {
		at := strings.Index(out, "\n"+g.title+"\n")
		if at <= last {
			t.Errorf("%q is not in its place:\n%s", g.title, out)
		}
		last = at
	}
	if strings.Contains(out, "Additional Commands") || !strings.Contains(out, "\nExamples:\n") {
		t.Errorf("help:\n%s", out)
	}
	if day := out[strings.Index(out, groups[0].title):strings.Index(out, groups[1].title)]; !strings.Contains(day, "\n  run ") || strings.Contains(day, "\n  db ") {
		t.Errorf("the daily commands are:\n%s", day)
	}
}

// A misspelt command or flag is refused with the one that was meant.
func TestSuggestions(t *testing.T) {
	t.Setenv("THOLE_HOME", t.TempDir()+"/home")
	for args, want := range map[string]string{
		"thraed list": "try: thole thread\n", "thread lsit": "try: thole thread list\n", "rnu x": "try: thole run\n", "thread list --jsno": "try: --json;",
		"--jsno thread list": "try: --json;", "job list --staus x": "try: --status;", "xyzzy": "thole --help lists", "thread list --xyzzy": "thole thread list --help lists",
	} {
		if _, errs, code := run(strings.Fields(args)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("thole %s: exit %d: %s", args, code, errs)
		}
	}
}
