package local_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/terminal"
	"github.com/tholehq/thole/internal/testkit/lab"
	execwire "github.com/tholehq/thole/protocol/exec"
)

// Terminals and processes are reached through the exec-server on the same
// listener, with the same token.
func TestProcessesThroughTheSameListener(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	info := b.start()
	addr := "unix://" + strings.TrimPrefix(info.Endpoint, "unix:")
	if _, err := execclient.Dial(t.Context(), addr, execclient.Options{Token: "wrong"}); err == nil {
		t.Fatal("served without the token")
	}
	c, err := execclient.Dial(t.Context(), addr, execclient.Options{Token: info.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Start(t.Context(), execwire.StartParams{ProcessID: "p1", Argv: []string{"/bin/sh", "-c", "pwd"}, Cwd: execwire.FormatURI("/workspace"), Env: map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Wait(t.Context())
	if err != nil || res.ExitCode != 0 || string(res.Stdout) != "/workspace\n" {
		t.Fatalf("%+v, %v", res, err)
	}
}

// Files are opened by executord, which sees more than the agent: links that the agent lays
// in the workspace lead a client of the exec-server to nothing that is executord's.
func TestFilesThroughTheSameListener(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	info := b.start()
	c, err := execclient.Dial(t.Context(), "unix://"+strings.TrimPrefix(info.Endpoint, "unix:"), execclient.Options{Token: info.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at := filepath.Join(b.root, string(b.id), "workspace")
	for name, to := range map[string]string{"plain": "kept", "state": "/run/thole/state", "environ": "/proc/self/environ", "made": "/run/thole/state/made", "hop": "state"} {
		if err := os.Symlink(to, filepath.Join(at, name)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string) error {
		return c.Call(t.Context(), execwire.MethodWriteFile, execwire.WriteFileParams{Path: execwire.FormatURI(path), Data: "eA=="}, nil)
	}
	read := func(path string) error {
		return c.Call(t.Context(), execwire.MethodReadFile, execwire.PathParams{Path: execwire.FormatURI(path)}, &execwire.ReadFileResult{})
	}
	if err := errors.Join(write("/workspace/kept"), read("/workspace/plain"), write("/workspace/plain")); err != nil {
		t.Errorf("files of the workspace: %v", err)
	}
	for _, path := range []string{"/workspace/made", "/workspace/state/made", "/workspace/hop/made", "/run/thole/state/made"} {
		if err := write(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if err := read("/workspace/environ"); err == nil {
		t.Error("executord's environment was read")
	}
	list := execwire.PathParams{Path: execwire.FormatURI("/workspace/hop")}
	if err := c.Call(t.Context(), execwire.MethodReadDirectory, list, &execwire.ReadDirectoryResult{}); err == nil {
		t.Error("executord's state was listed")
	}
}

// A terminal is inside the same walls as an agent, and ends with the executor.
func TestTerminal(t *testing.T) {
	each(t, func(t *testing.T, bwrap string) {
		b := setup(t, bwrap)
		info := b.start()
		c := executorclient.Dial(info.Endpoint, info.Token)
		defer c.Close()
		conn, err := c.Terminal(t.Context(), terminal.DefaultSize)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		defer time.AfterFunc(2*time.Minute, func() { conn.Close() }).Stop()
		said, buf := "", make([]byte, 4096)
		expect := func(want string) {
			t.Helper()
			for !strings.Contains(said, want) {
				n, err := conn.Read(buf)
				if err != nil {
					t.Fatalf("%v; waited for %q, was told %q", err, want, said)
				}
				said += string(buf[:n])
			}
			_, said, _ = strings.Cut(said, want)
		}
		mark := fmt.Sprint(90000 + os.Getpid()%9999)
		fmt.Fprintf(conn, "echo made here > file.txt; (env -i setsid nohup sleep %s &); stty size; ls -d /root /home/*; echo at=$PWD=\n", mark)
		expect("24 80")
		if bwrap == "" {
			expect("at=" + b.root)
		} else {
			expect("cannot access '/root'")
			expect("/home/agent")
			expect("at=/workspace=")
		}
		if got := b.run(info, "sim: run cat file.txt"); !strings.Contains(got, "made here") {
			t.Errorf("the agent finds %q", got)
		}
		sleeping := func() bool {
			out, err := exec.Command("ps", "-eo", "args").Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(out), "sleep "+mark)
		}
		await(t, sleeping)
		fmt.Fprint(conn, "sleep 1000\n")
		lost := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, struct{ io.Reader }{conn})
			lost <- err
		}()
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if sleeping() {
			t.Error("a process of the terminal outlived the executor")
		}
		if err := <-lost; thole.CodeOf(err) != thole.CodeUnavailable {
			t.Errorf("the client was told %v", err)
		}
	})
}
