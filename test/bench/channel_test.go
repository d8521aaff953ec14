//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnstart"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// listeningCodex is a real app-server on the scripted model.
func listeningCodex(t *testing.T) (home, address string, pid int) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cb")
	if err != nil {
		t.Fatal(err)
	}
	home, address = filepath.Join(dir, "codex"), "unix://"+filepath.Join(dir, "s")
	if err := modelsim.CodexConfig(home, modelsim.Start(t).URL()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(lab.Codex(t), "app-server", "--listen", address)
	cmd.Env, cmd.Dir = []string{"HOME=" + dir, "CODEX_HOME=" + home, "PATH=/usr/bin:/bin"}, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait(); os.RemoveAll(dir) })
	return home, address, cmd.Process.Pid
}

// terminal is a user's client, which sees turns start and end.
type terminal struct {
	*appclient.Client
	t            *testing.T
	thread       string
	began, ended chan time.Time
}

func newTerminal(t *testing.T, address, dir string) *terminal {
	t.Helper()
	u := &terminal{t: t, began: make(chan time.Time, 16), ended: make(chan time.Time, 16)}
	o := appclient.Options{Name: "bench", Experimental: true, OnNotification: func(n appclient.Notification) {
		switch n.Method {
		case "turn/started":
			u.began <- time.Now()
		case "turn/completed":
			u.ended <- time.Now()
		}
	}}
	for deadline := time.Now().Add(30 * time.Second); u.Client == nil; {
		c, err := appclient.Dial(t.Context(), address, o)
		if err == nil {
			u.Client = c
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Cleanup(u.Close)
	var out struct {
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
	}
	u.call("thread/start", map[string]any{"cwd": dir, "sandbox": "read-only", "approvalPolicy": "never"}, &out)
	u.thread = out.Thread.ID
	u.add("sim: say hello")
	u.turn()
	return u
}

func (u *terminal) call(method string, p map[string]any, out any) {
	u.t.Helper()
	if u.thread != "" {
		p["threadId"] = u.thread
	}
	if err := u.Call(u.t.Context(), method, p, out); err != nil {
		u.t.Fatal(method, err)
	}
}

func (u *terminal) add(text string) {
	u.t.Helper()
	u.call("turn/start", map[string]any{"input": appclient.Text(text)}, new(json.RawMessage))
}

// turn waits for a whole turn and says when it began.
func (u *terminal) turn() time.Time {
	at := <-u.began
	<-u.ended
	return at
}

// TestDeliveryIntoCodex: from job complete to the started turn in a real thread,
// next to a client that does nothing but start a turn.
func TestDeliveryIntoCodex(t *testing.T) {
	home, address, pid := listeningCodex(t)
	u := newTerminal(t, address, t.TempDir())
	db, err := store.Open(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "l.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	held := keeper.New(keeper.Config{Store: db.Attachments(), Dir: t.TempDir(), Work: func(context.Context, thole.UserID, string, thole.ThreadID) (bool, bool, error) {
		return false, false, nil
	}})
	defer held.Close()
	if _, err := held.Open(t.Context(), keeper.Open{
		User: thole.LocalUser, Home: home, Thread: thole.ThreadID(u.thread), Kind: attachment.Endpoint, Address: address, Server: pid, Dir: "/", Trust: attachment.TrustedAll,
	}); err != nil {
		t.Fatal(err)
	}
	l := delivery.DefaultLimits()
	l.WaitWindow, l.MinInterval = 0, 0
	var d *driver.Driver
	m := delivery.New(delivery.Config{Store: db.Delivery(), Limits: l, Wake: func(c *delivery.Candidate) { d.Wake(c) }})
	ch := turnstart.New(held, nil)
	defer ch.Close()
	d = driver.New(driver.Config{Machine: m, Channels: map[thole.Target]channel.Channel{thole.TargetCLI: ch}, Sole: true, Holder: "b"})
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); _ = d.Run(ctx) }()
	defer func() { cancel(); <-over }()
	n := 2
	if Long() {
		n = 20
	}
	ours := func() float64 {
		took := []float64{}
		for range n {
			id := thole.NewID[thole.JobID](time.Now())
			a := delivery.Address{User: thole.LocalUser, Endpoint: home, Thread: thole.ThreadID(u.thread)}
			if _, _, err := m.Submit(ctx, thole.LocalActor, delivery.Submit{ID: id, Owner: thole.DefaultOwner, Address: a, Target: thole.TargetCLI}); err != nil {
				t.Fatal(err)
			}
			for d.Busy() {
				time.Sleep(time.Millisecond)
			}
			start := time.Now()
			if _, err := m.Finish(ctx, thole.LocalActor, delivery.Finish{Job: id, State: thole.JobReady, Request: "r", Inline: "sim: say got it"}); err != nil {
				t.Fatal(err)
			}
			took = append(took, float64(u.turn().Sub(start).Microseconds())/1e3)
		}
		return middle(took)
	}
	theirs := func() float64 {
		took := []float64{}
		for range n {
			start := time.Now()
			u.add("sim: say got it")
			took = append(took, float64(u.turn().Sub(start).Microseconds())/1e3)
		}
		return middle(took)
	}
	Case{
		Name: "Completion to a turn in real Codex", Unit: "ms", Peer: "a bare client's turn/start on the same server", Promise: 1.3, Loose: 20,
		Ours: ours, Theirs: theirs,
		Note: "`job complete` with an inline payload and no wait window until another client sees the turn start; ours holds two durable commits and the probe, whose dearest read asks for the session's permissions.",
	}.Run(t)
}
