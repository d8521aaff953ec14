package process

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/procid"
	"golang.org/x/sys/unix"
)

// cgroup is a version 2 control group that holds one tree, used only for its
// atomic kill. Containers usually may not make one; then there is none.
type cgroup struct {
	path string
	dir  *os.File
}

// mayCgroup is false only in tests of the other way.
var mayCgroup = true

// newCgroup makes a group below our own, or returns nil.
func newCgroup() *cgroup {
	parent := cmp.Or(confined.dir, OwnGroup())
	if parent == "" || !mayCgroup {
		return nil
	}
	path := filepath.Join(parent, groupPrefix+self()+"-"+rand.Text())
	if os.Mkdir(path, 0o755) != nil {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		os.Remove(path)
		return nil
	}
	if unix.Access(filepath.Join(path, "cgroup.kill"), unix.W_OK) != nil { // before Linux 5.14
		dir.Close()
		os.Remove(path)
		return nil
	}
	return &cgroup{path: path, dir: dir}
}

// spare is a group made beforehand, while a caller asked for it with Prepare.
var spare struct {
	sync.Mutex
	keep  bool
	group *cgroup
}

// Prepare makes now, and again whenever a process ended, what the next Start
// would have to make. It is for a caller that is waited for while it starts something;
// release undoes it.
func Prepare() (release func()) {
	spare.Lock()
	spare.keep = true
	spare.Unlock()
	refill()
	return func() {
		spare.Lock()
		defer spare.Unlock()
		if spare.keep = false; spare.group != nil {
			spare.group.remove()
			spare.group = nil
		}
	}
}

func refill() {
	spare.Lock()
	defer spare.Unlock()
	if spare.keep && spare.group == nil {
		spare.group = newCgroup()
	}
}

func takeCgroup() *cgroup {
	spare.Lock()
	c := spare.group
	spare.group = nil
	spare.Unlock()
	if c == nil || !mayCgroup {
		return newCgroup()
	}
	return c
}

// groupPrefix begins the names of our groups; the maker follows, by which it can
// be known whether any process will remove them.
const groupPrefix = "thole-by-"

// self is this process as a maker.
var self = sync.OnceValue(func() string { return maker(procid.Self()) })

// maker names a process for good. Pids belong to their namespace, and a process that sees
// the group may be in another.
func maker(id procid.Identity) string {
	space, _ := os.Readlink("/proc/self/ns/pid")
	return strings.Trim(space, "pid:[]") + "." + strconv.Itoa(id.PID) + "." + id.Start
}

// SweepGroups removes what killed processes left of their groups below a directory
// of the control group file system: groups of thole's whose maker is certainly dead.
// The kernel refuses to remove one that is not empty.
func SweepGroups(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		by, ours := strings.CutPrefix(e.Name(), groupPrefix)
		by, _, whole := strings.Cut(by, "-")
		parts := strings.Split(by, ".")
		if !ours || !whole || len(parts) != 3 {
			continue
		}
		pid, err := strconv.Atoi(parts[1])
		alive := procid.Of(pid)
		alive.Start = parts[2]
		if err != nil || maker(alive) != by || alive.Alive() == nil {
			continue // of another namespace, or its maker lives
		}
		SweepGroups(filepath.Join(dir, e.Name())) // what a thole in it left
		_ = os.Remove(filepath.Join(dir, e.Name()))
	}
}

// OwnGroup is the directory of this process's version 2 group, "" when that
// hierarchy is not mounted.
func OwnGroup() string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range bytes.SplitSeq(own, []byte{'\n'}) {
		rel, ok := bytes.CutPrefix(line, []byte("0::"))
		if !ok {
			continue
		}
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			var st unix.Statfs_t
			if unix.Statfs(mount, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
				return filepath.Join(mount, string(rel))
			}
		}
	}
	return ""
}

// holds reports whether a process, dead or alive, is in the group or below it.
func (c *cgroup) holds(pid int) bool {
	if c == nil {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	return err == nil && bytes.Contains(text, []byte("/"+filepath.Base(c.path))) // the name is random
}

func (c *cgroup) kill() {
	_ = os.WriteFile(filepath.Join(c.path, "cgroup.kill"), []byte("1"), 0)
}

// remove deletes the group; its last members may still be on their way out.
func (c *cgroup) remove() {
	c.dir.Close()
	for range 50 {
		err := os.Remove(c.path)
		if err == nil || !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(killPause)
	}
}
