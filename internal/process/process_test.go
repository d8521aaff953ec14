//go:build linux

package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/testkit/poll"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func shell(t *testing.T, script string) *Process {
	t.Helper()
	sh, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	p, err := Start(Spec{Path: sh, Args: []string{"-c", script}, Env: map[string]string{"PATH": "/usr/bin:/bin"}, Secrets: []string{"sk-secret-value"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	t.Cleanup(func() { p.Stdout.Close() })
	return p
}

// pids reads n process ids from stdout, one per line.
func pids(t *testing.T, p *Process, n int) []int {
	t.Helper()
	in := bufio.NewScanner(p.Stdout)
	var out []int
	for len(out) < n && in.Scan() {
		pid, err := strconv.Atoi(strings.TrimSpace(in.Text()))
		if err != nil {
			t.Fatalf("line %q is no pid", in.Text())
		}
		out = append(out, pid)
	}
	if len(out) != n {
		t.Fatalf("read %d pids, want %d: %s", len(out), n, p.Diagnosis())
	}
	return out
}

// gone: a zombie that waits for its parent is dead; that ours are collected is for
// noZombies to say.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if row := readProc(pid); row != nil && row.alive() {
			t.Errorf("process %d is still there: %+v", pid, row)
		}
	}
}

// Each way in which agent tools escape their parent.
var escapes = map[string]string{
	"child":           `sleep 300 & echo $!; wait`,
	"own session":     `setsid sh -c 'echo $$; exec sleep 300' & wait`,
	"double fork":     `(setsid sh -c 'echo $$; exec sleep 300' >&1 &) ; sleep 300`,
	"no environment":  `(env -i setsid sh -c 'echo $$; exec sleep 300' &) ; sleep 300`,
	"ignores signals": `trap '' TERM INT HUP; echo $$; while :; do sleep 300; done`,
	"keeps forking":   `f() { sleep 0.01; f & }; f & echo $!; exec sleep 300`,
	"all at once":     `for i in 1 2 3 4 5; do (env -i setsid sh -c 'echo $$; exec sleep 300' &); done; sleep 300`,
}

func TestKillReachesEveryDescendant(t *testing.T) {
	for _, mode := range []string{"cgroup", "marks"} {
		for name, script := range escapes {
			t.Run(mode+"/"+name, func(t *testing.T) {
				if mode == "marks" {
					noCgroup(t)
				} else if OwnGroup() == "" {
					t.Skip("no version 2 cgroup here")
				}
				p := shell(t, script)
				n := 1
				if name == "all at once" {
					n = 5
				}
				found := pids(t, p, n)
				p.Kill()
				gone(t, append(found, p.Pid())...)
				if left := p.tree.hunt().look(0); left.alive > 0 {
					t.Errorf("left behind: %+v", left)
				}
				noZombies(t, p)
			})
		}
	}
}

func noZombies(t *testing.T, p *Process) {
	t.Helper()
	l := newLook()
	for _, pid := range l.pids {
		if row := l.get(pid); row != nil && row.ppid == l.self && p.tree.tags[row.readTag()] {
			t.Errorf("process %d in state %c was not reaped", pid, row.state)
		}
	}
}

func noCgroup(t *testing.T) {
	mayCgroup = false
	t.Cleanup(func() { mayCgroup = true })
}

