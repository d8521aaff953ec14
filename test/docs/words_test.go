package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/cli"
)

// proven is a row of the table of docs/delivery.md: a word of the stable surface and the
// test that uses it.
var proven = regexp.MustCompile("(?m)^\\| (command|job|batch|attempt|close reason|held for|binding|capability|transport|outcome) \\| `([^`]+)` \\| `(Test[A-Za-z0-9_]+)` \\|$")

// Every command, state, reason and outcome of deliveries is in the table, and the package
// with its test speaks of it.
func TestDeliveryWordsAreProven(t *testing.T) {
	doc, err := os.ReadFile("../../docs/delivery.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, text := map[string][]string{}, map[string]string{} // test → packages, package → its tests
	err = filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && (e.Name() == "node_modules" || e.Name() == ".git") {
			return skip(err, e)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		body, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(string(body), -1) {
			tests[m[1]] = append(tests[m[1]], filepath.Dir(path))
		}
		text[filepath.Dir(path)] += string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := constants(t)
	have := map[string]bool{}
	for _, m := range proven.FindAllStringSubmatch(string(doc), -1) {
		kind, word, test := m[1], m[2], m[3]
		have[kind+" "+word] = true
		parts, said := strings.Fields(word), false
		for _, dir := range tests[test] {
			said = said || strings.Contains(text[dir], `"`+parts[len(parts)-1]+`"`)
			for _, name := range names[word] {
				said = said || strings.Contains(text[dir], "thole."+name)
			}
		}
		if !said {
			t.Errorf("docs/delivery.md: %s is not there, or its package does not speak of %s %s", test, kind, word)
		}
	}
	for _, w := range deliveryWords() {
		if !have[w] {
			t.Errorf("docs/delivery.md lacks a row for %s", w)
		}
		delete(have, w)
	}
	for w := range have {
		t.Errorf("docs/delivery.md has a row for %s, which there is none of", w)
	}
}

func skip(err error, e fs.DirEntry) error {
	if err == nil && e.IsDir() {
		return fs.SkipDir
	}
	return err
}

// constants are the names of the root package's words.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\s(\w+)\s+(?:\w+\s+)?= "([a-z_]+)"`).FindAllStringSubmatch(string(body), -1) {
			out[m[2]] = append(out[m[2]], m[1])
		}
	}
	return out
}

// deliveryWords are the words that the table must have.
func deliveryWords() (all []string) {
	add := func(kind string, words ...string) {
		for _, w := range words {
			all = append(all, kind+" "+w)
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.HasSubCommands() && !c.Hidden || c.Name() == "installation-state" {
			add("command", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	for _, c := range cli.Tree().Commands() {
		if slices.Contains([]string{"job", "batch", "artifact", "desktop", "check"}, c.Name()) {
			walk(c)
		}
	}
	add("job", "running", "ready", "failed", "cancelled")
	add("batch", "queued", "materialized", "cooldown", "closed")
	for _, s := range thole.AttemptStates {
		add("attempt", string(s))
	}
	add("close reason", "delivered", "operator_confirmed_delivery", "operator_closed_unconfirmed", "cancelled", "redelivery_window_exhausted",
		"manual_resolution_expired", "max_attempts_exhausted", "handoff_recorded")
	for _, r := range thole.HoldReasons() {
		if r != thole.HoldSteered { // of earlier versions
			add("held for", string(r))
		}
	}
	add("binding", "unbound", "bound", "degraded")
	add("capability", "unknown", "validated", "unavailable")
	add("transport", "direct_file_read", "helper_cli_read")
	for _, o := range []thole.DesktopOutcome{
		thole.OutcomeUnchanged, thole.OutcomeArmPending, thole.OutcomeArmed, thole.OutcomeAlreadyArmed, thole.OutcomeLeaseHeld, thole.OutcomeAbandoned,
		thole.OutcomeQuiesced, thole.OutcomeTooEarly, thole.OutcomeNotQuiet, thole.OutcomeCrossed, thole.OutcomeNotReady, thole.OutcomeStale,
		thole.OutcomeCrossedOnce, thole.OutcomeInvalid, thole.OutcomeHelperFailed,
	} {
		add("outcome", string(o))
	}
	return all
}
