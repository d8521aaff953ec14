package turnstart_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	"github.com/tholehq/thole/internal/delivery/deliverytest"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bg = context.Background()
	me = thole.LocalActor
)

// codex is a real app-server on a home of its own, with the scripted model.
type codex struct {
	t    testing.TB
	bin  string
	sim  *modelsim.Sim
	home string
	sock string
	work string
	cmd  *exec.Cmd
	pid  int
}

func newCodex(t testing.TB) *codex {
	t.Helper()
	c := &codex{t: t, bin: lab.Codex(t), sim: modelsim.Start(t), home: filepath.Join(t.TempDir(), "codex"), work: t.TempDir()}
	dir, err := os.MkdirTemp("", "cx")
	if err != nil {
		t.Fatal(err)
	}
	c.sock = filepath.Join(dir, "s")
	if err := modelsim.CodexConfig(c.home, c.sim.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.kill(); os.RemoveAll(dir) })
	c.start()
	return c
}

func (c *codex) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.bin, args...)
	cmd.Env = []string{"HOME=" + filepath.Dir(c.home), "CODEX_HOME=" + c.home, "PATH=/usr/bin:/bin"}
	cmd.Dir = c.work
	cmd.SysProcAttr = lab.Leash()
	return cmd
}

func (c *codex) start() {
	c.t.Helper()
	_ = os.Remove(c.sock)
	c.cmd = c.command("app-server", "--listen", "unix://"+c.sock)
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.pid = c.cmd.Process.Pid
	poll.Until(c.t, "the server's socket", func() bool {
		cl, err := appclient.Dial(bg, "unix://"+c.sock, appclient.Options{Name: "wait"})
		if err == nil {
			cl.Close()
		}
		return err == nil
	})
}

