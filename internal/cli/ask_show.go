package cli

import (
	"cmp"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/protocol/app"
)

// What an ask is about was written by an agent that wants a yes. It is shown whole, every row
// with a mark that none of our own lines begins with.
const (
	askMark = "  | " // begins a line of theirs
	askMore = "  : " // goes on with it, where it is wider than the terminal
)

// At most these many rows are shown before a person asks for all of them.
const (
	askHead = 40
	askTail = 12
)

// askText is what an ask is about: a sentence, and what they wrote.
func askText(a app.Ask) (what string, lines []string) {
	split := func(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }
	switch {
	case a.Command != "":
		what, lines = "run a command", split(a.Command)
		lines[0] = "$ " + lines[0]
	case len(a.Changes) > 0:
		what = "change " + count(len(a.Changes), "file")
		for _, c := range a.Changes {
			lines = append(lines, changeLines(c)...)
		}
	case a.Kind == string(event.AskPlan):
		what, lines = "carry out this plan", split(a.Title)
	case a.Call != "":
		what, lines = "use a tool", split(a.Call)
	case a.Kind == string(event.AskInput), a.Kind == string(event.AskElicitation):
		what = "know something from you"
		if a.Title != "" {
			lines = split(a.Title)
		}
	default:
		what = "have your leave (" + a.Kind + ")"
		if a.Title != "" {
			lines = split(a.Title)
		}
	}
	return what, lines
}

// howToAnswer returns the flags that answer an ask in a script. What stands in them is to be
// typed by a person, so names of others are in them only where no shell reads anything else there.
func howToAnswer(a app.Ask) string {
	if len(a.Questions) > 0 {
		return "--answer " + a.Questions[0].ID + "=…"
	}
	how := "--decision allow"
	if a.Kind != string(event.AskElicitation) {
		return how
	}
	members, required := formOf(a.Schema)
	var wanted []string
	for _, m := range members {
		if slices.Contains(required, m.name) && memberName.MatchString(m.name) {
			wanted = append(wanted, `"`+m.name+`": …`)
		}
	}
	if len(members) == 0 {
		return how
	}
	return how + " --result '{" + cmp.Or(strings.Join(wanted, ", "), "…") + "}'"
}

var memberName = regexp.MustCompile(`^[\w.-]{1,40}$`)

// changeLines is the diff of one file, with marks.
func changeLines(c app.FileChange) []string {
	head := c.Kind.Type + " " + c.Path
	if c.Kind.Move != nil {
		head += " → " + *c.Kind.Move
	}
	out := []string{head}
	mark := map[string]string{"add": "+", "delete": "-"}[c.Kind.Type]
	if c.Diff == "" {
		return out
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(c.Diff, "\n"), "\n") {
		out = append(out, mark+line)
	}
	return out
}

// showAsk prints an ask for someone who answers it there. It reports whether rows were left out.
func (e *Env) showAsk(w io.Writer, who string, a app.Ask, all bool) (cut bool) {
	what, lines := askText(a)
	e.paint(w, bold+";"+yellow, func(w io.Writer) { putf(w, "? %s wants to %s", who, what) })
	putln(w)
	if a.Cwd != "" && a.Command != "" {
		e.showTheirs(w, []string{"in " + a.Cwd}, true)
	}
	cut = e.showTheirs(w, lines, all)
	if a.Reason != "" {
		putln(w, "  because:")
		cut = e.showTheirs(w, strings.Split(a.Reason, "\n"), all) || cut
	}
	return cut
}

// showTheirs prints lines that others wrote, broken to the width of the terminal.
func (e *Env) showTheirs(w io.Writer, lines []string, all bool) (cut bool) {
	room := e.width(w) - len(askMark)
	if room < 0 {
		room = 1 << 20
	}
	type row struct{ mark, text, colour string }
	var rows []row
	for _, line := range lines {
		colour := ""
		switch {
		case strings.HasPrefix(line, "+"):
			colour = green
		case strings.HasPrefix(line, "-"):
			colour = red
		}
		for i, part := range breakRows(strings.TrimSuffix(line, "\r"), room) {
			mark := askMark
			if i > 0 {
				mark = askMore
			}
			rows = append(rows, row{mark, part, colour})
		}
	}
	for i, r := range rows {
		if !all && len(rows) > askHead+askTail && i >= askHead && i < len(rows)-askTail {
			if i == askHead {
				e.paint(w, bold, func(w io.Writer) { putf(w, "  … %d lines are not shown: v shows all\n", len(rows)-askHead-askTail) })
			}
			cut = true
			continue
		}
		put(w, r.mark)
		if r.colour == "" {
			put(w, r.text)
		} else {
			e.paint(w, r.colour, func(w io.Writer) { put(w, r.text) })
		}
		putln(w)
	}
	return cut
}
