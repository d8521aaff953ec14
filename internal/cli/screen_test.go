package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/daemon/threads"
	"github.com/tholehq/thole/protocol/app"
)

// Rows never have more columns than there is room for, and nothing of the line is lost.
func TestRowsFit(t *testing.T) {
	for _, line := range []string{"", "short", strings.Repeat("x", 100), strings.Repeat("界", 50), "a\tb\x1b[2J\rc", "e\u0301\u202e" + strings.Repeat(" ", 70) + "allow?"} {
		rows := breakRows(line, 20)
		for _, r := range rows {
			if n := cellsOf(r); n > 20 {
				t.Errorf("%q has %d columns", r, n)
			}
		}
		whole := strings.Join(rows, "")
		if strings.ContainsAny(whole, "\x1b\r\t\u202e") || strings.Count(whole, "x") != strings.Count(line, "x") || strings.Count(whole, "界") != strings.Count(line, "界") {
			t.Errorf("%q became %q", line, rows)
		}
	}
	if got := clip(strings.Repeat("x", 30), 10); cellsOf(got) > 10 || !strings.HasSuffix(got, "…") {
		t.Errorf("clip: %q", got)
	}
}

// What an ask is about stands in marked lines, whole or with the number of those left out.
func TestShownAsks(t *testing.T) {
	var out bytes.Buffer
	env, flush := newEnv(strings.NewReader(""), &out, &out)
	ask := app.Ask{Kind: "file_change", Decisions: []string{"allow", "deny"}, Changes: []app.FileChange{
		{Path: "/w/a", Kind: app.ChangeKind{Type: "add"}, Diff: strings.Repeat("line\n", 100)},
		{Path: "/w/b\nthole: done", Kind: app.ChangeKind{Type: "update"}, Diff: "@@ -1 +1 @@\n-old\n+new\n"},
	}}
	if !env.showAsk(env.Out, "an agent", ask, false) {
		t.Error("nothing was left out")
	}
	flush()
	said := out.String()
	for _, want := range []string{"? an agent wants to change 2 files\n", "  | add /w/a\n", "  | +line\n", "lines are not shown: v shows all\n", `  | update /w/b\nthole: done` + "\n", "  | +new\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in:\n%s", want, said)
		}
	}
	out.Reset()
	if env.showAsk(env.Out, "an agent", ask, true) || strings.Count(out.String(), "+line") != 100 {
		t.Errorf("all of it: %s", out.String())
	}
}

func TestChosenOptions(t *testing.T) {
	q := app.Question{Options: []app.QuestionOption{{Label: "red"}, {Label: "green"}}}
	for said, want := range map[string][]string{"2": {"green"}, "1, 2": {"red", "green"}, "RED": {"red"}, "3": nil, "0": nil, "blue": nil, "1,blue": nil} {
		if got := chosen(q, said); !slices.Equal(got, want) {
			t.Errorf("%q chooses %q, want %q", said, got, want)
		}
	}
}

// Short ids differ from one another, and begin their ids.
func TestShortIDs(t *testing.T) {
	list := []threads.Thread{{ID: "0199c4aa-0000-7000-8000-000000000001"}, {ID: "0199c4aa-0000-7000-8000-000000000002"}, {ID: "0199c4bb-0000-7000-8000-000000000002"}}
	got := shortIDs(list)
	for i, s := range got {
		for j, other := range list {
			if strings.HasPrefix(string(other.ID), s) != (i == j) {
				t.Errorf("%q is short for %s", s, other.ID)
			}
		}
	}
	if got[2] != "0199c4bb" {
		t.Errorf("%q is longer than needed", got[2])
	}
}
