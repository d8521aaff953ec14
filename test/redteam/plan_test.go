//go:build linux

package redteam

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/terminal"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/unguarded"
)

// leave is a program that an agent leaves behind. It loses its session, its descriptors
// and the tag by which it would be found, and runs what comes on a socket.
const leave = `import os, resource, socket
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
resource.setrlimit(resource.RLIMIT_MSGQUEUE, (4096, resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]))
l = socket.socket(socket.AF_UNIX)
l.bind("/home/agent/left")
l.listen(5)
open("/workspace/listens", "w").close()
os.closerange(0, l.fileno())
while True:
    c, _ = l.accept()
    os.system(c.recv(4096).decode())
    c.close()
`

// ask lets the program that was left write, and waits for it.
const ask = `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("/home/agent/left"); s.sendall(b"echo x > /workspace/byothers"); s.recv(1)'`

// An agent that only plans writes nothing, neither through a program that an earlier turn
// left nor by a second name of a file among the conversations. Built without the guard
// (-tags thole_unguarded) the first works; the second fails because the two are mounts.
func TestPlanAfterAFullTurn(t *testing.T) {
	t.Parallel()
	lab.EveryUser(t, planAfterAFullTurn, "codex")
}

func planAfterAFullTurn(t *testing.T) {
	r := newRig(t, "codex")
	if err := os.WriteFile(filepath.Join(r.workspace, "leave.py"), []byte(leave), 0o644); err != nil {
		t.Fatal(err)
	}
	all := r.play(thole.ProfileFull, "sim: run echo good > kept; ln kept /home/agent/.agent_data/codex/second; env -i python3 leave.py && while ! test -e listens; do sleep 0.05; done ;; say ok", allow)
	if !r.exists("listens") {
		t.Fatalf("the attack cannot be prepared: %+v", end(all))
	}
	if !unguarded.Build { // a person's shell is not ended, so nothing is planned next to it
		shell, err := r.client.Terminal(t.Context(), terminal.Size{Columns: 80, Rows: 24})
		if err != nil {
			t.Fatal(err)
		}
		if e := end(r.play(thole.ProfilePlan, "sim: say planned", allow)); e.Error == nil || !strings.Contains(e.Error.Message, "a terminal is open") {
			t.Errorf("planned next to a terminal: %s %+v", e.Outcome, e.Error)
		}
		shell.Close()
		poll.Until(t, "the terminal is closed", func() bool {
			st, err := r.client.Status(t.Context())
			return err == nil && st.Terminals == 0
		})
	}
	all = r.play(thole.ProfilePlan, "sim: run echo bad > /home/agent/.agent_data/codex/second; "+ask+"; echo x > /home/agent/.agent_data/codex/done ;; say planned", allow)
	if !r.exists("../data/codex/done") || !r.exists("../data/codex/second") {
		t.Fatalf("the attack was not made: %+v", end(all))
	}
	if r.exists("byothers") != unguarded.Build {
		t.Errorf("a program that was left behind wrote: %v", r.exists("byothers"))
	}
	if text, err := os.ReadFile(filepath.Join(r.workspace, "kept")); err != nil || string(text) != "good\n" {
		t.Errorf("the file of the workspace is %q, %v", text, err)
	}
}
