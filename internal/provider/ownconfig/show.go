package ownconfig

import (
	"maps"
	"path"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/table"
)

// Laid is a file of a session as people may see it.
type Laid struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
	// Text is what settings hold, without secrets; of other files there is none.
	Text string `json:"text,omitempty"`
}

// Show lists the files of a session.
func (c Config) Show() []Laid {
	out := []Laid{}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		l := Laid{Path: name, Bytes: len(c.Files[name])}
		if slices.Contains([]string{".json", ".toml"}, path.Ext(name)) {
			l.Text = c.masked(string(c.Files[name]))
		}
		out = append(out, l)
	}
	return out
}

func (c Config) masked(text string) string {
	for _, secret := range c.Secret {
		text = strings.ReplaceAll(text, secret, "(secret)")
	}
	return text
}

// Markdown is the table of a CLI for the documentation.
func Markdown(cli string) string {
	t, _ := Of(cli)
	var b strings.Builder
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row("yours", "becomes")
	row("---", "---")
	seen := map[string]bool{}
	var keyed []File
	for _, f := range t.Files {
		name := "`" + places[f.Root](cli) + f.From
		if f.Dir {
			name += "/"
		}
		name += "`"
		what := "passed"
		switch {
		case f.Fate == Refused:
			what = "refused: " + f.Why
		case f.Consent:
			what = whyConsent
		case len(f.Keys) > 0:
			what = "its keys, below"
			if !slices.ContainsFunc(keyed, func(o File) bool { return o.To == f.To }) {
				keyed = append(keyed, f)
			}
		case f.Why != "":
			what += ", " + f.Why
		}
		if !seen[name] {
			row(name, what)
			seen[name] = true
		}
	}
	for _, f := range keyed {
		b.WriteString("\nKeys of `" + path.Base(f.From) + "`")
		if f.Dir {
			b.WriteString(" (each file)")
		}
		b.WriteString(":\n\n")
		row("keys", "")
		row("---", "---")
		for _, k := range f.Keys {
			what := string(k.Fate)
			switch k.Fate {
			case Mapped:
				what = hows[k.How].says
			case Refused:
				what += ": " + k.Why
			}
			row("`"+strings.Join(strings.Fields(k.Names), "` `")+"`", what)
		}
		row("any other", "refused: "+whyUnknown)
	}
	return b.String()
}

// places are where the files of a table begin, as people write it.
var places = map[Root]func(cli string) string{
	Dir:       func(cli string) string { return "~/" + table.Of(cli).Login.Dir + "/" },
	Home:      func(string) string { return "~/" },
	HomeOrDir: func(string) string { return "~/" },
	XDG:       func(cli string) string { return "~/.config/" + cli + "/" },
}

// Fill puts the tables into a document, each between two comments with its CLI's name.
func Fill(doc []byte) ([]byte, error) {
	text := string(doc)
	for _, t := range tables {
		begin, end := "<!-- "+t.CLI+" begin: go generate ./internal/provider/ownconfig -->\n", "<!-- "+t.CLI+" end -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return nil, thole.Errorf(thole.CodeInvalid, "the document has no place for the table of %s", t.CLI)
		}
		text = before + begin + "\n" + Markdown(t.CLI) + "\n" + end + after
	}
	return []byte(text), nil
}