// A program on a terminal is the leader of its own session there, and its end and its
// hang-up reach as far as a kill.
func TestTerminal(t *testing.T) {
	for _, mode := range []string{"cgroup", "marks", "under nohup"} {
		t.Run(mode, func(t *testing.T) {
			switch {
			case mode == "marks":
				noCgroup(t)
			case mode == "under nohup":
				signal.Ignore(syscall.SIGHUP) // until the start; a reset would bring it back
			case OwnGroup() == "":
				t.Skip("no version 2 cgroup here")
			}
			master, slave, err := OpenTerminal(nil, 100, 30)
			if err != nil {
				t.Fatal(err)
			}
			defer master.Close()
			defer slave.Close()
			p, err := StartOnTerminal(Spec{Path: "/bin/sh", Env: map[string]string{"PATH": "/usr/bin:/bin"}, Args: []string{"-c",
				`stty -echo; stty size </dev/tty; ps -o sid= -p $$; (env -i setsid sh -c 'trap "" HUP; echo $$; sleep 300' &); sleep 300`}}, slave)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			in := bufio.NewScanner(master)
			var said []string
			for len(said) < 3 && in.Scan() {
				said = append(said, strings.TrimSpace(in.Text()))
			}
			if len(said) != 3 || said[0] != "30 100" || said[1] != strconv.Itoa(p.Pid()) {
				t.Fatalf("said %q", said)
			}
			orphan, err := strconv.Atoi(said[2])
			if err != nil {
				t.Fatal(err)
			}
			p.Stop(time.Minute)
			gone(t, orphan, p.Pid())
			noZombies(t, p)
			var exit *ExitError
			if err := p.Wait(t.Context()); !errors.As(err, &exit) || exit.Status.Signal() != syscall.SIGHUP {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

func TestExitOfTheRootEndsTheTree(t *testing.T) {
	noCgroup(t)
	p := shell(t, `(env -i setsid sh -c 'echo $$; exec sleep 300' &) ; read go; exit 0`)
	orphan := pids(t, p, 1)
	p.Stdin.Write([]byte("\n"))
	<-p.Done()
	gone(t, orphan...)
	if _, err := io.ReadAll(p.Stdout); err != nil {
		t.Errorf("stdout: %v", err)
	}
}

func TestTreesDoNotReachEachOther(t *testing.T) {
	noCgroup(t)
	a, b := shell(t, escapes["no environment"]), shell(t, escapes["no environment"])
	pa, pb := pids(t, a, 1), pids(t, b, 1)
	a.Kill()
	gone(t, pa...)
	if row := readProc(pb[0]); row == nil || !row.alive() || row.state == 'T' {
		t.Fatalf("the other tree was hit: %+v", row)
	}
	b.Kill()
	gone(t, pb...)
}

// An orphan that ends while its root lives must not stay a zombie.
func TestOrphansAreReapedWhileTheRootLives(t *testing.T) {
	p := shell(t, `(setsid sh -c 'echo $$' &); sleep 300`)
	orphan := pids(t, p, 1)[0]
	poll.Until(t, "the orphan's end", func() bool {
		row := readProc(orphan)
		return row == nil || row.ppid != os.Getpid()
	})
}

func TestStop(t *testing.T) {
	t.Run("graceful", func(t *testing.T) {
		p := shell(t, `trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done`)
		r := bufio.NewReader(p.Stdout)
		if line, _ := r.ReadString('\n'); line != "ready\n" {
			t.Fatalf("got %q", line)
		}
		p.Stop(10 * time.Second)
		if rest, _ := io.ReadAll(r); string(rest) != "bye\n" {
			t.Errorf("last words %q", rest)
		}
		var exit *ExitError
		if err := p.Wait(context.Background()); !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("Wait = %v, want exit status 3", err)
		}
	})
	t.Run("stubborn", func(t *testing.T) {
		p := shell(t, escapes["ignores signals"])
		found := pids(t, p, 1)
		p.Stop(50 * time.Millisecond)
		gone(t, found...)
		p.Stop(time.Hour) // repeats return at once
		p.Kill()
	})
}

func TestOnlyTheGivenEnvironment(t *testing.T) {
	t.Setenv("THOLE_TEST_CANARY", "leaked")
	p := shell(t, `env`)
	out, _ := io.ReadAll(p.Stdout)
	if s := string(out); strings.Contains(s, "leaked") || !strings.Contains(s, "PATH=/usr/bin:/bin\n") {
		t.Errorf("environment:\n%s", s)
	}
}

func TestDiagnosis(t *testing.T) {
	p := shell(t, `printf '\033[31mfatal\033[0m: key sk-secret-value is wrong\n' >&2; exit 7`)
	<-p.Done()
	got := p.Diagnosis()
	if want := "bash ended: exit status 7; stderr: fatal: key [redacted] is wrong"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestDiagnosisIsBounded(t *testing.T) {
	p := shell(t, `for i in $(seq 20000); do echo "line $i of noise" >&2; done; echo last >&2`)
	<-p.Done()
	got := p.Diagnosis()
	if len(got) > tailBytes || !strings.HasSuffix(got, "last") {
		t.Errorf("%d bytes ending in %q", len(got), got[max(0, len(got)-40):])
	}
}

func TestStartErrors(t *testing.T) {
	text := t.TempDir() + "/text"
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec Spec
		code thole.Code
		is   error
	}{
		"relative":     {Spec{Path: "sh"}, thole.CodeInvalid, nil},
		"missing":      {Spec{Path: "/nonexistent/cli"}, thole.CodeUnavailable, os.ErrNotExist},
		"no program":   {Spec{Path: text}, thole.CodeUnavailable, syscall.ENOEXEC},
		"no directory": {Spec{Path: "/bin/sh", Dir: "/nonexistent"}, thole.CodeInvalid, os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(c.spec)
			if thole.CodeOf(err) != c.code || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v (code %s)", err, thole.CodeOf(err))
			}
		})
	}
}

func TestWritingToADeadProcess(t *testing.T) {
	p := shell(t, `exit 0`)
	<-p.Done()
	if _, err := p.Stdin.Write([]byte("x")); err == nil {
		t.Error("no error")
	}
}

// A program that hangs without reading would hold up who writes to it for ever, and
// with that everybody who has to wait for the write.
func TestAProgramThatDoesNotReadIsKilled(t *testing.T) {
	p := shell(t, `trap '' TERM; echo $$; while :; do sleep 300; done`)
	pid := pids(t, p, 1)
	p.Stdin.(*stdin).patience = 50 * time.Millisecond
	n, err := p.Stdin.Write(make([]byte, 1<<20))
	if thole.CodeOf(err) != thole.CodeUnavailable || n >= 1<<20 {
		t.Fatalf("wrote %d bytes: %v", n, err)
	}
	gone(t, pid...)
}

// A slow reader takes all of it, however long that is altogether.
func TestAProgramThatReadsSlowly(t *testing.T) {
	p := shell(t, `for i in $(seq 16); do head -c 65536 >/dev/null; sleep 0.05; done; cat >/dev/null; echo $$`)
	if n, err := p.Stdin.Write(make([]byte, 2<<20)); n != 2<<20 || err != nil {
		t.Fatalf("wrote %d bytes: %v", n, err)
	}
	p.Stdin.Close()
	pids(t, p, 1)
}
