package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"time"

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
func newCgroup(name string) *cgroup {
	parent := ownCgroup()
	if parent == "" || !mayCgroup {
		return nil
	}
	path := filepath.Join(parent, "thole-"+name)
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

// ownCgroup is the directory of this process's version 2 group, "" when that
// hierarchy is not mounted.
func ownCgroup() string {
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
