package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

func TestTerminalLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newTerminalLog(&out, slog.LevelInfo))
	log.Debug("not wanted")
	log.With("executor", "e1").Warn("no turn can run", "err", errors.New("nothing is installed\nerror: forged"), "thread", "t1")
	log.WithGroup("relay").With("turn", 1).Info("is up", "job", "two words")
	log.Error("bad")
	got := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `).ReplaceAllString(out.String(), "")
	want := "warning: no turn can run (executor e1, thread t1): nothing is installed\n  | error: forged\nis up (relay.turn 1, relay.job two words)\nerror: bad\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 4 {
		t.Errorf("%d lines", lines)
	}
}
