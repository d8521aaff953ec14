package local

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// The agents of a server that is root are users of their own: a user namespace
// alone leaves them root of the host for every file they can reach. Each executor
// has one user of the range that begins at Config.UIDBase; two of one home never
// share one.
const (
	// DefaultUIDBase lies beyond what distributions, containers and systemd use.
	DefaultUIDBase = 1_900_000_000
	// UIDs is how many users the range has.
	UIDs = 1 << 15
)

// shared are the directories that the box shows writable: the agent's own.
var shared = []string{"workspace", "data", "state", "auth", "home", "tmp"}

// user is whom the agents of an executor run as, 0 for the server's own user. It
// owns the executor's files when it returns.
func (d *Driver) user(id thole.ExecutorID, boxed bool) (int, error) {
	if !boxed || os.Geteuid() != 0 {
		return 0, nil
	}
	uid, err := d.allot(id)
	if err != nil {
		return 0, err
	}
	for _, sub := range shared {
		if err := takeOver(d.dir(id), sub, uid); err != nil {
			return 0, thole.Errorf(thole.CodeUnavailable, "give %s of executor %s to user %d: %w", sub, id, uid, err).
				WithHint("if this machine maps only some users (/proc/self/uid_map), set executor.uid_base to the first of %d that it does", UIDs)
		}
	}
	return uid, nil
}

// allot chooses an executor's user and records it with the label.
func (d *Driver) allot(id thole.ExecutorID) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, err := d.label(id)
	if err != nil || l.UID != 0 {
		return l.UID, err
	}
	entries, err := os.ReadDir(d.cfg.Root)
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, e := range entries {
		if other, err := d.label(thole.ExecutorID(e.Name())); err == nil {
			taken[other.UID] = true
		}
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id))
	for i := range uint32(UIDs) {
		if uid := d.cfg.UIDBase + int((sum.Sum32()+i)%UIDs); !taken[uid] {
			l.UID = uid
			data, err := json.Marshal(l)
			if err != nil {
				return 0, err
			}
			return uid, atomicfile.Write(d.dir(id, "spec.json"), data, 0o600)
		}
	}
	return 0, fmt.Errorf("all %d users from %d on have an executor", UIDs, d.cfg.UIDBase)
}

// takeOver gives a directory and what is in it to a user, by descriptors and
// without following a link. The directory itself comes last: once it is the user's,
// everything in it is.
func takeOver(dir, name string, uid int) error {
	parent, err := beneath.Open(dir)
	if err != nil {
		return err
	}
	defer parent.Close()
	sub, err := parent.Sub(name)
	if os.IsNotExist(err) {
		if err = parent.Mkdir(name, 0o700); err == nil {
			sub, err = parent.Sub(name)
		}
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	owner, err := sub.Owner()
	if err != nil || owner == uid {
		return err
	}
	if err := sub.ChownAll(uid, uid); err != nil {
		return err
	}
	return sub.ChownSelf(uid, uid)
}

// credential is how a program of root is started as another user at once.
func credential(uid int) *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
}
