// Package forks makes, in tests, a chain of forks: each link starts the next and
// ends, so that what a look at the machine lists is dead when a signal for it comes.
package forks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
)

// Chain is known by a variable in the environment of its links.
type Chain struct{ links string }

// New prepares a chain; whatever is left of it ends with the test.
func New(t testing.TB) *Chain {
	c := &Chain{links: filepath.Join(t.TempDir(), "links")}
	t.Cleanup(c.end)
	return c
}

// Command is a shell command that starts the chain in the background. Its pace
// spares machines whose init collects the dead slowly.
func (c *Chain) Command() string {
	return fmt.Sprintf(`LINKS=%s bash -c 'trap "" TERM; f() { printf . >>$LINKS; sleep 0.005; f & }; f' &`, c.links)
}

// Await returns when the chain runs.
func (c *Chain) Await(t testing.TB) {
	t.Helper()
	poll.Until(t, "some links of the chain", func() bool {
		st, err := os.Stat(c.links)
		return err == nil && st.Size() > 20
	})
}

// Gone fails the test when the chain lives.
func (c *Chain) Gone(t testing.TB) {
	t.Helper()
	if groups := c.alive(); len(groups) > 0 {
		t.Errorf("a chain of forks lives on in the process groups %v", groups)
	}
}

// AwaitEnd is Gone for those who send the signal and do not wait.
func (c *Chain) AwaitEnd(t testing.TB) {
	t.Helper()
	poll.Until(t, "the end of a chain of forks", func() bool { return len(c.alive()) == 0 })
}

// alive lists the process groups of living links. A look may miss a link, but hardly
// a hundred of them do.
func (c *Chain) alive() (groups []int) {
	for range 100 {
		if groups = c.groups(); len(groups) > 0 {
			break
		}
	}
	return groups
}

// groups lists the process groups with living links.
func (c *Chain) groups() (out []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ") // a zombie has none
		if !bytes.Contains(append([]byte{0}, env...), []byte("\x00LINKS="+c.links+"\x00")) {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		var state string
		var parent, group int
		_, rest, _ := strings.Cut(string(stat), ") ")
		if n, _ := fmt.Sscan(rest, &state, &parent, &group); n == 3 && state != "Z" {
			out = append(out, group)
		}
	}
	return out
}

func (c *Chain) end() {
	for quiet := 0; quiet < 3; quiet++ {
		for _, group := range c.groups() {
			if group != syscall.Getpgrp() {
				_ = syscall.Kill(-group, syscall.SIGKILL)
			}
			quiet = 0
		}
	}
}
