package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/poll"
	"golang.org/x/sys/unix"
)

// Chains of forks: each link starts the next and ends, so that what a look listed
// is dead when the signal comes. They write a dot for each link.
var chains = map[string]string{
	"below the root":     `f() { printf . >>"$LINKS"; f & }; f & exec sleep 300`,
	"the root ends":      `f() { printf . >>"$LINKS"; f & }; f & read end; exit 0`,
	"a group of its own": `(setsid bash -c 'f() { printf . >>"$LINKS"; f & }; f' &); exec sleep 300`,
	"no environment":     `env -i LINKS="$LINKS" bash -c 'f() { printf . >>"$LINKS"; f & }; f' & exec sleep 300`,
	"two":                `f() { printf . >>"$LINKS"; f & }; f & (setsid bash -c 'f() { printf . >>"$LINKS"; f & }; f' &); exec sleep 300`,
}

// startChain returns a chain that runs, without a cgroup, and the file of its dots.
// atLook is called in the middle of every look.
func startChain(t *testing.T, script, dir string, atLook func()) (*Process, string) {
	t.Helper()
	noCgroup(t)
	listed = atLook
	t.Cleanup(func() { listed = func() {} })
	links, link := filepath.Join(dir, "links"), filepath.Join(dir, "link")
	if err := os.WriteFile(link, []byte("#!/bin/sh\nprintf . >>\"$LINKS\"\nsetsid \"$LINK\" &\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := Start(Spec{Path: "/bin/bash", Args: []string{"-c", script}, Env: map[string]string{"PATH": "/usr/bin:/bin", "LINKS": links, "LINK": link}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endChain(links) // a killer that failed waits for it
		<-p.Done()
	})
	t.Cleanup(func() { p.Stdout.Close() })
	poll.Until(t, "some links", func() bool { return size(links) > 20 })
	return p, links
}

// TestKillIsSlowerThanAChain: ten links come and go between what a look lists and its
// first signal, as for a killer with a tenth of the processor, and the chain ends all
// the same, within a number of looks.
func TestKillIsSlowerThanAChain(t *testing.T) {
	for name, script := range chains {
		t.Run(name, func(t *testing.T) {
			looks, dir := 0, t.TempDir()
			p, links := startChain(t, script, dir, func() {
				looks++
				passed(t, filepath.Join(dir, "links"), 10, nil)
			})
			if name == "the root ends" {
				p.Stdin.Close()
				<-p.Done()
			} else {
				p.Kill()
			}
			if n := len(ofChain(links)); n > 0 || looks > 12 {
				t.Errorf("%d processes of the chain live after %d looks", n, looks)
			}
			noZombies(t, p)
		})
	}
}

const (
	killerEnv = "THOLE_TEST_KILLER" // the directory of a chain to kill
	manyLooks = 500
)

// TestKillAtATenthOfTheProcessor: a chain whose every link opens a session has no
// group that lasts; a link must be caught. The killer is a process of its own, which
// is stopped for nine links out of ten.
func TestKillAtATenthOfTheProcessor(t *testing.T) {
	if dir := os.Getenv(killerEnv); dir != "" {
		killAChain(t, dir)
		return
	}
	dir := t.TempDir()
	links := filepath.Join(dir, "links")
	killer := exec.Command(os.Args[0], "-test.run=^TestKillAtATenthOfTheProcessor$", "-test.v")
	killer.Env = append(os.Environ(), killerEnv+"="+dir)
	out, err := killer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endChain(links) })
	said := bufio.NewScanner(out)
	for said.Scan() && said.Text() != "killing" {
	}
	over := make(chan struct{})
	var report strings.Builder
	go func() {
		defer close(over)
		for said.Scan() {
			fmt.Fprintln(&report, said.Text())
		}
		_ = killer.Wait()
	}()
	throttle(t, killer.Process.Pid, links, over)
	<-over
	if !killer.ProcessState.Success() {
		t.Errorf("the killer ended with %v:\n%s", killer.ProcessState, report.String())
	}
	if n := len(ofChain(links)); n > 0 {
		t.Errorf("%d processes of the chain live on", n)
	}
}

func killAChain(t *testing.T, dir string) {
	looks := 0
	p, links := startChain(t, `setsid "$LINK" & exec sleep 300`, dir, func() { looks++ })
	fmt.Println("killing") //nolint:forbidigo // the test that started this one waits for it
	p.Kill()
	if n := len(ofChain(links)); n > 0 || looks > manyLooks {
		t.Errorf("%d processes of the chain live after %d looks", n, looks)
	}
	t.Logf("%d looks", looks)
	noZombies(t, p)
}

// passed waits for the next links of a chain. One that stands still, frozen or dead,
// holds nobody up, and neither does who is over.
func passed(t *testing.T, links string, n int64, over <-chan struct{}) {
	from := size(links)
	poll.Until(t, "the next links of the chain", func() bool {
		select {
		case <-over:
			return true
		default:
		}
		return size(links) >= from+n || !runs(links)
	})
}

// throttle lets a process run for one link of a chain out of ten, until it is over.
func throttle(t *testing.T, pid int, links string, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
		}
		_ = unix.Kill(pid, unix.SIGSTOP)
		passed(t, links, 9, over)
		_ = unix.Kill(pid, unix.SIGCONT)
		passed(t, links, 1, over)
	}
}

func size(file string) int64 {
	st, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return st.Size()
}

// ofChain lists the living processes of a chain.
func ofChain(links string) (out []*proc) {
	l := newLook()
	for _, pid := range l.pids {
		p := l.get(pid)
		env, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if p != nil && p.alive() && bytes.Contains(append([]byte{0}, env...), []byte("\x00LINKS="+links+"\x00")) {
			out = append(out, p)
		}
	}
	return out
}

// runs says whether any process of a chain can still do something.
func runs(links string) bool {
	for _, p := range ofChain(links) {
		if p.state != 'T' {
			return true
		}
	}
	return false
}

// endChain ends what a failed test leaves: its process groups, until none is seen.
func endChain(links string) {
	for quiet := 0; quiet < 3; quiet++ {
		for _, p := range ofChain(links) {
			if group, err := unix.Getpgid(p.pid); err == nil && group != unix.Getpgrp() {
				_ = unix.Kill(-group, unix.SIGKILL)
			}
			quiet = 0
		}
	}
}
