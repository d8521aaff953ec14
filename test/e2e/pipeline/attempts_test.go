package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// The program is killed more often than a turn has attempts, each time before the
// turn's executor was reached. The turn has all its attempts left: two starts that
// fail after that do not end it.
func TestKilledBeforeTheExecutorIsReached(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// Where the user that agents of root run as may look and write; /tmp is its own.
	dir, err := os.MkdirTemp("/var/tmp", "bwrap")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	starts, gate := filepath.Join(dir, "starts"), filepath.Join(dir, "gate")
	// A bubblewrap that never gets to the executor, then fails twice, then works.
	script := `#!/bin/sh
case "$*" in
*" executor serve "*)
	echo >> ` + starts + `
	left=$(cat ` + gate + ` 2>/dev/null)
	[ -n "$left" ] || exec sleep 100000
	if [ "$left" -gt 0 ]; then echo $((left-1)) > ` + gate + `; exit 1; fi
esac
exec ` + lab.Bwrap(t) + ` "$@"
`
	if err := errors.Join(os.Chmod(dir, 0o777), os.WriteFile(filepath.Join(dir, "bwrap"), []byte(script), 0o700), os.Chmod(filepath.Join(dir, "bwrap"), 0o755)); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "PATH="+dir+":/usr/local/bin:/usr/bin:/bin")
	begun := func() int {
		data, _ := os.ReadFile(starts)
		return strings.Count(string(data), "\n")
	}
	r.begin(t)
	s := r.session(t, "test")
	id := s.start("sim: say done", "")
	for n := range queue.MaxAttempts + 2 {
		poll.Until(t, "start "+strconv.Itoa(n+1), func() bool { return begun() > n })
		r.murder(t)
		if n == queue.MaxAttempts+1 {
			if err := errors.Join(os.WriteFile(gate, []byte("2\n"), 0o600), os.Chmod(gate, 0o666)); err != nil {
				t.Fatal(err)
			}
		}
		r.begin(t)
	}
	if s.settle(id, "completed"); !strings.Contains(s.said(id), "done") {
		t.Errorf("said %q", s.said(id))
	}
	if got, want := begun(), queue.MaxAttempts+2+3; got != want {
		t.Errorf("%d starts, not %d", got, want)
	}
}
