package keeper_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/peercred"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/poll"
	"go.uber.org/goleak"
)

// envListen makes this binary a server that listens at a path until it is killed.
const envListen = "THOLE_TEST_LISTEN"

func TestMain(m *testing.M) {
	if path := os.Getenv(envListen); path != "" {
		_ = os.Remove(path)
		if _, err := net.Listen("unix", path); err != nil {
			panic(err)
		}
		select {}
	}
	goleak.VerifyTestMain(m)
}

var bg = context.Background()

// bench is a keeper whose servers are plain processes of the test.
type bench struct {
	*keeper.Keeper
	t             *testing.T
	store         attachment.Store
	tracked, held bool
	drifts        []string
	refuse        error // what the ledger says to a drift
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, store: storetest.SQLite(t).Attachments()}
	b.start()
	return b
}

func (b *bench) start() {
	b.Keeper = keeper.New(keeper.Config{
		Store: b.store, Dir: b.t.TempDir(),
		Work: func(context.Context, thole.UserID, string, thole.ThreadID) (bool, bool, error) {
			return b.tracked, b.held, nil
		},
		Drifted: func(_ context.Context, a attachment.Attachment, was, now string) error {
			b.drifts = append(b.drifts, was+" -> "+now)
			return b.refuse
		},
	})
	b.t.Cleanup(b.Close)
}

// process runs until kill, which returns when it is gone.
func process(t *testing.T) (pid int, kill func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(kill)
	return cmd.Process.Pid, kill
}

// served is a server that is not ours.
type served struct {
	pid  int
	path string
}

func serve(t *testing.T) (s served, kill func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return serveAt(t, filepath.Join(dir, "s"))
}

// serveAt begins to listen at a path, whatever listened there before.
func serveAt(t *testing.T, path string) (s served, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{envListen + "=" + path}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(kill)
	poll.Until(t, "the server's socket", func() bool {
		c, err := net.Dial("unix", path)
		if err != nil {
			return false
		}
		defer c.Close()
		cred, err := peercred.Of(c)
		return err == nil && cred.PID == cmd.Process.Pid
	})
	return served{cmd.Process.Pid, path}, kill
}

var thread = thole.NewID[thole.ThreadID](time.Now())

func (b *bench) open(server served, client int, edit func(*keeper.Open)) (attachment.Attachment, error) {
	o := keeper.Open{
		User: thole.LocalUser, Home: "/codex", Thread: thread, Kind: attachment.Endpoint, Address: "unix://" + server.path, Server: server.pid, Client: client, Dir: "/",
	}
	if edit != nil {
		edit(&o)
	}
	return b.Open(bg, o)
}

func (b *bench) must(a attachment.Attachment, err error) attachment.Attachment {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bench) state(id thole.AttachmentID, want attachment.State) {
	b.t.Helper()
	if err := b.Sweep(bg); err != nil {
		b.t.Fatal(err)
	}
	if a := b.must(b.ByID(bg, id)); a.State != want {
		b.t.Fatalf("%s (%s), want %s", a.State, a.Note, want)
	}
}

func TestLifeOfASession(t *testing.T) {
	b := newBench(t)
	server, killServer := serve(t)
	client, killClient := process(t)
	a := b.must(b.open(server, client, nil))
	b.state(a.ID, attachment.Live)
	if b.Staying(bg) == "" {
		t.Error("the daemon may leave an open session")
	}

	// A daemon that comes back finds the same process in the same epoch.
	b.Close()
	b.start()
	if err := b.Resume(bg); err != nil {
		t.Fatal(err)
	}
	if got := b.must(b.Of(bg, thole.LocalUser, "/codex", thread)); got.Epoch != a.Epoch || got.Process != a.Process || got.State != attachment.Live {
		t.Fatalf("%+v", got)
	}

	other, _ := process(t)
	if _, err := b.open(server, other, nil); thole.CodeOf(err) != thole.CodeBusy {
		t.Fatalf("a second terminal on the thread: %v", err)
	}
	b.tracked = true
	killClient()
	b.state(a.ID, attachment.Detached)
	b.tracked, b.held = false, true
	b.state(a.ID, attachment.Parked)
	if _, err := b.open(server, other, nil); thole.CodeOf(err) != thole.CodeHeld {
		t.Fatalf("a thread with a held result was opened: %v", err)
	}
	killServer()
	b.state(a.ID, attachment.Parked)
	b.held = false
	b.state(a.ID, attachment.Retired)
	if b.Staying(bg) != "" {
		t.Error("a retired session keeps the daemon")
	}

	again, _ := serveAt(t, server.path)
	next := b.must(b.open(again, other, nil))
	if next.Epoch != a.Epoch+1 || next.ID == a.ID {
		t.Fatalf("epoch %d after %d", next.Epoch, a.Epoch)
	}
}

