// Package aisdk proves the contract with the two AI SDK providers that drive a
// Codex app-server: they start the thole binary as if it were codex.
package aisdk

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// up builds thole and starts it on a home of its own, with the scripted agent.
func up(t *testing.T) (binary, home string) {
	t.Helper()
	dir := t.TempDir()
	binary, home = filepath.Join(dir, "thole"), filepath.Join(dir, "home")
	build := exec.Command("go", "build", "-o", binary, "github.com/tholehq/thole/cmd/thole")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "up", "--demo", "--no-browser", "--listen", "127.0.0.1:0")
	cmd.Env = environ(home)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-gone:
		case <-time.After(15 * time.Second):
			_ = cmd.Process.Kill()
			<-gone
		}
		if t.Failed() {
			t.Logf("thole up:\n%s", log.String())
		}
	})
	// The socket has no way to tell when it will be there.
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, err := os.Stat(daemon.Socket(home)); err == nil {
			return binary, home
		}
		select {
		case err := <-gone:
			gone <- err
			t.Fatalf("thole up ended: %v\n%s", err, log.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("thole up did not answer")
		}
	}
}

func environ(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "THOLE_HOME=" + home}
}

func TestProvidersCompleteATurn(t *testing.T) {
	node, dir := lab.AISDK(t)
	binary, home := up(t)
	script, err := filepath.Abs("turn.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ai-sdk-provider-codex-cli", "ai-sdk-provider-codex-app-server"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			entry := filepath.Join(dir, "node_modules", name, "dist", "index.js")
			cmd := exec.CommandContext(ctx, node, script, entry, binary, "sim: say streamed through "+name)
			cmd.Env = environ(home)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			raw, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			var got struct {
				Text   string
				Deltas int
				Finish string
				Errors []string
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatalf("%v in %s", err, raw)
			}
			if got.Text != "streamed through "+name || got.Deltas < 2 || got.Finish != "stop" || len(got.Errors) > 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}
