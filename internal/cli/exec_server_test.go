//go:build linux

package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/protocol/exec"
)

func TestExecServerRefusals(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("too short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
	}{
		{"--listen ws://localhost:0 --ws-auth none", 2},
		{"--listen http://127.0.0.1:0", 2},
		{"--listen ws://127.0.0.1:0", 6}, // a port wants a token, or the word none
		{"--listen ws://0.0.0.0:0 --ws-auth none", 6},
		{"--ws-auth capability-token", 2},
		{"--ws-auth capability-token --ws-token-sha256 zz", 2},
		{"--ws-auth signed-bearer-token --ws-shared-secret-file " + short, 2},
		{"--ws-token-file " + short, 2},
		{"--listen stdio --ws-auth capability-token --ws-token-file " + short, 2},
		{"--concurrent-requests 0 --ws-auth none", 2},
		{"extra", 1},
	} {
		var out, errw bytes.Buffer
		if code := Main(append([]string{"exec-server"}, strings.Fields(c.args)...), strings.NewReader(""), &out, &errw); code != c.code && !(c.code == 1 && code == 2) {
			t.Errorf("%s: exit %d, want %d: %s", c.args, code, c.code, errw.String())
		}
		if out.Len() > 0 {
			t.Errorf("%s: printed %q", c.args, out.String())
		}
	}
}

// TestExecServerServes reads the address from the first line and runs a program.
func TestExecServerServes(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("capability\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "thole") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, args := range [][]string{
		{"--ws-auth", "capability-token", "--ws-token-file", token},
		{"--listen", "unix://" + filepath.Join(dir, "s")},
	} {
		r, w := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		root := newRoot(&Env{In: strings.NewReader(""), Out: w, Err: io.Discard})
		root.SetArgs(append([]string{"exec-server"}, args...))
		done := make(chan error, 1)
		go func() { done <- root.ExecuteContext(ctx) }()
		url, err := bufio.NewReader(r).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		c, err := execclient.Dial(ctx, strings.TrimSpace(url), execclient.Options{Token: "capability"})
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		p, err := c.Start(ctx, exec.StartParams{ProcessID: "p", Argv: []string{"/bin/echo", "hi"}, Cwd: "file:///"})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := p.Wait(ctx); err != nil || string(res.Stdout) != "hi\n" {
			t.Fatalf("%+v, %v", res, err)
		}
		_ = c.Close()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestConnectListens: who reaches the listener of connect runs programs on the executor, so
// it asks for a token, or for the word none, as exec-server does.
func TestConnectListens(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("capability\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	connect := func(args string) (out string, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var errs bytes.Buffer
		root := newRoot(&Env{In: strings.NewReader(""), Out: writerFunc(func(p []byte) { out += string(p); cancel() }), Err: &errs})
		root.SetArgs(append(strings.Fields("exec-server connect --remote http://127.0.0.1:1 --environment-id desk --credential-file "+token), strings.Fields(args)...))
		return out, root.ExecuteContext(ctx)
	}
	if unguarded.Build { // open to every user of this machine, and on every address of it
		for _, args := range []string{"--listen ws://127.0.0.1:0", "--listen ws://0.0.0.0:0 --ws-auth none"} {
			if out, err := connect(args); err != nil || !strings.HasPrefix(out, "ws://") {
				t.Errorf("%s: %v, printed %q", args, err, out)
			}
		}
		return
	}
	for args, code := range map[string]thole.Code{
		"--listen ws://127.0.0.1:0":                                                   thole.CodeForbidden,
		"--listen ws://0.0.0.0:0 --ws-auth none":                                      thole.CodeForbidden,
		"--listen ws://0.0.0.0:0 --ws-auth capability-token --ws-token-file " + token: thole.CodeForbidden,
		"--listen stdio --ws-auth capability-token --ws-token-file " + token:          thole.CodeInvalid,
		"--listen ws://127.0.0.1:0 --ws-auth capability-token":                        thole.CodeInvalid,
		"--ws-auth none -- true":                                                      thole.CodeInvalid,
		"--listen ws://127.0.0.1:0 -- true":                                           thole.CodeInvalid,
	} {
		if out, err := connect(args); thole.CodeOf(err) != code || out != "" {
			t.Errorf("%s: %v, printed %q", args, err, out)
		}
	}
	for _, args := range []string{"--ws-auth none", "--ws-auth capability-token --ws-token-file " + token} {
		if out, err := connect("--listen ws://127.0.0.1:0 " + args); err != nil || !strings.HasPrefix(out, "ws://127.0.0.1:") {
			t.Errorf("%s: %v, printed %q", args, err, out)
		}
	}
}

// TestRelayServeRefuses: tokens travel encrypted, or on this machine.
func TestRelayServeRefuses(t *testing.T) {
	dir := t.TempDir()
	for args, code := range map[string]thole.Code{
		"--listen ws://0.0.0.0:0":                                          thole.CodeForbidden,
		"--listen ws://0.0.0.0:0 --public-url http://127.0.0.1:80":         thole.CodeForbidden,
		"--listen ws://0.0.0.0:0 --public-url http://relay.example.org":    thole.CodeForbidden,
		"--listen ws://127.0.0.1:0 --public-url http://relay.example.org":  thole.CodeForbidden,
		"--listen ws://127.0.0.1:0 --public-url ftp://relay.example.org":   thole.CodeInvalid,
		"--listen ws://127.0.0.1:0 --public-url https:///":                 thole.CodeInvalid,
		"--listen ws://0.0.0.0:0 --public-url https://relay.example.org":   "",
		"--listen ws://127.0.0.1:0 --public-url http://localhost:80":       "",
		"--listen ws://127.0.0.1:0 --public-url https://relay.example.org": "",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out := ""
		root := newRoot(&Env{In: strings.NewReader(""), Out: writerFunc(func(p []byte) { out += string(p); cancel() }), Err: io.Discard})
		root.SetArgs(append([]string{"relay", "serve", "--tokens", filepath.Join(dir, "tokens")}, strings.Fields(args)...))
		if err := root.ExecuteContext(ctx); thole.CodeOf(err) != code || (code == "") != strings.HasPrefix(out, "http://") {
			t.Errorf("%s: %v, printed %q", args, err, out)
		}
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
