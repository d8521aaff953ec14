package cli

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/executors"
)

// What goes on without thole up is named: turns, and jobs with what becomes of them. Only an
// executor that does nothing is idle.
func TestWhatGoesOnWithoutUp(t *testing.T) {
	said := func(left ...executors.Left) string {
		var out bytes.Buffer
		(&Env{}).sayLeft(&out, left, time.Hour, time.Unix(0, 0))
		return out.String()
	}
	if got := said(executors.Left{Thread: "T", Executor: "X", Jobs: []thole.JobID{"J"}}); !strings.HasPrefix(got, "1 executor goes on until ") || !strings.Contains(got, "executor X: job J is running\n") ||
		!strings.Contains(got, "the next thole up delivers what they come to") || strings.Contains(got, "idle") {
		t.Errorf("with a job:\n%s", got)
	}
	if got := said(executors.Left{Executor: "X"}, executors.Left{Executor: "Y", Turn: "R", Jobs: []thole.JobID{"J", "K"}}); !strings.HasPrefix(got, "2 executors go on until ") ||
		!strings.Contains(got, "executor X: idle\n") || !strings.Contains(got, "executor Y: a turn is running, R, job J is running, job K is running\n") {
		t.Errorf("with more:\n%s", got)
	}
	if got := said(executors.Left{Executor: "X"}); strings.Contains(got, "job") {
		t.Errorf("without a job:\n%s", got)
	}
}

// A home whose owner does not answer is not a home without one: thole up begins no
// hand-over then. One that nobody owns is free, also with a dead owner's socket.
func TestASecondUpIsRefusedWhenItCannotBeKnown(t *testing.T) {
	dir, err := os.MkdirTemp("", "up") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := refuseSecond(t.Context(), dir); err != nil {
		t.Fatalf("a home that nobody owns: %v", err)
	}
	owner, err := daemon.Own(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := refuseSecond(soon, dir); err == nil {
		t.Error("an owner that does not answer yet was taken for none")
	}
	if err := owner.Release(); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", daemon.Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	if err := refuseSecond(t.Context(), dir); err != nil {
		t.Errorf("the socket of a dead owner: %v (%s)", err, thole.CodeOf(err))
	}
}
