package delivery_test

import (
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
)

// TestMovesAreLinks: what people and programs did to jobs and what became of deliveries are
// links of the audit chain, by who did it and of whom it is, and a move that did not happen
// is not one of them.
func TestMovesAreLinks(t *testing.T) {
	exercise(t, func(t *testing.T, r *rig) {
		r.ready("a", thole.TargetCLI)
		p := r.begin("a")
		r.accept(p, "turn")
		r.see(p, "turn", thole.TurnEventCompleted)
		stray := r.submit("b", thole.TargetCLI)
		if _, err := r.Cancel(ctx, thole.SystemActor, stray, "r1", "over"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Cancel(ctx, actor, "00000000-0000-7000-8000-0000000000ff", "r2", "none"); err == nil {
			t.Fatal("a job that is not there was cancelled")
		}
		links, err := r.db.Audit().Links(ctx, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range links {
			if l.Owner != thole.LocalUser || l.Outcome != audit.Allowed || l.After == "" || l.ID == "" {
				t.Errorf("%+v", l)
			}
			got = append(got, strings.Join([]string{l.Actor[:min(6, len(l.Actor))], l.Via, l.Kind, l.Action}, " "))
		}
		want := []string{
			"000000 socket job job.submit", "000000 socket job job.finish", "000000 socket batch attempt.begin_accept", "000000 socket batch attempt.accept",
			"000000 socket batch batch.close", "000000 socket job job.submit", "system system job job.cancel",
		}
		if !slices.Equal(got, want) {
			t.Fatalf("links\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if last := links[len(links)-1]; last.OnBehalf != thole.LocalUser || !strings.Contains(last.After, `"cancelled"`) || !strings.Contains(last.After, `"over"`) {
			t.Errorf("%+v", last)
		}
	})
}
