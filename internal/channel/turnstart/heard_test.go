package turnstart_test

import (
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnstart"
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
// whoever made it and how.
func TestChangesAreHeard(t *testing.T) {
	r := newRig(t)
	ch := turnstart.New(r.s, nil)
	defer ch.Close()
	probe := func() channel.Readiness { t.Helper(); return r.probe(ch) }
	// A turn's end is announced a moment before the thread takes the next one.
	idle := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); probe().Verdict != channel.Now; {
			if time.Now().After(end) {
				t.Fatalf("the idle thread gets nothing: %+v", probe())
			}
		}
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
	var out struct{ Turn struct{ ID string } } // by what is given with a turn, which stays
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

// A probe goes by what was heard, which lags behind. What the server took before the
// probe counts all the same: nothing is sent.
func TestNothingIsSentOnOldNews(t *testing.T) {
	r := newRig(t)
	ch := turnstart.New(r.s, nil)
	defer ch.Close()
	probe := func() channel.Readiness { t.Helper(); return r.probe(ch) }
	after := func(what string, change func()) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			got := probe()
			if got.Verdict == channel.Now && strings.Contains(got.Reason, "as was heard") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("never heard idle: %+v", got)
			}
			if got.Verdict == channel.Now {
				r.await(r.say("sim: say hello"), "completed") // its status is announced
			}
		}
		change()
		got := probe()
		if got.Verdict != channel.Now {
			return // heard already
		}
		a, err := ch.Propose(bg, channel.Proposal{
			User: thole.LocalUser, Endpoint: r.home, Thread: thole.ThreadID(r.thread), Mode: got.Mode, Marker: "thole-" + what, Request: "r",
			Text: "sim: say got it", Batch: "b", Attachment: got.Attachment, Epoch: got.Epoch,
		})
		if err != nil || a.Acceptance != thole.Rejected {
			t.Errorf("after %s: %+v, %v", what, a, err)
		}
	}
	turn := ""
	after("a turn", func() { turn = r.say("sim: hang"); r.asked("hang") })
	r.must("turn/interrupt", map[string]any{"turnId": turn}, nil)
	r.await(turn, "interrupted")
	for range 5 {
		after("wider settings", func() {
			r.must("thread/settings/update", map[string]any{"sandboxPolicy": map[string]any{"type": "workspaceWrite", "networkAccess": true}}, nil)
		})
		r.must("thread/settings/update", map[string]any{"sandboxPolicy": map[string]any{"type": "readOnly"}}, nil)
	}
	if n := r.carrying(); n != 0 {
		t.Errorf("%d deliveries arrived", n)
	}
}
