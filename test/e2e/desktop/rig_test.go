package desktop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

const (
	thread     = "019a2b3c-0000-7000-8000-00000000000a"
	bridge     = "019a2b3c-0000-7000-8000-00000000000b"
	automation = "caller"
)

// app is a home with the channel on, and the files of a Desktop app: the test plays its
// scheduler and its automation_update by writing automation.toml.
type app struct {
	*home.Home
	t     *testing.T
	codex string // CODEX_HOME
	armed string // lease of the last arming
}

func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{Home: home.New(t), t: t, codex: t.TempDir()}
	a.Vars = append(a.Vars, "CODEX_HOME="+a.codex)
	config := fmt.Sprintf("[desktop]\nenabled = true\n[delivery]\nwait_window = \"0s\"\nmin_interval = \"0s\"\n[providers]\ncodex = %q\n", lab.Codex(t))
	a.write(filepath.Join(a.Dir, "config.toml"), config)
	a.heartbeat("PAUSED", "")
	return a
}

func (a *app) write(path, text string) {
	a.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// heartbeat is automation_update of the app.
func (a *app) heartbeat(status, prompt string) {
	a.write(filepath.Join(a.codex, "automations", automation, "automation.toml"), fmt.Sprintf(
		"id = %q\nname = \"thole\"\nkind = \"heartbeat\"\nstatus = %q\nrrule = \"FREQ=MINUTELY;INTERVAL=1\"\ntarget_thread_id = %q\nprompt = %q\n",
		automation, status, thread, prompt))
}

// do runs a command, whose exit code must be want, and decodes what it prints.
func (a *app) do(want int, out any, args ...string) string {
	a.t.Helper()
	text, errs, code := a.Run(append([]string{"--json"}, args...)...)
	if code != want {
		a.t.Fatalf("thole %s: exit %d, want %d: %s%s", strings.Join(args, " "), code, want, text, errs)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			a.t.Fatalf("thole %s: %v: %s", strings.Join(args, " "), err, text)
		}
	}
	return errs
}

// validate is what an operator does once, after trying the app.
func (a *app) validate() {
	a.t.Helper()
	a.do(0, nil, "desktop", "installation-state", "repair", "--read-transport", "direct_file_read", "--read-transport-capability", "validated", "--writeback-capability", "validated")
	a.do(0, nil, "desktop", "binding", "repair", "--source-thread-id", thread, "--caller-automation-id", automation, "--bridge-thread-id", bridge)
}

// job is background work for the thread that is done.
func (a *app) job(summary string) {
	a.t.Helper()
	var job struct {
		ID string `json:"job_id"`
	}
	a.do(0, &job, "job", "submit", "--target", "desktop", "--thread-id", thread, "--summary", summary, "--delivery-read-only", "true",
		"--delivery-requires-approval", "false", "--delivery-requires-network", "false", "--delivery-requires-write-access", "false")
	a.do(0, nil, "job", "complete", job.ID, "--summary", summary)
}

type token struct {
	Thread     string `json:"source_thread_id"`
	Batch      string `json:"batch_id"`
	Attempt    string `json:"attempt_id"`
	Generation int64  `json:"generation"`
	Revision   int64  `json:"snapshot_revision"`
}

func (k token) arm() []string {
	return []string{"--source-thread-id", k.Thread, "--attempt-id", k.Attempt, "--generation", strconv.FormatInt(k.Generation, 10)}
}

func (k token) cross() []string {
	return append([]string{"desktop", "note-boundary-crossed", "--batch-id", k.Batch, "--expected-snapshot-revision", strconv.FormatInt(k.Revision, 10)}, k.arm()...)
}

type snapshot struct {
	Revision int64   `json:"snapshot_revision"`
	Ready    []token `json:"ready_threads"`
}

// wake is what a bridge does first, until a thread is ready.
func (a *app) wake() snapshot {
	a.t.Helper()
	var s snapshot
	poll.Until(a.t, "a thread that is ready", func() bool {
		a.do(0, &s, "desktop", "bridge-preflight", "--bridge-thread-id", bridge)
		return len(s.Ready) > 0
	})
	return s
}

type answer struct {
	Outcome string `json:"outcome"`
	Lease   string `json:"bridge_arm_lease_id"`
	Payload string `json:"inline_payload_summary"`
}

// arm takes a token through the barrier, the app and the record.
func (a *app) arm(k token) {
	a.t.Helper()
	var pending, armed answer
	a.do(0, &pending, append([]string{"desktop", "note-arm-pending", "--bridge-request-id", "wake-1"}, k.arm()...)...)
	a.heartbeat("ACTIVE", "")
	a.do(0, &armed, append([]string{"desktop", "note-arm", "--bridge-request-id", "wake-1", "--bridge-arm-lease-id", pending.Lease}, k.arm()...)...)
	a.armed = pending.Lease
	if armed.Outcome != "armed" {
		a.t.Fatalf("%+v", armed)
	}
}
