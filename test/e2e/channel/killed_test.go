package channel

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/cli"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/system"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// mortal makes this test binary the thole program. Its value is a directory: every
// durable step of a daemon, and its start, is noted there in "trace", and the daemon that reaches
// the one named in "kill" removes that file and dies by SIGKILL.
const mortal = "THOLE_TEST_MORTAL"

func asThole(dir string, args []string) int {
	if len(args) < 4 || args[0] != "daemon" || args[1] != "run" {
		return cli.Main(args, os.Stdin, os.Stdout, os.Stderr)
	}
	hook := fatal(dir)
	hook("start", "daemon")
	cfg, err := config.Load(args[3], os.Getenv, nil)
	if err == nil {
		_, err = system.Run(context.Background(), system.Options{Config: cfg, Role: "daemon", Idle: time.Minute, Ready: daemonclient.Report, Hook: hook})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func fatal(dir string) sqldb.Hook {
	var mu sync.Mutex
	seen := map[string]int{}
	return func(p sqldb.Point, step string) {
		mu.Lock()
		defer mu.Unlock()
		at := string(p) + " " + step
		seen[at]++
		at += " " + strconv.Itoa(seen[at])
		f, err := os.OpenFile(filepath.Join(dir, "trace"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = f.WriteString(at + "\n")
			_ = f.Close()
		}
		kill := filepath.Join(dir, "kill")
		if b, err := os.ReadFile(kill); err == nil && string(b) == at {
			_ = os.Remove(kill)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until the signal arrives
		}
	}
}

// host is a real app-server whose threads outlive the daemons that are killed.
type host struct {
	home string
	addr string
	pid  int
	env  []string
}

func newHost(t *testing.T) *host {
	dir, err := os.MkdirTemp("", "kh")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{home: filepath.Join(dir, "codex"), addr: "unix://" + filepath.Join(dir, "s")}
	h.env = []string{"HOME=" + dir, "CODEX_HOME=" + h.home, "PATH=/usr/bin:/bin", "TMPDIR=" + dir, "THOLE_DELIVERY_WAIT_WINDOW=0s"}
	if err := modelsim.CodexConfig(h.home, modelsim.Start(t).URL()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(lab.Codex(t), "app-server", "--listen", h.addr)
	cmd.Env, cmd.Dir = h.env, dir
	cmd.SysProcAttr = lab.Leash()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.pid = cmd.Process.Pid
	t.Cleanup(func() { _ = syscall.Kill(-h.pid, syscall.SIGKILL); _ = cmd.Wait(); os.RemoveAll(dir) })
	return h
}

// thread makes a conversation with one finished turn.
func (h *host) thread(t *testing.T) (*appclient.Client, string) {
	t.Helper()
	ended := make(chan struct{}, 1)
	o := appclient.Options{Name: "user", Experimental: true, OnNotification: func(n appclient.Notification) {
		if n.Method == "turn/completed" {
			select {
			case ended <- struct{}{}:
			default:
			}
		}
	}}
	var c *appclient.Client
	poll.Until(t, "the server's socket", func() (ok bool) {
		var err error
		c, err = appclient.Dial(t.Context(), h.addr, o)
		return err == nil
	})
	var out struct {
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
	}
	err := c.Call(t.Context(), "thread/start", map[string]any{"cwd": "/", "sandbox": "read-only", "approvalPolicy": "never"}, &out)
	if err == nil {
		err = c.Call(t.Context(), "turn/start", map[string]any{"threadId": out.Thread.ID, "input": appclient.Text("sim: say hello")}, new(json.RawMessage))
	}
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	return c, out.Thread.ID
}

// deliver takes one result through the commands of a fresh home, whose daemon dies
// at a place, and returns the durable steps that all its daemons passed.
func (h *host) deliver(t *testing.T, kill string) []string {
	dir, err := os.MkdirTemp("", "kd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if kill != "" {
		if err := os.WriteFile(filepath.Join(dir, "kill"), []byte(kill), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	thole := func(into any, args ...string) {
		t.Helper()
		cmd := exec.Command(os.Args[0], append(args, "--json")...)
		cmd.Env = append(slices.Clone(h.env), mortal+"="+dir, "THOLE_HOME="+filepath.Join(dir, "h"))
		out, err := cmd.Output()
		if err == nil && into != nil {
			err = json.Unmarshal(out, into)
		}
		if err != nil {
			log, _ := os.ReadFile(filepath.Join(dir, "h", "daemon.log"))
			t.Fatalf("thole %v: %v: %s\n%s", args, err, out, log)
		}
	}
	defer func() { thole(nil, "daemon", "stop") }()
	user, thread := h.thread(t)
	defer user.Close()
	thole(nil, "codex", "attach", "--thread-id", thread, "--address", h.addr, "--server-pid", strconv.Itoa(h.pid), "--auto-delivery-policy", "trusted-all")
	var j struct {
		JobID string `json:"job_id"`
	}
	thole(&j, "job", "submit", "--target", "cli", "--thread-id", thread, "--summary", "outside work")
	thole(nil, "job", "complete", "--job-id", j.JobID, "--summary", "sim: wait 100ms ;; say got it")
	var b []batch
	poll.Until(t, "the end of the batch", func() bool {
		thole(&b, "batch", "list")
		if len(b) == 1 && b[0].HeldFor != "" {
			var story json.RawMessage
			thole(&story, "audit", "list", "--job-id", j.JobID)
			t.Fatalf("the result is %+v\n%s", b, story)
		}
		return len(b) == 1 && b[0].CloseReason != ""
	})
	if b[0].CloseReason != "delivered" || b[0].Attempts != 1 {
		t.Errorf("%+v", b[0])
	}
	thole(nil, "check")
	var page struct {
		Data []struct {
			Item struct {
				Type     string `json:"type"`
				ClientID string `json:"clientId"`
			} `json:"item"`
		} `json:"data"`
	}
	if err := user.Call(t.Context(), "thread/items/list", map[string]any{"threadId": thread, "limit": 100}, &page); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range page.Data {
		if d.Item.Type == "userMessage" && strings.HasPrefix(d.Item.ClientID, "thole-") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the thread has the result %d times", n)
	}
	if _, err := os.Stat(filepath.Join(dir, "kill")); err == nil {
		t.Log("this time the daemon did not pass there")
	}
	trace, err := os.ReadFile(filepath.Join(dir, "trace"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(trace)), "\n")
}

// The daemon is killed before and after each durable step, from the attachment of a
// real Codex thread to the end of the delivered turn; the commands and the next
// daemon carry on, and the result is one turn.
func TestDaemonKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	trace := h.deliver(t, "")
	for _, at := range trace {
		t.Run(strings.ReplaceAll(at, " ", "_"), func(t *testing.T) {
			t.Parallel() // each has a home and a thread of its own
			h.deliver(t, at)
		})
	}
	for _, step := range []string{"daemon", "attachment.insert", "delivery.submit_job", "delivery.finish_job", "delivery.begin_accept", "delivery.accept", "delivery.observe"} {
		if !slices.ContainsFunc(trace, func(at string) bool { return strings.Contains(at, " "+step+" ") }) {
			t.Errorf("%s is no durable step any more: %v", step, trace)
		}
	}
}
