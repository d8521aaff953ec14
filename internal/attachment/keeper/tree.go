package keeper

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/strictjson"
)

const (
	// launcherFile in the directory of a server of thole's names the process that it was
	// started as, which leads a session of its own. It is written before that process
	// may do anything.
	launcherFile = "launcher"
	// endTime is how long killed processes may take to be gone.
	endTime = 5 * time.Second
)

func (k *Keeper) dir(a attachment.Attachment) string { return filepath.Join(k.cfg.Dir, string(a.ID)) }

// tree lists what runs of a server of thole's: the session it was started as, which
// holds launcher, server and helpers, and the server itself. Commands that a turn
// put into sessions of their own are the user's.
func (k *Keeper) tree(a attachment.Attachment) []procid.Identity {
	if a.Kind != attachment.Owned {
		return nil
	}
	var leader procid.Identity
	if b, err := os.ReadFile(filepath.Join(k.dir(a), launcherFile)); err == nil {
		_ = strictjson.Unmarshal(b, &leader)
	}
	if leader.Zero() {
		leader = a.Process // an older version started it, without a launcher
	}
	all := procid.Session(leader)
	if a.Process.Alive() == nil && !slices.Contains(all, a.Process) {
		all = append(all, a.Process)
	}
	return all
}

// end kills what runs of a server of thole's, and returns when nothing does.
func (k *Keeper) end(ctx context.Context, a attachment.Attachment) error {
	late := time.NewTimer(endTime)
	defer late.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		all := k.tree(a)
		if len(all) == 0 {
			return nil
		}
		for _, p := range all {
			if p.Alive() == nil {
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return thole.Errorf(thole.CodeUnavailable, "processes of a session do not end: %v", all)
		}
	}
}

// bury ends what is left of an attachment's server and retires it, in this order:
// a daemon that dies in between leaves a row by which its successor does it again.
func (k *Keeper) bury(ctx context.Context, a attachment.Attachment, why string) (attachment.Attachment, error) {
	if err := k.end(ctx, a); err != nil {
		return a, err
	}
	k.clear(a)
	return k.move(ctx, a.ID, attachment.Retired, why)
}

// clear removes the files of a server of thole's.
func (k *Keeper) clear(a attachment.Attachment) {
	if a.Kind != attachment.Owned {
		return
	}
	_ = os.RemoveAll(k.dir(a))
	sock := strings.TrimPrefix(a.Address, "unix://")
	if dir := filepath.Dir(sock); filepath.Dir(dir) == filepath.Clean(os.TempDir()) && strings.HasPrefix(filepath.Base(dir), "thole") {
		_ = os.Remove(sock)
		_ = os.Remove(dir)
	}
}

// terminate asks a server of thole's to finish. Only the server: its launcher would
// ask it a second time, and then it cuts off the turn that it is finishing.
func terminate(a attachment.Attachment) {
	if a.Kind == attachment.Owned && a.Process.Alive() == nil {
		_ = syscall.Kill(a.Process.PID, syscall.SIGTERM)
	}
}

// drain ends a server that a new one must replace: two cannot write one thread.
func (k *Keeper) drain(ctx context.Context, a attachment.Attachment) error {
	terminate(a)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(replaceTime)
	defer late.Stop()
	for a.Process.Alive() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return thole.Errorf(thole.CodeBusy, "the thread's server is still finishing a turn").WithHint("try again when it is done, or end process %d", a.Process.PID)
		}
	}
	return nil
}
