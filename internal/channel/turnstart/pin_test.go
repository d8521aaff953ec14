package turnstart_test

import (
	"encoding/json"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnstart"
)

// allowed is what the user's session allows now, in the server's words.
func (r *rig) allowed() (string, attachment.PermissionSnapshot) {
	r.t.Helper()
	var s attachment.Settings
	r.must("thread/resume", map[string]any{"excludeTurns": true}, &s)
	now, err := attachment.Read(s)
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text), now
}

// widen is the user giving the session more than it had when it was attached.
func (r *rig) widen() {
	r.t.Helper()
	if _, err := r.s.Saw(bg, "", attachment.PermissionSnapshot{Policy: "never", Sandbox: "readOnly"}); err != nil {
		r.t.Fatal(err)
	}
	r.must("thread/settings/update", map[string]any{
		"approvalPolicy": "on-request", "sandboxPolicy": map[string]any{"type": "workspaceWrite", "networkAccess": true},
	}, nil)
}

// A session that allows more than its cap gets nothing, unless the user said that
// deliveries may pin it: then the delivered turn runs within the cap, also when the
// deliverer is replaced in it, and afterwards the settings are the user's again.
func TestPinnedPermissions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.widen()
	before, _ := r.allowed()
	ch := turnstart.New(r.s, nil)
	defer ch.Close()
	q := channel.Query{User: thole.LocalUser, Endpoint: r.home, Thread: thole.ThreadID(r.thread), Batch: "b"}
	if got, err := ch.Probe(bg, q); err != nil || got.Verdict != channel.NotNow || !strings.Contains(got.Reason, "session_profile_mismatch") {
		t.Fatalf("a session beyond its cap: %+v, %v", got, err)
	}
	r.s.a.Wish.Pin = true
	r.deliver()
	r.job("sim: wait 2s ;; say got it")
	r.asked("got it")
	if text, now := r.allowed(); now.Approval || now.Network || now.Write {
		t.Errorf("the delivered turn runs with %s", text)
	}
	r.halt()
	r.deliver()
	r.delivered(t)
	if after, _ := r.allowed(); after != before {
		t.Errorf("the user's settings were\n%s and are\n%s", before, after)
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.s.a.Pinned != nil {
		t.Errorf("%+v is still pinned", r.s.a.Pinned)
	}
}

// A turn that is followed no longer keeps its pin until it ends; then the settings
// are the user's again, without any other delivery.
func TestPinIsPutBackLate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.widen()
	before, _ := r.allowed()
	r.s.a.Wish.Pin = true
	r.deliver()
	r.job("sim: wait 3s ;; say got it")
	r.asked("got it")
	r.halt()
	ch := turnstart.New(r.s, nil)
	defer ch.Close()
	putBack := func(tracked bool) {
		t.Helper()
		if err := ch.PutBack(bg, "att", func(attachment.Attachment) (bool, error) { return tracked, nil }); err != nil {
			t.Fatal(err)
		}
	}
	putBack(false)
	if text, now := r.allowed(); now.Write {
		t.Errorf("while its turn runs the session has %s", text)
	}
	for running := true; running; {
		var out struct {
			Data []struct {
				Status string `json:"status"`
			} `json:"data"`
		}
		r.must("thread/turns/list", map[string]any{"limit": 1, "sortDirection": "desc", "itemsView": "notLoaded"}, &out)
		running = out.Data[0].Status == "inProgress"
	}
	putBack(true)
	if _, now := r.allowed(); now.Write {
		t.Error("somebody follows the delivery, and the pin is gone")
	}
	for after := ""; after != before; { // the thread is idle a moment after its turn's end
		putBack(false)
		if after, _ = r.allowed(); after != before && r.s.a.Pinned == nil {
			t.Fatalf("the user's settings were\n%s and are\n%s", before, after)
		}
	}
}

// What the user chooses while a delivered turn runs stays.
func TestPinLeavesTheUsersChoice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.widen()
	r.s.a.Wish.Pin = true
	r.deliver()
	r.job("sim: wait 1s ;; say got it")
	r.asked("got it")
	r.must("thread/settings/update", map[string]any{"approvalPolicy": "untrusted"}, nil)
	chosen, _ := r.allowed()
	r.delivered(t)
	if after, _ := r.allowed(); after != chosen {
		t.Errorf("the user chose\n%s and has\n%s", chosen, after)
	}
}
