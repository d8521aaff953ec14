//go:build linux

package cli

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// An agent that cannot reach its model service is named soon, with what to do, although its own
// tries go on for minutes.
func TestAServiceThatIsNotReached(t *testing.T) {
	lab.Bwrap(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String() + "/v1"
	_ = l.Close() // nobody listens there
	r := &rig{T: t, Home: home.New(t)}
	up := func(name, dialect, routes string) string {
		return `{name="` + name + `",dialect="` + dialect + `",base_url="` + dead + `",key="env:DEAD_KEY"` + routes + `}`
	}
	r.Vars = []string{
		config.Variable("providers.codex") + "=" + lab.Codex(t), config.Variable("providers.claude") + "=" + lab.Claude(t),
		config.Variable("providers.opencode") + "=" + lab.Opencode(t), "TERM=xterm-256color", "LANG=C.UTF-8", "DEAD_KEY=nothing",
		"THOLE_GATEWAY_UPSTREAMS=[" + up("away", "anthropic", "") + "," + up("gone", "openai", "") + "]",
	}
	r.repo = r.repository("app")
	for _, model := range []string{"codex/gpt-5", "claude/default", "opencode/anthropic/claude-sonnet-4-5"} {
		name, _, _ := strings.Cut(model, "/")
		t.Run(name, func(t *testing.T) {
			r := r.of(t)
			asked := time.Now()
			s := r.sit(120, "run", "--model", model, "hello")
			s.sees("thread ")
			id := strings.TrimSpace(s.sees("\n"))
			s.sees("waiting for the model")
			began := time.Now()
			// A machine that is slow to start the agent is slow to run it too.
			limit := max(15*time.Second, 2*began.Sub(asked))
			s.sees(name + " has no answer from its model service")
			took := time.Since(began)
			s.sees("thole provider list --check")
			s.sees("thole thread interrupt " + id)
			if took > limit {
				t.Errorf("it took %s, more than %s", took, limit)
			}
			r.must("thread", "interrupt", id)
			<-s.done
		})
	}
}
