package pipeline

import (
	"fmt"
	"io/fs"
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

// With keys of a user's own each real agent works, the service sees the key, and nothing
// that an agent can look at holds it, nor does anything that thole keeps.
func TestNoKeyEntersAnExecutor(t *testing.T) {
	t.Parallel()
	sim := modelsim.Start(t)
	const first, second = "canary-of-a-key-", "that-nobody-may-find"
	r := newRig(t, "THOLE_PROVIDERS_CODEX="+lab.Codex(t), "THOLE_PROVIDERS_CLAUDE="+lab.Claude(t), "THOLE_PROVIDERS_OPENCODE="+lab.Opencode(t), "THOLE_EGRESS_POLICY=gateway",
		"COMPANY_KEY="+first+second, fmt.Sprintf(`THOLE_GATEWAY_UPSTREAMS=[{name="a", dialect="anthropic", base_url="%[1]s/v1", key="env:COMPANY_KEY"}, {name="o", dialect="openai-responses", base_url="%[1]s/v1", key="env:COMPANY_KEY", routes=["codex"]}]`, sim.URL()))
	r.users = true
	r.begin(t)
	for _, name := range providers {
		t.Run(name, func(t *testing.T) {
			s := r.session(t, name)
			before := len(sim.Turns())
			id := s.start(`sim: run grep -rls -e `+first+`""`+second+` /proc/self/environ /proc/[0-9]*/environ /proc/[0-9]*/cmdline /run /home /tmp /workspace /etc 2>/dev/null; env | grep -c tgw_; echo looked ;; say fine`, "")
			s.settle(id, "completed")
			if said := s.said(id); !strings.Contains(said, "looked") || strings.Contains(said, "environ") || strings.Contains(said, "/workspace") {
				t.Errorf("the agent found: %q", said)
			}
			turns := sim.Turns()[before:]
			if len(turns) == 0 {
				t.Error("the service was not asked")
			}
			for _, turn := range turns {
				if key := turn.Header.Get("Authorization") + turn.Header.Get("X-Api-Key"); !strings.HasSuffix(key, first+second) || strings.Contains(key, "tgw_") {
					t.Errorf("the service saw %q", key)
				}
			}
		})
	}
	r.stop()
	_ = filepath.WalkDir(r.home, func(path string, d fs.DirEntry, _ error) error { // executors go on, and their files come and go
		if d == nil || !d.Type().IsRegular() {
			return nil
		}
		if body, err := os.ReadFile(path); err == nil && strings.Contains(string(body), first+second) {
			t.Errorf("%s holds the key", path)
		}
		return nil
	})
}
