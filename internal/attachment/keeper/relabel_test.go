package keeper_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// An older version noted the launcher as the server. Its session goes on in the
// same epoch, with the process on its socket.
func TestSessionOfAnOlderVersionGoesOn(t *testing.T) {
	dir, err := os.MkdirTemp("", "rl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := storetest.SQLite(t).Attachments()
	k := starter(t, s, dir)
	home, id := filepath.Join(dir, "codex"), thole.NewID[thole.AttachmentID](time.Now())
	own := filepath.Join(dir, "sessions", string(id))
	for _, d := range []string{home, own} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	address := "unix://" + filepath.Join(own, "s")
	cmd := exec.Command(lab.CodexLauncher(t), "app-server", "--listen", address)
	cmd.Env = []string{"HOME=" + dir, "CODEX_HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	now := time.Now().UTC().Truncate(time.Millisecond)
	old := attachment.Attachment{
		ID: id, User: thole.LocalUser, Home: home, Kind: attachment.Owned, Address: address, State: attachment.Pending, Epoch: 3,
		Process: procid.Of(cmd.Process.Pid), Client: procid.Self(), Trust: attachment.StrictSafe, Created: now, Updated: now, Version: 1,
	}
	if err := s.InsertAttachment(bg, &old); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the server's socket", func() bool { _, err := os.Stat(filepath.Join(own, "s")); return err == nil })
	if err := k.Resume(bg); err != nil {
		t.Fatal(err)
	}
	a, err := k.ByID(bg, id)
	if err != nil || a.State != attachment.Pending || a.Epoch != 3 || a.Process == old.Process || keeper.Serves(&a, a.Process.PID) != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := k.Leave(bg, thole.LocalUser, id); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	swept(t, k, home)
	<-done
}
