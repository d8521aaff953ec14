package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// patience is for commands that would otherwise hang the tests.
const patience = 2 * time.Minute

// reader is a person with a thole of their own who types what a document shows.
type reader struct {
	t    *testing.T
	home *home.Home
	dir  string // where they type
	env  []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	h := home.New(t)
	bin := t.TempDir()
	for name, path := range map[string]string{"thole": lab.Thole(t), "jq": lab.JQ(t)} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	h.Vars = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "USER=reader"}
	h.Up()
	out, errs, code := h.Run("thread", "start")
	id, ok := strings.CutPrefix(strings.TrimSpace(out), "thread ")
	if code != 0 || !ok {
		t.Fatalf("thole thread start: exit %d: %s%s", code, out, errs)
	}
	return &reader{t: t, home: h, dir: t.TempDir(), env: append(h.Env(), "THREAD="+id)}
}

// types runs a script until its first command that fails.
func (r *reader) types(script string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu")
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, r.env, strings.NewReader(script)
	cmd.WaitDelay = time.Second // supervised commands keep the pipes open
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		r.t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// serves starts a server, waits for its first line, or its end where its input has
// one, and asks it to end.
func (r *reader) serves(line string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euc", "exec "+line)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait(); _ = w.Close() }()
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err == nil {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	rest, _ := io.ReadAll(lines)
	// A server that is asked to end while it still starts says so with 130.
	if err := <-done; err != nil && cmd.ProcessState.ExitCode() != 130 {
		r.t.Errorf("%s: %v\n%s%s", line, err, first, rest)
	}
}

// Every command of a document does what it is there for: it succeeds.
func TestCommandsRun(t *testing.T) {
	ran := 0
	for _, name := range documents(t) {
		if strings.Contains(name, "docs/guide/") {
			continue // TestGuides
		}
		fenced, _ := blocks(t, name)
		var script strings.Builder
		var servers []string
		for _, b := range fenced {
			switch {
			case b.lang != "sh" || strings.HasPrefix(b.how, "norun"):
			case b.how == "serves":
				for _, line := range b.lines {
					line, _, _ = strings.Cut(line, " #")
					servers = append(servers, strings.TrimSpace(line))
				}
			default:
				fmt.Fprintf(&script, "echo '%s:%d'\n%s\n", b.file, b.line, strings.Join(b.lines, "\n"))
			}
		}
		if script.Len() == 0 && len(servers) == 0 {
			continue
		}
		ran++
		t.Run(strings.TrimPrefix(name, root+"/"), func(t *testing.T) {
			t.Parallel()
			r := newReader(t)
			out := r.types(script.String())
			for _, s := range servers {
				r.serves(s)
			}
			if filepath.Base(name) == "README.md" {
				r.delivered(out)
			}
		})
	}
	if ran < 4 {
		t.Errorf("only %d documents have commands to run", ran)
	}
}

// delivered waits until the result of the first five minutes' job is a turn of the
// thread that they started.
func (r *reader) delivered(out string) {
	r.t.Helper()
	_, id, ok := strings.Cut(out, "thread: ")
	if !ok {
		r.t.Fatalf("README.md does not show its thread:\n%s", out)
	}
	id, _, _ = strings.Cut(id, "\n")
	var shown string
	poll.Until(r.t, "the result of the job is a turn", func() bool {
		shown, _, _ = r.home.Run("thread", "show", id)
		return strings.Contains(shown, "412 passed")
	})
}