func TestServerGoneIsStaleWhileItMatters(t *testing.T) {
	b := newBench(t)
	server, kill := serve(t)
	a := b.must(b.open(server, 0, nil))
	b.tracked = true
	kill()
	b.state(a.ID, attachment.Stale)
	b.tracked = false
	b.state(a.ID, attachment.Retired)
}

func TestProfileMismatch(t *testing.T) {
	b := newBench(t)
	server, _ := serve(t)
	client, kill := process(t)
	a := b.must(b.open(server, client, nil))
	kill()
	b.tracked = true
	again, _ := process(t)
	wider := func(o *keeper.Open) { o.Wish.Write = attachment.Yes }
	if _, err := b.open(server, again, wider); thole.CodeOf(err) != thole.CodeConflict {
		t.Fatalf("another profile while a delivery is under way: %v", err)
	}
	b.tracked = false
	next := b.must(b.open(server, again, wider))
	if next.ID == a.ID || next.Epoch != 2 {
		t.Fatalf("%+v", next)
	}
	if old := b.must(b.ByID(bg, a.ID)); old.State != attachment.Retired {
		t.Fatalf("the old one is %s", old.State)
	}
}

// The cap is what was seen first, for ever; each change is a revision.
func TestCapIsTakenOnce(t *testing.T) {
	b := newBench(t)
	server, _ := serve(t)
	a := b.must(b.open(server, 0, nil))
	tight, wide := attachment.PermissionSnapshot{Policy: "never", Sandbox: "readOnly"}, attachment.PermissionSnapshot{Policy: "never", Sandbox: "workspaceWrite", Write: true}
	for _, now := range []attachment.PermissionSnapshot{tight, tight, wide, wide, tight} {
		limit, err := b.Saw(bg, a.ID, now)
		if err != nil || !limit.Equal(tight) {
			t.Fatalf("%+v, %v", limit, err)
		}
	}
	if got := b.must(b.ByID(bg, a.ID)); got.Revision != 3 {
		t.Fatalf("revision %d", got.Revision)
	}
	if want := []string{" -> wider: write_access", "wider: write_access -> "}; !slices.Equal(b.drifts, want) {
		t.Fatalf("drifts %q", b.drifts)
	}
	// A drift that could not be reported is reported again.
	b.refuse = errors.New("no ledger")
	if _, err := b.Saw(bg, a.ID, wide); err == nil {
		t.Fatal("a drift was kept untold")
	}
	b.refuse = nil
	if _, err := b.Saw(bg, a.ID, wide); err != nil || len(b.drifts) != 4 {
		t.Fatal(err, b.drifts)
	}
}

// What a delivery pinned and could not put back is known to the next session.
func TestPinOutlivesItsServer(t *testing.T) {
	b := newBench(t)
	server, kill := serve(t)
	a := b.must(b.open(server, 0, nil))
	pin := &attachment.Pin{Epoch: a.Epoch, Before: attachment.Settings{ApprovalPolicy: []byte(`"on-request"`), Sandbox: []byte(`{"type":"readOnly"}`)}}
	if err := b.Pin(bg, a.ID, pin); err != nil {
		t.Fatal(err)
	}
	kill()
	b.state(a.ID, attachment.Retired)
	other, _ := serve(t)
	next := b.must(b.open(other, 0, nil))
	if next.Pinned == nil || next.Pinned.Epoch >= next.Epoch || string(next.Pinned.Before.ApprovalPolicy) != `"on-request"` {
		t.Fatalf("%+v", next)
	}
	if err := b.Pin(bg, next.ID, nil); err != nil {
		t.Fatal(err)
	}
	if got := b.must(b.ByID(bg, next.ID)); got.Pinned != nil {
		t.Fatalf("%+v", got.Pinned)
	}
}

func TestOpenRefuses(t *testing.T) {
	b := newBench(t)
	server, _ := serve(t)
	for name, edit := range map[string]func(*keeper.Open){
		"thread": func(o *keeper.Open) { o.Thread = "x" }, "home": func(o *keeper.Open) { o.Home = "" },
		"trust": func(o *keeper.Open) { o.Trust = "all" }, "wish": func(o *keeper.Open) { o.Wish.Network = "perhaps" },
		"no address": func(o *keeper.Open) { o.Address = "" }, "TCP without a process": func(o *keeper.Open) { o.Address, o.Server = "ws://127.0.0.1:1", 0 },
	} {
		if _, err := b.open(server, 0, edit); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
