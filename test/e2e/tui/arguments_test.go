package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/test/e2e/home"
)

// thole tui starts the terminal on the thread that is meant: by its id, the beginning of that,
// the newest, one that the terminal lets the user choose, or a new one in a directory.
func TestArgumentsOfTheTerminal(t *testing.T) {
	h := home.New(t)
	h.Up()
	terminal := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(terminal, []byte("#!/bin/sh\n[ \"$1\" = --version ] || echo \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, errs, code := h.Run("thread", "start", "--model", "test/script", "sim: say hello")
	if code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	id, dir := strings.Fields(out)[1], t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "-C " + h.Dir},
		{[]string{"-C", dir}, "-C " + dir},
		{[]string{"--last"}, "resume --last"},
		{[]string{"--pick"}, "resume"},
		{[]string{id}, "resume " + id},
		{[]string{id[:len(id)-4]}, "resume " + id},
	} {
		out, errs, code := h.Run(append([]string{"tui", "--codex", terminal}, c.args...)...)
		if want := c.want + " --remote unix://" + daemon.Socket(h.Dir); code != 0 || strings.TrimSpace(out) != want {
			t.Errorf("%v: exit %d, %s%s; want %s", c.args, code, out, errs, want)
		}
	}
	for args, want := range map[string]string{"ffffffff": "no thread is called", "--last --pick": "--pick"} {
		if out, errs, code := h.Run(append([]string{"tui", "--codex", terminal}, strings.Fields(args)...)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s%s", args, code, out, errs)
		}
	}
	if out, errs, code := h.Run("exec", "resume", id[:len(id)-4], "sim: say by its beginning"); code != 0 || !strings.Contains(out, "by its beginning") {
		t.Errorf("exec resume: exit %d, %s%s", code, out, errs)
	}
}