func (c *codex) kill() {
	if c.cmd == nil {
		return
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	_ = c.cmd.Wait()
	c.cmd = nil
}

// user is another client of the server, such as a terminal.
type user struct {
	*appclient.Client
	t      testing.TB
	thread string

	mu     sync.Mutex
	ended  map[string]string
	change chan struct{}
}

// join makes a thread with one finished turn.
func (c *codex) join() *user {
	c.t.Helper()
	u := c.dial()
	var started struct {
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
	}
	u.must("thread/start", map[string]any{"cwd": c.work, "sandbox": "read-only", "approvalPolicy": "never"}, &started)
	u.thread = started.Thread.ID
	u.await(u.say("sim: say hello"), "completed")
	return u
}

func (c *codex) dial() *user {
	c.t.Helper()
	u := &user{t: c.t, ended: map[string]string{}, change: make(chan struct{})}
	cl, err := appclient.Dial(bg, "unix://"+c.sock, appclient.Options{Name: "user", Experimental: true, OnNotification: u.notified})
	if err != nil {
		c.t.Fatal(err)
	}
	u.Client = cl
	c.t.Cleanup(cl.Close)
	return u
}

// renew starts the server again, in a new epoch, and the user comes back to it.
func (r *rig) renew() {
	r.t.Helper()
	r.start()
	u := r.dial()
	u.thread = r.thread
	u.must("thread/resume", map[string]any{"excludeTurns": true}, nil)
	r.user = u
	id := procid.Of(r.pid)
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.a.Epoch++
	r.s.a.Process = id
	r.s.a.Address = "unix://" + r.sock
}

func (u *user) must(method string, params map[string]any, out any) {
	u.t.Helper()
	if u.thread != "" {
		params["threadId"] = u.thread
	}
	if err := u.Call(bg, method, params, out); err != nil {
		u.t.Fatalf("%s: %v", method, err)
	}
}

func (u *user) say(text string) string {
	u.t.Helper()
	var out struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	u.must("turn/start", map[string]any{"input": appclient.Text(text)}, &out)
	return out.Turn.ID
}

func (u *user) notified(n appclient.Notification) {
	if n.Method != "turn/completed" {
		return
	}
	var p struct {
		Turn struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"turn"`
	}
	if err := jsonUnmarshal(n.Params, &p); err != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended[p.Turn.ID] = p.Turn.Status
	close(u.change)
	u.change = make(chan struct{})
}

func (u *user) await(turn, status string) {
	u.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		u.mu.Lock()
		got, change := u.ended[turn], u.change
		u.mu.Unlock()
		if got == status {
			return
		}
		if got != "" {
			u.t.Fatalf("turn ended %s, want %s", got, status)
		}
		select {
		case <-change:
		case <-deadline:
			u.t.Fatalf("turn %s never ended", turn)
		}
	}
}

// sessions holds one attachment in memory.
type sessions struct {
	mu sync.Mutex
	a  attachment.Attachment
	c  *codex
}

func (s *sessions) Of(_ context.Context, _ thole.UserID, _ string, thread thole.ThreadID) (attachment.Attachment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if thread != s.a.Thread {
		return attachment.Attachment{}, thole.Errorf(thole.CodeNotFound, "none")
	}
	return s.a, nil
}

func (s *sessions) ByID(context.Context, thole.AttachmentID) (attachment.Attachment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.a, nil
}

func (s *sessions) Saw(_ context.Context, _ thole.AttachmentID, now attachment.PermissionSnapshot) (attachment.PermissionSnapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.a.Cap == nil {
		limit := s.a.Wish.Bound(now)
		s.a.Cap = &limit
	}
	s.a.Current = &now
	return *s.a.Cap, nil
}

func (s *sessions) SawTurn(_ context.Context, _ thole.AttachmentID, t *attachment.ActiveTurn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.a.Active = t
	return nil
}

func (s *sessions) Pin(_ context.Context, _ thole.AttachmentID, p *attachment.Pin) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.a.Pinned = p
	return nil
}

// Epoch and Provide are of deliveries that bring a server, which these do not.
func (s *sessions) Epoch(context.Context, thole.AttachmentID) (int64, error) { return 1, nil }

func (s *sessions) Provide(context.Context, thole.AttachmentID, int64, keeper.Open) (attachment.Attachment, error) {
	return attachment.Attachment{}, errors.New("no server is provided here")
}

func (s *sessions) Autopsy(ctx context.Context, a attachment.Attachment, o appclient.Options) (*appclient.Client, func(), error) {
	cmd := s.c.command("app-server")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		return nil, nil, err1
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	cl, err := appclient.Pipe(ctx, out, in, o)
	end := func() {
		_ = in.Close()
		if cl != nil {
			cl.Close()
		}
		_ = cmd.Wait()
	}
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		end()
		return nil, nil, err
	}
	return cl, end, nil
}

// rig is a server, a user on it, and deliveries into the user's thread.
type rig struct {
	*codex
	*user
	t    testing.TB
	s    *sessions
	db   *store.DB
	run  *deliverytest.Run
	halt func()

	accept time.Duration // the acceptance deadline, if not the shipped one
	plain  bool          // the channel is shown no queue

}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newCodex(t).rig(t, nil)
}

// rig makes a thread on the server and deliveries to it, through a proxy if there
// is one, which is armed when the barrier is durable.
func (c *codex) rig(t *testing.T, via *proxy) *rig {
	t.Helper()
	db := storetest.SQLite(t, func(cfg *sqldb.Config) {
		cfg.Hook = func(p sqldb.Point, step string) {
			if via != nil && p == sqldb.AfterCommit && step == "delivery.begin_accept" {
				via.arm()
			}
		}
	})
	return c.rigOn(t, c.join(), db, via)
}

// rigOn makes deliveries to the user's thread out of a store.
func (c *codex) rigOn(t *testing.T, u *user, db *store.DB, via *proxy) *rig {
	r := &rig{codex: c, user: u, t: t, db: db}
	address := "unix://" + c.sock
	if via != nil {
		address = via.addr()
	}
	r.s = &sessions{c: c, a: attachment.Attachment{
		ID: "att", User: thole.LocalUser, Home: c.home, Thread: thole.ThreadID(r.thread), Kind: attachment.Owned, Address: address,
		State: attachment.Live, Epoch: 1, Process: procid.Of(c.pid), Trust: attachment.TrustedAll,
	}}
	return r
}

func newStore(t *testing.T) *store.DB { return storetest.SQLite(t) }

// through lets the channel reach the server at another address.
func (r *rig) through(addr string) { r.s.a.Address = addr }

// deliver runs a driver, as a new daemon would.
func (r *rig) deliver() {
	l := deliverytest.Limits()
	if r.accept > 0 {
		l.AcceptTimeout = r.accept
	}
	ch := turnstart.New(r.s, nil)
	if r.plain {
		ch.Plain()
	}
	ch.ServerOf(func() int { return r.codex.pid })
	r.run = deliverytest.Start(r.t, r.db.Delivery(), l, map[thole.Target]channel.Channel{thole.TargetCLI: ch})
	r.halt = func() { r.run.Halt(); ch.Close() }
	r.t.Cleanup(r.halt)
}

func (r *rig) job(result string) { r.t.Helper(); r.jobAs(thole.NewID[thole.JobID](time.Now()), result) }

func (r *rig) jobAs(id thole.JobID, result string) {
	r.t.Helper()
	r.run.Job(id, thole.TargetCLI, delivery.Address{User: thole.LocalUser, Endpoint: r.home, Thread: thole.ThreadID(r.thread)}, result)
}

var settled = deliverytest.Settled

func (r *rig) until(ok func(delivery.BatchView) bool) delivery.BatchView {
	r.t.Helper()
	return r.run.Until(ok)
}

func (r *rig) story() string { return r.run.Story() }

// carrying counts the turns of the thread that hold a delivery.
func (r *rig) carrying() (n int) {
	r.t.Helper()
	var page struct {
		Data []struct {
			Item struct {
				Type     string `json:"type"`
				ClientID string `json:"clientId"`
			} `json:"item"`
		} `json:"data"`
	}
	r.must("thread/items/list", map[string]any{"limit": 100}, &page)
	for _, d := range page.Data {
		if d.Item.Type == "userMessage" && strings.HasPrefix(d.Item.ClientID, "thole-") {
			n++
		}
	}
	return n
}
