package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// The owner is killed, and then stopped, while a model speaks to each real agent through
// its gateway. The agents ask again, wait for the next owner without noticing more, and
// end their turns. An owner that is stopped does not wait for the models.
func TestTheOwnerEndsWhileAModelSpeaks(t *testing.T) {
	t.Parallel()
	r := newRig(t, "THOLE_PROVIDERS_CODEX="+lab.Codex(t), "THOLE_PROVIDERS_CLAUDE="+lab.Claude(t), "THOLE_PROVIDERS_OPENCODE="+lab.Opencode(t))
	sim := modelsim.Start(t, modelsim.Options{Demo: true})
	r.model = sim.URL()
	r.begin(t)
	type talk struct {
		*session
		run string
	}
	var all []talk
	for _, name := range providers {
		s := r.session(t, name)
		all = append(all, talk{s, s.start("sim: run echo once >> f ;; hang x2 ;; say spoken to "+name, "")})
	}
	// speaking waits until each model is in the middle of its n-th try at an answer.
	speaking := func(n int) {
		t.Helper()
		poll.Until(t, "three models in the middle of an answer", func() bool {
			tries := map[string]int{}
			for _, turn := range sim.Turns() {
				if turn.Step == 1 {
					tries[turn.Conversation]++
				}
			}
			for _, have := range tries {
				if have < n {
					return false
				}
			}
			return len(tries) == len(providers)
		})
	}
	speaking(1)
	r.murder(t)
	r.begin(t)
	speaking(2)
	begun := time.Now()
	r.stop()
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the owner took %s to end", took)
	}
	r.begin(t)
	for i, name := range providers {
		s := all[i]
		if s.settle(s.run, "completed"); !strings.Contains(s.said(s.run), "spoken to "+name) {
			t.Errorf("%s said %q", name, s.said(s.run))
		}
		info, ok := s.executor(t, s.id)
		if got, err := os.ReadFile(filepath.Join(s.home, "x", string(info.ID), "workspace", "f")); !ok || err != nil || string(got) != "once\n" {
			t.Errorf("the command of %s left %q, %v", name, got, err)
		}
	}
}
