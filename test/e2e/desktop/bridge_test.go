package desktop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// A result goes from a job to a woken thread: once, with a recovery for the operator, and
// nothing of it is on the disk of the inbox before.
func TestHeartbeatFetchesAResult(t *testing.T) {
	a := newApp(t)
	a.validate()
	a.job("412 tests passed")
	s := a.wake()
	k := s.Ready[0]
	read := []string{"desktop", "read-snapshot", "--expected-revision", strconv.FormatInt(s.Revision, 10)}
	var same snapshot
	if a.do(0, &same, read...); same.Revision != s.Revision || len(same.Ready) != 1 || same.Ready[0] != k {
		t.Errorf("%+v, published %+v", same, s)
	}
	_ = filepath.WalkDir(filepath.Join(a.Dir, "inbox"), func(path string, e os.DirEntry, err error) error {
		if body, _ := os.ReadFile(path); strings.Contains(string(body), "412 tests") {
			t.Errorf("%s has content before the boundary", path)
		}
		return err
	})
	var early, held, first, again answer
	a.do(5, &early, k.cross()...)
	if early.Outcome != "transient_not_ready" || early.Payload != "" {
		t.Errorf("before it was armed: %+v", early)
	}
	a.do(0, &first, append([]string{"desktop", "note-arm-pending", "--bridge-request-id", "wake-1"}, k.arm()...)...)
	a.do(5, &held, append([]string{"desktop", "note-arm-pending", "--bridge-request-id", "wake-2"}, k.arm()...)...)
	if held.Outcome != "lease_held" || held.Lease != "" || first.Lease == "" {
		t.Errorf("%+v, %+v", first, held)
	}
	a.arm(k)
	for what, other := range map[string]token{
		"generation": {k.Thread, k.Batch, k.Attempt, k.Generation + 1, k.Revision}, "revision": {k.Thread, k.Batch, k.Attempt, k.Generation, k.Revision + 1},
		"attempt": {k.Thread, k.Batch, k.Batch, k.Generation, k.Revision}, "batch": {k.Thread, k.Attempt, k.Attempt, k.Generation, k.Revision},
	} {
		var stale answer
		if a.do(4, &stale, other.cross()...); stale.Outcome != "stale_or_superseded" || stale.Payload != "" {
			t.Errorf("another %s: %+v", what, stale)
		}
	}
	a.do(0, &first, k.cross()...)
	if first.Outcome != "crossed" || !strings.Contains(first.Payload, "412 tests passed") {
		t.Fatalf("%+v", first)
	}
	a.do(4, &again, k.cross()...)
	if again.Outcome != "already_crossed_or_handoff_recorded" || again.Payload != "" {
		t.Errorf("%+v", again)
	}
	var batch struct {
		Reason   string `json:"close_reason"`
		Recovery struct {
			Envelope struct {
				Payload string `json:"inline_payload_summary"`
			} `json:"boundary_recovery_envelope"`
		} `json:"boundary_recovery"`
	}
	a.do(0, &batch, "batch", "inspect", "--batch-id", k.Batch)
	if batch.Reason != "handoff_recorded" || batch.Recovery.Envelope.Payload != first.Payload {
		t.Errorf("%+v", batch)
	}
	// The queue goes on, but nothing is armed before the heartbeat is proven to be quiet.
	a.job("413 tests passed")
	if a.do(0, &s, "desktop", "bridge-preflight", "--bridge-thread-id", bridge); len(s.Ready) != 0 {
		t.Errorf("armed twice: %+v", s)
	}
	var check struct {
		Violations []any `json:"violations"`
	}
	if a.do(0, &check, "check"); len(check.Violations) != 0 {
		t.Errorf("%+v", check)
	}
}

// read-snapshot needs neither a store nor a socket nor anything that it could write.
func TestReadSnapshotReadsFilesAlone(t *testing.T) {
	a := newApp(t)
	a.validate()
	a.job("done")
	s := a.wake()
	args := []string{"desktop", "read-snapshot", "--expected-revision", strconv.FormatInt(s.Revision, 10)}
	a.do(0, nil, "daemon", "stop")
	cmd := exec.Command(lab.Bwrap(t), append([]string{"--unshare-net", "--ro-bind", "/", "/", "--bind", "/dev/null", filepath.Join(a.Dir, "thole.db"), "--", a.Binary}, args...)...)
	cmd.Env = a.Env()
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), s.Ready[0].Attempt) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(daemon.Socket(a.Dir)); err == nil {
		t.Error("it started a daemon")
	}
	// A wake-up whose preflight failed has no revision, and the old one is not its own.
	a.do(0, nil, "desktop", "bridge-preflight", "--bridge-thread-id", bridge)
	if errs := a.do(4, nil, args...); !strings.Contains(errs, "not of "+strconv.FormatInt(s.Revision, 10)) {
		t.Error(errs)
	}
	// Preflight needs the daemon, which a macOS sandbox does not let a heartbeat reach.
	a.do(0, nil, "daemon", "stop")
	cmd = exec.Command(lab.Bwrap(t), "--unshare-net", "--ro-bind", "/", "/", "--", a.Binary, "desktop", "bridge-preflight", "--bridge-thread-id", bridge)
	cmd.Env = a.Env()
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("a preflight that could write nothing succeeded: %s", out)
	}
}

// A daemon that is killed at any time leaves what was acknowledged, and one answer at most.
func TestBridgeSurvivesKills(t *testing.T) {
	a := newApp(t)
	a.validate()
	a.job("done")
	k := a.wake().Ready[0]
	kill := func() {
		var s struct {
			PID int `json:"pid"`
		}
		a.do(0, &s, "daemon", "status")
		if s.PID == 0 {
			t.Fatal("no daemon")
		}
		if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		poll.Until(t, "the daemon's end", func() bool { return syscall.Kill(s.PID, 0) != nil })
	}
	kill()
	if again := a.wake().Ready[0]; again != k {
		t.Errorf("another attempt after a kill: %+v, was %+v", again, k)
	}
	var lease, same answer
	a.do(0, &lease, append([]string{"desktop", "note-arm-pending", "--bridge-request-id", "wake-1"}, k.arm()...)...)
	kill()
	a.do(0, &same, append([]string{"desktop", "note-arm-pending", "--bridge-request-id", "wake-1"}, k.arm()...)...)
	if same.Lease != lease.Lease || lease.Lease == "" {
		t.Errorf("%+v, was %+v", same, lease)
	}
	a.arm(k)
	kill()
	var out answer
	a.do(0, &out, k.cross()...)
	kill()
	var again answer
	if a.do(4, &again, k.cross()...); again.Payload != "" || out.Payload == "" {
		t.Errorf("%+v, then %+v", out, again)
	}
}

// While the channel is off its commands say so, and results are held.
func TestOffByDefault(t *testing.T) {
	a := newApp(t)
	a.write(filepath.Join(a.Dir, "config.toml"), "")
	if errs := a.do(7, nil, "desktop", "bridge-preflight", "--bridge-thread-id", bridge); !strings.Contains(errs, "desktop") {
		t.Error(errs)
	}
	var in struct {
		Enabled, Valid bool
	}
	if a.do(0, &in, "desktop", "installation-state"); in.Enabled || in.Valid {
		t.Errorf("%+v", in)
	}
	a.job("done")
	var held []struct {
		For string `json:"held_for"`
	}
	poll.Until(t, "a held batch", func() bool {
		a.do(0, &held, "batch", "list", "--held")
		return len(held) == 1
	})
	if held[0].For != "no_channel" {
		t.Errorf("%+v", held)
	}
}
