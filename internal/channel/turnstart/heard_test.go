package turnstart_test

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnstart"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// probe asks whether a batch may be delivered now.
func (r *rig) probe(ch *turnstart.Channel) channel.Readiness {
	r.t.Helper()
	got, err := ch.Probe(bg, channel.Query{User: thole.LocalUser, Endpoint: r.home, Thread: thole.ThreadID(r.thread), Batch: "b"})
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// Every change of a session's settings and status counts for the next delivery,
// whichever client made it and how.
func TestChangesAreHeard(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ch := turnstart.New(r.s, nil)
	defer ch.Close()
	probe := func() channel.Readiness { t.Helper(); return r.probe(ch) }
	// A turn's end is announced a moment before the thread takes the next one.
	idle := func() {
		t.Helper()
		poll.Until(t, "an idle thread", func() bool { return probe().Verdict == channel.Now })
	}
	refused := func(why string) {
		t.Helper()
		if got := probe(); got.Verdict != channel.NotNow || !strings.Contains(got.Reason, why) {
			t.Fatalf("want %s: %+v", why, got)
		}
	}
	idle()
	for range 3 { // by settings
		r.must("thread/settings/update", map[string]any{"sandboxPolicy": map[string]any{"type": "workspaceWrite", "networkAccess": true}}, nil)
		refused("session_profile_mismatch")
		r.must("thread/settings/update", map[string]any{"sandboxPolicy": map[string]any{"type": "readOnly"}}, nil)
		idle()
	}
	var out struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	} // by what is given with a turn, which stays
	r.must("turn/start", map[string]any{"input": []any{map[string]any{"type": "text", "text": "sim: wait 1s ;; say hello"}}, "approvalPolicy": "on-request"}, &out)
	r.asked("say hello")
	if got := probe(); got.Verdict != channel.NotNow {
		t.Fatalf("a busy thread: %+v", got)
	}
	r.await(out.Turn.ID, "completed")
	refused("session_profile_mismatch")
	r.must("thread/settings/update", map[string]any{"approvalPolicy": "never"}, nil)
	idle()
	turn := r.say("sim: hang")
	r.asked("hang")
	if got := probe(); got.Verdict != channel.NotNow {
		t.Fatalf("a busy thread: %+v", got)
	}
	r.must("turn/interrupt", map[string]any{"turnId": turn}, nil)
	r.await(turn, "interrupted")
	idle()
}

// What changes between a probe and its proposal counts too: nothing is sent into
// wider settings or over another connection, and nothing stays in a busy thread.
func TestChangesBehindTheProbe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ch := turnstart.New(r.s, nil)
	defer ch.Close()
	propose := func(marker string, change func()) channel.Answer {
		t.Helper()
		var got channel.Readiness
		poll.Until(t, "an idle thread", func() bool { got = r.probe(ch); return got.Verdict == channel.Now })
		change()
		a, err := ch.Propose(bg, channel.Proposal{
			User: thole.LocalUser, Thread: thole.ThreadID(r.thread), Mode: got.Mode, Marker: marker, Request: "r",
			Text: "sim: say got it", Batch: "b", Attachment: got.Attachment, Epoch: got.Epoch,
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	refused := func(what string, change func()) {
		t.Helper()
		if a := propose("thole-refused", change); a.Acceptance != thole.Rejected {
			t.Errorf("after %s: %+v", what, a)
		}
	}
	refused("wider settings", func() {
		news := ch.News("att")
		r.must("thread/settings/update", map[string]any{"sandboxPolicy": map[string]any{"type": "workspaceWrite", "networkAccess": true}}, nil)
		// Each client receives it in its own time.
		poll.Until(t, "the announcement", func() bool { return ch.News("att") > news })
	})
	r.must("thread/settings/update", map[string]any{"sandboxPolicy": map[string]any{"type": "readOnly"}}, nil)
	refused("a new connection", ch.Close)
	turn := ""
	refused("a turn", func() { turn = r.say("sim: hang"); r.asked("hang") })
	r.must("turn/interrupt", map[string]any{"turnId": turn}, nil)
	r.await(turn, "interrupted")
	if n := r.carrying(); n != 0 {
		t.Errorf("%d deliveries arrived", n)
	}
	poll.Until(t, "the next delivery", func() bool { return propose("thole-wanted", func() {}).Acceptance == thole.Accepted })
}
