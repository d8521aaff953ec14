package tui

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/test/e2e/home"
)

// terminals are the newest patches of every minor release of Codex whose TUI attaches.
var terminals = strings.Fields(version.OldestTUI + ` 0.132.0 0.133.0 0.134.0 0.135.0 0.136.0 0.137.0 0.138.0 0.139.0 0.140.0 0.141.0 0.142.5 0.143.0
	0.144.6 0.145.0 0.146.1 0.147.0 0.148.0 0.149.1 0.150.1 0.151.0 0.152.1 0.153.4 0.154.0 0.155.1 0.156.1 0.157.1 0.158.0 0.159.3 0.160.1 0.161.0
	0.162.1 0.163.0 0.164.0 0.165.0 ` + version.Codex)

// The list is what the registry of npm has.
func TestTerminalsAreTheNewest(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("set THOLE_SOAK=1")
	}
	raw, err := exec.Command("npm", "view", "@openai/codex", "versions", "--json").Output()
	if err != nil {
		t.Fatalf("npm view: %v", err)
	}
	var published []string
	if err := json.Unmarshal(raw, &published); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if want := newestPatches(published, version.OldestTUI, version.Codex); !slices.Equal(want, terminals) {
		t.Errorf("npm has %v, the list %v", want, terminals)
	}
}

func TestNewestPatches(t *testing.T) {
	published := []string{"0.1.0", "0.130.9", "0.131.0", "0.131.2", "0.131.10", "0.132.0-alpha.1", "0.133.0", "0.133.1-linux-x64", "0.134.3", "0.134.2", "0.135.0"}
	if got := newestPatches(published, "0.131.0", "0.134.2"); !slices.Equal(got, []string{"0.131.10", "0.133.0", "0.134.2"}) {
		t.Errorf("%v", got)
	}
}

// newestPatches are the newest releases of each minor version from one to another, which is
// the newest that is known.
func newestPatches(published []string, from, to string) (newest []string) {
	last := map[string]string{}
	for _, v := range published {
		if strings.Contains(v, "-") || version.Older(v, from) || version.Older(to, v) {
			continue
		}
		minor := v[:strings.LastIndexByte(v, '.')]
		if have, ok := last[minor]; !ok || version.Older(have, v) {
			last[minor] = v
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b string) int {
		if version.Older(a, b) {
			return -1
		}
		return 1
	})
}

// Every TUI from the oldest on attaches for one turn and one approval; the one before it is
// refused by its version. Each is some hundred megabytes, so only with THOLE_SOAK.
func TestTerminalsOfOtherVersions(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("set THOLE_SOAK=1")
	}
	h := home.New(t)
	h.Up()
	for _, v := range terminals {
		t.Run(v, func(t *testing.T) {
			s := show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", lab.CodexOf(t, v))
			s.until("a prompt", func(shown string) bool { return strings.Contains(shown, "›") && !strings.Contains(shown, "loading") })
			s.say("sim: escalate touch made && echo appr-$((40+2)) ;; say told %tool%")
			s.wait("Yes")
			s.keys("y")
			s.wait("told appr-42")
		})
	}
	t.Run("too old", func(t *testing.T) {
		_, words, code := h.Run("tui", "--codex", lab.CodexOf(t, "0.130.0"))
		if code == 0 || !strings.Contains(words, version.OldestTUI+" is the oldest that attaches") {
			t.Errorf("exit %d: %s", code, words)
		}
	})
}
