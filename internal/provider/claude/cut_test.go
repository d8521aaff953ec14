package claude_test

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// When a stream is cut the CLI silently asks again without streaming. What was
// shown of the first try is dropped and the answer is emitted once.
func TestCutStream(t *testing.T) {
	for name, binary := range map[string]func(testing.TB) string{"pinned": lab.Claude, "oldest": lab.ClaudeOld} {
		t.Run(name, func(t *testing.T) {
			b := providertest.NewBench(t, harness(binary))
			delete(b.Config.Env, "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK")
			r := b.Play(b.Open(), "sim: slow 10ms 20 ;; cut ;; say "+strings.Repeat("told once and whole ", 40))
			if r.Outcome() != thole.OutcomeCompleted || strings.Count(r.Text(), "told once") != 40 {
				t.Fatalf("outcome %s, text %q", r.Outcome(), r.Text())
			}
			if len(r.Of(event.StepReset)) == 0 {
				t.Errorf("no reset of the first try; events:\n%s", r)
			}
		})
	}
}
