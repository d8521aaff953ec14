package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tholehq/thole/internal/procid"
)

func needGroups(t *testing.T) {
	t.Helper()
	c := newCgroup()
	if c == nil {
		t.Skip("no version 2 cgroup can be made here")
	}
	c.remove()
}

// Only what is certainly nobody's goes: ours, by a maker that is dead, and empty.
func TestSweepOfGroups(t *testing.T) {
	needGroups(t)
	sleeper := exec.Command("sleep", "300")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	dead := procid.Of(sleeper.Process.Pid)
	_ = sleeper.Process.Kill()
	_ = sleeper.Wait()
	other := dead
	other.PID, other.Start = os.Getpid(), dead.Start+"1" // a former owner of our pid
	group := func(name string) string {
		t.Helper()
		path := filepath.Join(OwnGroup(), name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(path) })
		return path
	}
	full := group(groupPrefix + maker(dead) + "-full")
	member := exec.Command("sleep", "300")
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = member.Process.Kill(); _ = member.Wait() })
	if err := os.WriteFile(filepath.Join(full, "cgroup.procs"), []byte(strconv.Itoa(member.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	nest := group(groupPrefix + maker(dead) + "-nest")
	cases := []struct {
		path string
		goes bool
	}{
		{group(groupPrefix + maker(dead) + "-a"), true},
		{group(groupPrefix + maker(other) + "-b"), true},
		{group(filepath.Join(filepath.Base(nest), groupPrefix+maker(dead)+"-c")), true},
		{nest, true},
		{full, false},
		{group(groupPrefix + self() + "-d"), false},
		{group(groupPrefix + "1." + strconv.Itoa(dead.PID) + "." + dead.Start + "-e"), false}, // pids of another namespace
		{group(groupPrefix + "nobody"), false},
		{group("thole-" + strconv.Itoa(dead.PID)), false},
	}
	SweepGroups(OwnGroup())
	for _, c := range cases {
		if _, err := os.Stat(c.path); os.IsNotExist(err) != c.goes {
			t.Errorf("%s: %v, goes: %v", filepath.Base(c.path), err, c.goes)
		}
	}
}

// What is prepared is used once, made again, and gone after the release.
func TestPrepare(t *testing.T) {
	needGroups(t)
	ours := func() []string {
		found, err := filepath.Glob(filepath.Join(OwnGroup(), groupPrefix+self()+"-*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	release := Prepare()
	made := ours()
	if len(made) != 1 {
		t.Fatalf("prepared %v", made)
	}
	p := shell(t, `sleep 300`)
	if p.tree.cgroup.path != made[0] {
		t.Errorf("runs in %s, prepared was %s", p.tree.cgroup.path, made[0])
	}
	p.Kill()
	if again := ours(); len(again) != 1 || again[0] == made[0] {
		t.Errorf("after the end there is %v, it ran in %v", again, made)
	}
	release()
	if left := ours(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
