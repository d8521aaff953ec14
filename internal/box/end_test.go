//go:build linux

package box_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// sleeping lists the processes that sleep a number of seconds which nobody else does.
func sleeping(t testing.TB, seconds string) int {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	n := 0
	for _, f := range files {
		if line, _ := os.ReadFile(f); bytes.Contains(line, []byte("sleep\x00"+seconds+"\x00")) {
			n++
		}
	}
	return n
}

// stubborn starts three programs that do not want to end.
func stubborn(seconds string) string {
	return fmt.Sprintf(`trap '' TERM HUP INT; sleep %[1]s & setsid sleep %[1]s & (setsid sh -c 'trap "" TERM; sleep %[1]s; :' &) ; echo up; sleep %[1]s`, seconds)
}

func unique(n int) string { return strconv.Itoa(700_000 + 10*(os.Getpid()%9999) + n) }

func TestNothingOutlivesTheBox(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := start(t)
		seconds := unique(1)
		r, w, _ := os.Pipe()
		defer r.Close()
		child, err := b.Spawn(box.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", stubborn(seconds)}, Env: []string{"PATH=/usr/bin:/bin"}, Files: [3]*os.File{w, w, w}})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		poll.Until(t, "four that sleep", func() bool { return sleeping(t, seconds) == 4 })
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if n := sleeping(t, seconds); n != 0 {
			t.Errorf("%d outlived the box", n)
		}
		if _, err := child.Wait(); !errors.Is(err, box.ErrGone) {
			t.Errorf("how it ended: %v", err)
		}
		if _, err := b.Spawn(box.Command{Path: "/bin/true", Argv: []string{"true"}, Files: [3]*os.File{os.Stdin, os.Stdin, os.Stdin}}); !errors.Is(err, box.ErrGone) {
			t.Errorf("started after the end: %v", err)
		}
	})
}

// own is an owner that is killed.
func own() {
	b, err := box.Start(context.Background(), config(os.Getenv("BOX_BWRAP"), os.Getenv("BOX_INIT")))
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if _, err := b.Spawn(box.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", stubborn(os.Getenv("BOX_SECONDS"))}, Env: []string{"PATH=/usr/bin:/bin"}, Files: [3]*os.File{null, null, null}}); err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	fmt.Fprintln(os.Stdout, "up")
	select {}
}

func TestNothingOutlivesTheOwner(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		seconds := unique(2)
		cmd := exec.Command(program(t))
		cmd.Env = []string{"BOX_TEST=own", "BOX_BWRAP=" + lab.Bwrap(t), "BOX_INIT=" + program(t), "BOX_SECONDS=" + seconds}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 3)
		_, _ = io.ReadFull(out, said)
		if string(said) != "up\n" {
			rest, _ := io.ReadAll(out)
			t.Fatalf("%s%s", said, rest)
		}
		poll.Until(t, "four that sleep", func() bool { return sleeping(t, seconds) == 4 })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		poll.Until(t, "their end", func() bool { return sleeping(t, seconds) == 0 })
	})
}

// Orphans inside are collected.
func TestOrphansAreCollected(t *testing.T) {
	b := start(t)
	script(t, b, "for i in 1 2 3 4 5 6 7 8; do (setsid true &) ; done; true")
	poll.Until(t, "no zombies", func() bool { return script(t, b, "ps -eo stat= | grep -c Z") == "0\n" })
}
