//go:build linux

package keys

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
)

// A budget that is spent in the middle of a turn ends it and says so, with every CLI, and
// none of them reads it as a lost login.
func TestASpentBudgetEndsATurn(t *testing.T) {
	t.Parallel()
	sim := modelsim.New(modelsim.Options{})
	t.Cleanup(func() { _ = sim.Close() })
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	w := newWorld(t)
	w.agents()
	w.upstreams(server.URL, "env:UPSTREAM_KEY")
	w.begin()
	for _, name := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			th := w.in(t).thread(name, models[name])
			th.thole("budget", "set", "thread:"+th.id, "600k tokens")
			// Less than what a CLI compacts its conversation at.
			step := "usage in=150000 out=100 ;; run echo "
			id := th.start("sim: " + step + "first ;; " + step + "second ;; " + step + "third ;; " + step + "fourth ;; " + step + "fifth ;; " + step + "sixth ;; say never")
			got := th.settle(id)
			if got.Outcome != "failed" || got.Error == nil || got.Error.Code != "budget_exceeded" {
				t.Fatalf("the turn ended %s: %+v", got.Outcome, got.Error)
			}
			if words := got.Error.Message + got.Error.Hint; !strings.Contains(words, "600k tokens") && !strings.Contains(words, "600,000") && !strings.Contains(words, "600000") || regexp.MustCompile(`(?i)log ?in`).MatchString(words) {
				t.Errorf("the turn says %+v", got.Error)
			}
			said := th.out(id)
			if !strings.Contains(said, "first") || strings.Contains(said, "sixth") {
				t.Errorf("the agent ran %q", said)
			}
			var more struct{ ID string }
			th.call("POST", "/sessions/"+th.id+"/queue", map[string]any{"text": "sim: say more"}, &more) // kept for better days
		})
	}
}

// out is what the commands of a turn printed.
func (th *thread) out(id string) string {
	th.Helper()
	var page struct {
		Items []struct{ Command *struct{ Output string } }
	}
	th.call("GET", "/runs/"+id+"/items", nil, &page)
	var all strings.Builder
	for _, it := range page.Items {
		if it.Command != nil {
			all.WriteString(it.Command.Output)
		}
	}
	return all.String()
}
