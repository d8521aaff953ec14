package tui

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// executord is killed while a turn runs under the real TUI: the turn is taken up
// again, the terminal shows its end, and the thread goes on.
func TestExecutordKilledUnderATurn(t *testing.T) {
	h, id, s := throughHome(t)
	s.say("sim: run timeout 100 tail -f /dev/null")
	s.wait("Yes, proceed")
	s.keys("y")
	s.wait("• Running timeout 100")
	killExecutord(t, h.Dir, id)
	s.wait("• You said: Your process was restarted") // the scripted model repeats what it reads
	s.say("sim: say and on it goes")
	s.wait("• and on it goes")
}

// killExecutord ends a thread's executord, and nothing else in its executor.
func killExecutord(t *testing.T, dir, thread string) {
	t.Helper()
	specs, err := filepath.Glob(filepath.Join(dir, "x", "*", "spec.json"))
	if err != nil {
		t.Fatal(err)
	}
	mark := []byte("no executor")
	for _, name := range specs {
		if spec, err := os.ReadFile(name); err == nil && bytes.Contains(spec, []byte(thread)) {
			mark = []byte("THOLE_EXECUTOR=" + filepath.Base(filepath.Dir(name)))
		}
	}
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, name := range names {
		env, err := os.ReadFile(name)
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(name), "exe"))
		if pid, bad := strconv.Atoi(strings.Split(name, "/")[2]); err == nil && bad == nil && bytes.Contains(env, mark) && filepath.Base(exe) == "thole" && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("there was no executord to kill")
	}
}
