package channel

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// A result goes into the turn that runs in a thread of thole's own, whichever agent runs
// it, where a person opened the gate for turns that only read: one turn, that has the
// result and completes.
func TestResultGoesIntoARunningTurnOfEachAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.up("THOLE_DELIVERY_STEER=read_only_low_risk", "THOLE_PROVIDERS_CODEX="+d.codex, "THOLE_PROVIDERS_CLAUDE="+lab.Claude(t), "THOLE_PROVIDERS_OPENCODE="+lab.Opencode(t))
	threads := map[string]string{}
	for agent, model := range map[string]string{"codex": "", "claude": "claude/default", "opencode": "opencode/default"} {
		var th struct{ Thread struct{ ID string } }
		d.thole(&th, "thread", "start", "--empty", "--profile", "plan", "--network", "gateway", "--model", model)
		threads[agent] = th.Thread.ID
		d.thole(nil, "thread", "send", "--detach", th.Thread.ID, "sim: wait 15s ;; say mine of "+agent)
		var j struct {
			JobID string `json:"job_id"`
		}
		d.thole(&j, "job", "submit", "--target", "thole", "--thread-id", th.Thread.ID, "--delivery-read-only=true", "--delivery-requires-approval=false",
			"--delivery-requires-network=false", "--delivery-requires-write-access=false")
		d.thole(nil, "job", "complete", "--job-id", j.JobID, "--summary", "sim: say the result was read by "+agent)
	}
	for agent, id := range threads {
		var all []batch
		d.until("the result for "+agent, func() bool {
			all = nil
			d.thole(&all, "batch", "list", "--source-thread-id", id)
			return len(all) == 1 && (all[0].CloseReason != "" || all[0].HeldFor != "")
		})
		if all[0].CloseReason != "delivered" || all[0].Attempts != 1 {
			t.Errorf("%s: %+v", agent, all[0])
		}
		var shown struct{ Turns []struct{ Status string } }
		d.thole(&shown, "thread", "show", id)
		text, err := d.try("thread", "show", id)
		if err != nil || len(shown.Turns) != 1 || shown.Turns[0].Status != "completed" || !strings.Contains(text, "the result was read by "+agent) {
			t.Errorf("%s: %+v, %v: %s", agent, shown, err, text)
		}
	}
}
