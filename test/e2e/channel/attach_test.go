package channel

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/client/appclient"
)

// A terminal on a server that is not ours, held by its address and process. The
// server dies, and the session with it.
func TestAttachToAnEndpoint(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	addr := "unix://" + d.path("s")
	server := exec.Command(d.codex, "app-server", "--listen", addr)
	server.Env, server.Dir = d.env(), d.path("work")
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { _ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL); _ = server.Wait() }
	t.Cleanup(kill)
	d.until("the server", func() bool {
		c, err := appclient.Dial(t.Context(), addr, appclient.Options{Name: "test"})
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	d.terminal(d.codex, "--remote", addr)
	d.shows("Scripted")
	d.say("sim: say hello from the model")
	d.shows("• hello from the model")
	thread := d.loaded(addr)
	var s session
	d.thole(&s, "codex", "attach", "--thread-id", thread, "--address", addr, "--server-pid", strconv.Itoa(server.Process.Pid), "--auto-delivery-policy", "trusted-all")
	if s.State != "live" {
		t.Fatalf("%+v", s)
	}
	d.job("cli", thread, "sim: say the result was read")
	d.shows("• the result was read")
	if b := d.fate(); b.CloseReason != "delivered" {
		t.Fatalf("%+v", b)
	}
	d.widen(addr, thread)
	d.thole(&s, "codex", "sessions", "inspect", s.ID)
	if !strings.Contains(s.Problem, "session_profile_mismatch") || s.Drift != "wider: network, write_access" {
		t.Errorf("%+v", s)
	}
	if out, err := d.try("doctor"); !strings.Contains(out, "by its durable queue") || !strings.Contains(out, "session_profile_mismatch") {
		t.Errorf("doctor, %v: %s", err, out)
	}
	var rows []struct {
		Event string
		Proof map[string]string
	}
	d.thole(&rows, "audit", "list", "--source-thread-id", thread)
	if last := rows[len(rows)-1]; last.Event != "session.drift" || last.Proof["drift"] != s.Drift || last.Proof["effective"] == "" {
		t.Errorf("%+v", last)
	}
	kill()
	d.until("the session to end", func() bool { return len(d.sessions()) == 0 })
}

// widen gives a session more than it had.
func (d *desk) widen(addr, thread string) {
	d.t.Helper()
	c, err := appclient.Dial(d.t.Context(), addr, appclient.Options{Name: "test", Experimental: true})
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	if err := c.Call(d.t.Context(), "thread/settings/update", map[string]any{
		"threadId": thread, "sandboxPolicy": map[string]any{"type": "workspaceWrite", "networkAccess": true},
	}, nil); err != nil {
		d.t.Fatal(err)
	}
}

// loaded is the only conversation of a server.
func (d *desk) loaded(addr string) string {
	d.t.Helper()
	c, err := appclient.Dial(d.t.Context(), addr, appclient.Options{Name: "test"})
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	var list struct {
		Data []string `json:"data"`
	}
	if err := c.Call(d.t.Context(), "thread/loaded/list", struct{}{}, &list); err != nil {
		d.t.Fatal(err)
	}
	for _, id := range list.Data {
		var r struct {
			Thread struct {
				Ephemeral bool `json:"ephemeral"`
			} `json:"thread"`
		}
		if err := c.Call(d.t.Context(), "thread/read", map[string]string{"threadId": id}, &r); err == nil && !r.Thread.Ephemeral {
			return id
		}
	}
	d.t.Fatal("no conversation: " + strings.Join(list.Data, ", "))
	return ""
}
