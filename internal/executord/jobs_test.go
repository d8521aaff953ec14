package executord_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/poll"
)

func command(line string) wire.JobRequest {
	return wire.JobRequest{ID: thole.NewID[thole.JobID](time.Now()), Argv: []string{"sh", "-c", line}}
}

func begin(t *testing.T, c *executorclient.Client, req wire.JobRequest) {
	t.Helper()
	if _, err := c.StartJob(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// output reads a command's output to its end.
func output(t *testing.T, c *executorclient.Client, id thole.JobID, after int64) (string, wire.Job) {
	t.Helper()
	var out bytes.Buffer
	if err := c.JobOutput(t.Context(), id, after, &out); err != nil {
		t.Fatal(err)
	}
	j, err := c.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), j
}

// A command begins once, however often it is asked for; its output is read from anywhere.
func TestACommandBeginsOnce(t *testing.T) {
	dir := home(t)
	c, _ := serve(t, dir)
	gate := filepath.Join(dir, "workspace", "go")
	req := command("echo began >> began; pwd; while [ ! -e go ]; do sleep 0.02; done; echo err >&2; exit 4")
	for range 3 {
		begin(t, c, req)
	}
	if st, err := c.Status(t.Context()); err != nil || st.JobsRunning != 1 || len(st.Jobs) != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said, j := output(t, c, req.ID, 0)
	if want := filepath.Join(dir, "workspace") + "\nerr\n"; said != want || !j.Ended || j.ExitCode != 4 || !strings.HasPrefix(j.Summary, "exit status 4 after ") || j.Bytes != int64(len(want)) {
		t.Errorf("%q, %+v", said, j)
	}
	if rest, _ := output(t, c, req.ID, j.Bytes-4); rest != "err\n" {
		t.Errorf("the rest is %q", rest)
	}
	begin(t, c, req)
	if began, err := os.ReadFile(filepath.Join(dir, "workspace", "began")); err != nil || string(began) != "began\n" {
		t.Errorf("it began %q, %v", began, err)
	}
	if _, err := c.EndJob(t.Context(), wire.JobEnd{ID: req.ID, Forget: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Job(t.Context(), req.ID); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("what was forgotten: %v", err)
	}
	for _, bad := range []wire.JobRequest{{ID: "../x", Argv: []string{"ls"}}, {ID: req.ID}, {ID: req.ID, Argv: []string{""}}} {
		if _, err := c.StartJob(t.Context(), bad); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// One that is too slow, or that nobody wants any more, ends with all that it started.
func TestACommandEnds(t *testing.T) {
	dir := home(t)
	c, stop := serve(t, dir)
	slow := command("sleep 600 & sleep 600")
	slow.Timeout = 50 * time.Millisecond
	begin(t, c, slow)
	if _, j := output(t, c, slow.ID, 0); j.Summary != "timed out after 50ms" || j.ExitCode != -1 {
		t.Errorf("%+v", j)
	}
	unwanted := command("echo $$ > pid; sleep 600")
	begin(t, c, unwanted)
	pid := filepath.Join(dir, "workspace", "pid")
	poll.Until(t, "the command to begin", func() bool { b, _ := os.ReadFile(pid); return len(b) > 0 })
	if j, err := c.EndJob(t.Context(), wire.JobEnd{ID: unwanted.ID, Why: "cancelled"}); err != nil || !j.Ended || j.Summary != "cancelled" {
		t.Errorf("%+v, %v", j, err)
	}
	missing := wire.JobRequest{ID: thole.NewID[thole.JobID](time.Now()), Argv: []string{"no-such-program"}}
	begin(t, c, missing)
	if said, j := output(t, c, missing.ID, 0); j.ExitCode != 127 || !strings.Contains(said, "no-such-program") {
		t.Errorf("%q, %+v", said, j)
	}

	// Stopped, executord says how far each came; killed, it says that it was.
	left, cut := command("echo before; sleep 600"), command("true")
	begin(t, c, left)
	poll.Until(t, "output", func() bool { j, err := c.Job(t.Context(), left.ID); return err == nil && j.Bytes > 0 })
	stop()
	state := filepath.Join(dir, "state", "jobs", string(cut.ID))
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "out"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ = serve(t, dir)
	for id, want := range map[thole.JobID]string{left.ID: "before\n", cut.ID: "half"} {
		if said, j := output(t, c, id, 0); said != want || j.ExitCode != -1 || j.Summary != "the executor was stopped while the command ran" {
			t.Errorf("%q, %+v", said, j)
		}
	}
	begin(t, c, left) // it does not begin again
	if _, j := output(t, c, left.ID, 0); !j.Ended {
		t.Errorf("%+v", j)
	}
}
