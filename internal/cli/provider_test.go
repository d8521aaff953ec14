package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// runProvider runs a command line with an input and returns what it printed.
func runProvider(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(append([]string{"--home", t.TempDir(), "provider"}, args...), strings.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

func TestProviderListAndProbe(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, out, errs := runProvider(t, "", "list")
	if code != 7 || !strings.Contains(out, "npm install -g @openai/codex@") || !strings.Contains(out, "questions survive restart") || !strings.Contains(errs, "no agent is installed") || !strings.Contains(errs, "thole up --demo") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs = runProvider(t, "", "probe", "codex"); code != 7 || !strings.Contains(errs, "try: npm install") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs = runProvider(t, "", "probe", "elsewhere"); code != 3 || !strings.Contains(errs, "codex, claude, opencode, test") {
		t.Errorf("exit %d: %s", code, errs)
	}
	var infos []provider.Info
	_, out, _ = runProvider(t, "", "probe", "test", "--json")
	if err := json.Unmarshal([]byte(out), &infos); err != nil || len(infos) != 1 || !infos[0].Capabilities.Resume.OK() {
		t.Errorf("%v: %s", err, out)
	}
}

func TestProviderTry(t *testing.T) {
	dir := t.TempDir()
	try := func(in, prompt string, flags ...string) (int, string, string) {
		t.Helper()
		return runProvider(t, in, append([]string{"try", "--provider", "test", "--dir", dir, prompt}, flags...)...)
	}
	code, out, errs := try("y\n2\n", "sim: think hm ;; run echo hi > made ;; ask Which? | red | green ;; todo [x] a | b ;; say took %tool%\x1b[2J")
	if code != 0 || !strings.Contains(out, "$ echo hi > made") || !strings.Contains(out, "took green") || !strings.Contains(out, "[x] a") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if strings.Contains(out, "\x1b") {
		t.Error("an escape sequence of the agent reached the terminal")
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
	code, out, _ = try("not that one\n", "sim: write other text ;; say %tool%")
	if code != 0 || !strings.Contains(out, "denied: not that one") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if code, _, errs = try("", "sim: http 401 bad key"); code != 7 || !strings.Contains(errs, "bad key") || !strings.Contains(errs, "try: log in again") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, out, _ = try("", "sim: say x", "--json"); code != 0 || !strings.Contains(out, `"kind":"turn.ended"`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	if code, _, errs = try("", "x", "--profile", "nonsense"); code != 2 {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestProviderTryWithCodex(t *testing.T) {
	binary := lab.Codex(t)
	sim := modelsim.Start(t)
	data, dir := t.TempDir(), t.TempDir()
	if err := modelsim.CodexConfig(data, sim.URL()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("THOLE_PROVIDERS_CODEX", binary)
	code, out, errs := runProvider(t, "y\n", "try", "--provider", "codex", "--model", modelsim.Model, "--data", data, "--dir", dir,
		"sim: run touch made && echo done ;; say finished")
	if code != 0 || !strings.Contains(out, "touch made") || !strings.Contains(out, "finished") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}

// What an agent reports of its account's limits stands on lines of its own, between
// what it says, and writes nothing to the terminal but text.
func TestLimitsArePrinted(t *testing.T) {
	var out bytes.Buffer
	p := &turnPrinter{out: &out}
	p.event(event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: "a", Delta: "half a sentence"}})
	p.event(event.Event{Kind: event.LimitsUpdated, Data: event.Data{Limits: []event.Limit{
		{Name: "primary", Used: 82, Window: 300, Resets: time.Unix(1794790800, 0)}, {Name: "week\x1b[2Jly", Used: 3},
	}}})
	p.event(event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: "a", Delta: ", and the rest"}})
	p.event(event.Event{Kind: event.TurnEnded})
	want := "\n| half a sentence\nnote: 82% of the primary limit (5h0m0s) is used until 2026-11-16 01:00 UTC\nnote: 3% of the week\\u001b[2Jly limit is used\n| , and the rest\n"
	if got := out.String(); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
