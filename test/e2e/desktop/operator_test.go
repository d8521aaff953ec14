package desktop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// What an operator types about heartbeats and what they fetched.
func TestOperatorOfHeartbeats(t *testing.T) {
	a := newApp(t)
	a.validate()
	var bound []struct {
		State   string `json:"binding_state"`
		Problem string `json:"problem"`
		Armed   int64  `json:"armed_generation"`
	}
	if a.do(0, &bound, "desktop", "binding", "list"); len(bound) != 1 || bound[0].State != "bound" || bound[0].Problem != "" {
		t.Errorf("%+v", bound)
	}
	var job struct {
		ID string `json:"job_id"`
	}
	file := filepath.Join(t.TempDir(), "report.txt")
	a.write(file, "412 passed")
	a.do(0, &job, "job", "submit", "--target", "desktop", "--thread-id", thread, "--delivery-read-only", "true", "--delivery-requires-approval", "false",
		"--delivery-requires-network", "false", "--delivery-requires-write-access", "false")
	a.do(0, nil, "job", "complete", job.ID, "--summary", "tests", "--result-file", file)
	k := a.wake().Ready[0]
	var list []token
	if a.do(0, &list, "desktop", "claim-next-ready", "--bridge-thread-id", bridge); len(list) != 1 || list[0] != k {
		t.Errorf("%+v, want %+v", list, k)
	}
	if a.do(0, &list, "desktop", "claim-next-ready", "--bridge-thread-id", "another"); len(list) != 0 {
		t.Errorf("another bridge: %+v", list)
	}
	// An arming that failed in the app: its heartbeat is still paused.
	a.do(0, nil, append([]string{"desktop", "note-arm-pending", "--bridge-request-id", "wake-1"}, k.arm()...)...)
	if a.do(0, &list, "desktop", "list-arm-pending", "--bridge-thread-id", bridge); len(list) != 1 || list[0].Attempt != k.Attempt {
		t.Errorf("%+v", list)
	}
	var out answer
	if a.do(5, &out, "desktop", "reconcile", "--source-thread-id", thread); out.Outcome != "lease_held" {
		t.Errorf("%+v", out)
	}
	if a.do(0, &out, append([]string{"desktop", "reconcile", "--bridge-request-id", "wake-1"}, k.arm()...)...); out.Outcome != "abandoned" {
		t.Errorf("%+v", out)
	}
	next := a.wake().Ready[0]
	if next.Generation != k.Generation+1 || next.Batch != k.Batch {
		t.Errorf("%+v after %+v", next, k)
	}
	k = next
	a.arm(k)
	var lease answer
	a.do(0, &lease, append([]string{"desktop", "note-arm", "--bridge-request-id", "wake-1", "--bridge-arm-lease-id", a.armed}, k.arm()...)...)
	if lease.Outcome != "already_armed" {
		t.Errorf("%+v", lease)
	}
	if a.do(0, &list, "desktop", "list-pause-due", "--bridge-thread-id", bridge); len(list) != 0 {
		t.Errorf("to be paused at once: %+v", list)
	}
	a.heartbeat("PAUSED", "")
	a.do(5, &out, "desktop", "note-paused", "--source-thread-id", thread, "--generation", strconv.FormatInt(k.Generation, 10))
	if out.Outcome != "too_early" {
		t.Errorf("%+v", out)
	}
	// A woken thread that reaches no daemon learns that nothing is known.
	a.do(0, nil, "daemon", "stop")
	cmd := exec.Command(lab.Bwrap(t), append([]string{"--unshare-net", "--ro-bind", "/", "/", "--", a.Binary, "--json"}, k.cross()...)...)
	cmd.Env = a.Env()
	if text, err := cmd.Output(); err == nil || !strings.Contains(string(text), `"unknown_after_helper_failure"`) {
		t.Errorf("%v: %s", err, text)
	}
	a.do(0, &out, k.cross()...)
	if !strings.Contains(out.Payload, "412 passed") {
		t.Errorf("%+v", out)
	}
	var batch struct {
		Artifacts []string `json:"artifact_ids"`
		Recovery  struct {
			Leases []struct {
				ID string `json:"artifact_recovery_lease_id"`
			} `json:"artifact_leases"`
		} `json:"boundary_recovery"`
	}
	a.do(0, &batch, "batch", "inspect", k.Batch)
	if len(batch.Recovery.Leases) != 1 {
		t.Fatalf("%+v", batch)
	}
	under := []string{"desktop", "read-artifact", "--artifact-read-lease-id", batch.Recovery.Leases[0].ID}
	if text, errs, code := a.Run(append(under, "--offset", "4", "--max-bytes", "3")...); code != 0 || text != "pas" {
		t.Errorf("%d %q %s", code, text, errs)
	}
	a.do(0, nil, "artifact", "inspect", batch.Artifacts[0])
	a.do(0, nil, "artifact", "pin", batch.Artifacts[0], "--for", "720h")
	a.do(0, nil, "artifact", "read", batch.Artifacts[0])
	a.do(0, nil, "artifact", "revoke", batch.Recovery.Leases[0].ID)
	if _, _, code := a.Run(under...); code == 0 {
		t.Error("a lease that was revoked reads")
	}
	a.do(0, nil, "job", "query", job.ID)
	if _, err := os.Stat(filepath.Join(a.Dir, "inbox", "current-snapshot.json")); err != nil {
		t.Error(err)
	}
	// Without its heartbeat the thread's results are held, until a person sends them.
	a.do(2, nil, "desktop", "binding", "unbind") // no thread
	a.do(7, nil, "desktop", "binding", "unbind", "--source-thread-id", thread, "--delete-automation")
	a.do(0, nil, "desktop", "binding", "unbind", "--source-thread-id", thread)
}
