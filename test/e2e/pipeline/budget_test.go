package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// A budget is spent while each real agent works. Its next model call is refused, its turn
// ends with the budget's own code and not as a login that ran out, and what it used is
// counted by its calls.
func TestBudgetEndsTheTurnsOfRealAgents(t *testing.T) {
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
		all = append(all, talk{s, s.start("sim: usage in=70 out=30 ;; run touch begun; while ! test -e go; do sleep 0.05; done ;; say beyond the limit", "")})
	}
	for i, name := range providers {
		s := all[i]
		var dir string
		poll.Until(t, "the command of "+name, func() bool {
			info, ok := s.executor(t, s.id)
			dir = filepath.Join(s.home, "x", string(info.ID), "workspace")
			_, err := os.Stat(filepath.Join(dir, "begun"))
			return ok && err == nil
		})
		s.owner(t, spend.MethodBudgetSet, spend.SetParams{Scope: "thread", Subject: s.id, LimitTokens: 100})
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		got := s.settle(s.run, "failed")
		if got.Error == nil || got.Error.Code != "budget_exceeded" || !strings.Contains(got.Error.Message, "100 tokens") || !strings.Contains(got.Error.Hint, "thole budget") {
			t.Errorf("the turn of %s ended with %+v", name, got.Error)
		}
		if strings.Contains(s.said(s.run), "beyond the limit") {
			t.Errorf("%s got an answer beyond its limit", name)
		}
		var used struct {
			Total struct{ Runs, Calls, Input, Output int }
		}
		s.call(t, "GET", "/usage?session_id="+s.id, nil, &used)
		if used.Total.Runs != 1 || used.Total.Calls == 0 || used.Total.Input < 70 || used.Total.Output < 30 {
			t.Errorf("%s used %+v", name, used.Total)
		}
	}
}
