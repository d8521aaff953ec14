package daemon_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/ws"
)

// TestServe drives one server in this process: methods by name, two wires on one
// socket, a stop that answers what was heard, cuts off what merely waits, and
// leaves nothing running.
func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir, err := os.MkdirTemp("", "ds")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	home := filepath.Join(dir, "h")
	owner, err := daemon.Own(context.Background(), home, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Own(context.Background(), home, 0); thole.CodeOf(err) != thole.CodeBusy {
		t.Fatalf("a second owner: %v", err)
	}
	heard, finish := make(chan struct{}), make(chan struct{})
	ready := make(chan struct{})
	attached := make(chan struct{}, 1)
	stopped := make(chan daemon.StopReason, 1)
	go func() {
		reason, err := daemon.Serve(context.Background(), daemon.Config{
			Owner: owner, Role: "daemon", Ready: func() { close(ready) }, Idle: time.Hour,
			Waiting: map[string]bool{"test/wait": true},
			Attach: func(ctx context.Context, s jsonrpc.Stream) {
				attached <- struct{}{}
				<-ctx.Done()
				_ = s.Close("over")
			},
			Methods: map[string]daemon.Method{
				"test/slow": func(context.Context, thole.Actor, json.RawMessage) (any, error) {
					close(heard)
					<-finish
					return "done", nil
				},
				"test/refuse": func(context.Context, thole.Actor, json.RawMessage) (any, error) {
					return nil, thole.Errorf(thole.CodeHeld, "no").WithHint("ask a human")
				},
				"test/wait": func(ctx context.Context, _ thole.Actor, _ json.RawMessage) (any, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				},
			},
		})
		if err != nil {
			t.Error(err)
		}
		stopped <- reason
	}()
	<-ready
	c := &daemonclient.Client{Home: home, NoStart: true}
	err = c.Call(context.Background(), "test/refuse", nil, nil)
	if thole.CodeOf(err) != thole.CodeHeld || thole.HintOf(err) != "ask a human" {
		t.Errorf("an error crossed the socket as %v", err)
	}
	if err := c.Call(context.Background(), "test/unknown", nil, nil); thole.CodeOf(err) != thole.CodeUnsupported {
		t.Errorf("an unknown method: %v", err)
	}
	web, err := ws.Dial(context.Background(), "unix://"+daemon.Socket(home), ws.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-attached
	slow, waiting := make(chan error, 1), make(chan error, 1)
	var answer string
	go func() { slow <- c.Call(context.Background(), "test/slow", nil, &answer) }()
	go func() { waiting <- c.Call(context.Background(), "test/wait", nil, nil) }()
	<-heard
	if err := c.Call(context.Background(), wire.DaemonStop, wire.StopParams{Handover: true}, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; thole.CodeOf(err) != thole.CodeUnavailable {
		t.Errorf("a waiting call ended with %v", err)
	}
	close(finish)
	if err := <-slow; err != nil || answer != "done" {
		t.Errorf("what was heard was not answered: %v", err)
	}
	if reason := <-stopped; reason != daemon.StopHandover {
		t.Errorf("stopped: %s", reason)
	}
	_ = web.Close("bye")
	if err := owner.Release(); err != nil {
		t.Error(err)
	}
}
