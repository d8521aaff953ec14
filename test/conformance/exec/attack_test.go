//go:build linux

package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/protocol/exec"
)

// The program as shipped, with an attacker in its sandbox. internal/sandbox has the
// same attacks with each guard struck out; here the attack is first shown to work
// without a sandbox.

// attackArg makes the test binary an attacker.
const attackArg = "attack"

func runAttack(args []string) error {
	switch args[0] {
	case "client": // becomes a client and asks for a program without a sandbox
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		c, err := execclient.Dial(ctx, args[1], execclient.Options{Token: args[3]})
		if err != nil {
			return err
		}
		defer c.Close()
		p, err := c.Start(ctx, shell("escaped", "echo escaped > "+args[2]))
		if err != nil {
			return err
		}
		_, err = p.Wait(ctx)
		return err
	case "trace": // stops its parent and leaves
		return unix.PtraceAttach(os.Getppid())
	}
	return fmt.Errorf("unknown attack %q", args[0])
}

// prison is a server and a directory that profiles let programs write.
type prison struct {
	*testing.T
	*execclient.Client
	self, dir, out string
	env            map[string]string // of programs
	ran            int
}

func newPrison(t *testing.T, token string, args ...string) *prison {
	t.Helper()
	needBwrap(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	url, _ := lab.Launch(t, append([]string{lab.Thole(t), "exec-server"}, args...)...)
	c, err := execclient.Dial(t.Context(), url, execclient.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &prison{T: t, Client: c, self: self, dir: dir, out: t.TempDir(), env: map[string]string{"PATH": "/usr/bin:/bin"}}
}

// box is what codex asks for with workspace-write.
func (p *prison) box(network string) *exec.Sandbox {
	skip := func(name string) exec.FSEntry {
		e := path(p.dir+"/"+name, exec.AccessRead)
		e.MissingPath = "skip"
		return e
	}
	b := profile(special(exec.SpecialRoot, exec.AccessRead), path(p.dir, exec.AccessWrite), skip(".git"), skip(".codex"))
	b.Permissions.Network = network
	return b
}

func (p *prison) run(box *exec.Sandbox, argv ...string) execclient.Result {
	p.Helper()
	p.ran++
	proc, err := p.Start(p.Context(), exec.StartParams{ProcessID: fmt.Sprint("p", p.ran), Argv: argv, Cwd: exec.FormatURI(p.dir),
		Env: p.env, Sandbox: box})
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	res, err := proc.Wait(ctx)
	if err != nil {
		p.Fatalf("%v never told its end: %v", argv, err)
	}
	return res
}

// attack shows that an attack works without a sandbox and not in one; worked says
// whether it did, and clears what it left.
func (p *prison) attack(name string, networks []string, worked func() bool, argv ...string) {
	p.Helper()
	if res := p.run(nil, argv...); !worked() {
		p.Errorf("%s does not work even without a sandbox: %d %s%s", name, res.ExitCode, res.Stdout, res.Stderr)
	}
	for _, network := range networks {
		if res := p.run(p.box(network), argv...); worked() || res.ExitCode == 0 {
			p.Errorf("%s, network %s: %d %s%s", name, network, res.ExitCode, res.Stdout, res.Stderr)
		}
	}
}

var both = []string{exec.NetworkRestricted, exec.NetworkEnabled}

// made reports whether a file is there, and removes it.
func made(path string) func() bool {
	return func() bool {
		_, err := os.Lstat(path)
		_ = os.RemoveAll(path)
		return err == nil
	}
}

func TestAttackerIsNoClientOfItsOwnServer(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		sock := filepath.Join(lab.Open(t), "s")
		p := newPrison(t, "", "--listen", "unix://"+sock)
		f := filepath.Join(p.out, "f")
		p.attack("client on the unix socket", both, made(f), p.self, attackArg, "client", "unix://"+sock, f, "")
	})
}

func TestAttackerDoesNotReadTheServersFiles(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		home := lab.Open(t)
		token := filepath.Join(t.TempDir(), "token")
		for _, f := range []string{token, home + "/thole.db"} {
			if err := os.WriteFile(f, []byte("a-capability"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p := newPrison(t, "a-capability", "--home", home, "--ws-auth", "capability-token", "--ws-token-file", token)
		for _, f := range []string{token, home + "/thole.db"} {
			p.attack("read "+f, both, made(p.dir+"/stolen"), "/bin/sh", "-c", "cat "+f+" > got && mv got stolen")
			err := p.Call(t.Context(), exec.MethodReadFile, exec.PathParams{Path: exec.FormatURI(f), Sandbox: p.box(exec.NetworkEnabled)}, nil)
			if err == nil {
				t.Errorf("fs/readFile of %s was allowed", f)
			}
		}
	})
}

func TestAttackerPlantsNothing(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		p := newPrison(t, "", "--ws-auth", "none")
		for _, name := range []string{".codex", ".git", ".agents", ".aws"} {
			f := p.dir + "/" + name
			worked := func() bool {
				planted := made(f + "/config")()
				_ = os.Remove(f) // the next finds nothing there
				return planted
			}
			p.attack("plant "+name, both, worked, "/bin/sh", "-c", "chmod 755 "+name+"; mkdir -p "+name+" && echo x > "+name+"/config")
			params := exec.WriteFileParams{Path: exec.FormatURI(f), Data: "eA==", Sandbox: p.box(exec.NetworkEnabled)}
			if err := p.Call(t.Context(), exec.MethodWriteFile, params, nil); err == nil {
				t.Errorf("fs/writeFile of %s was allowed", f)
			}
		}
		if left, err := os.ReadDir(p.dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

// TestAttackerDoesNotHideItsEnd stops bubblewrap's first process, whose parent reports
// the end.
func TestAttackerDoesNotHideItsEnd(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		p := newPrison(t, "", "--ws-auth", "none")
		for _, network := range both {
			res := p.run(p.box(network), p.self, attackArg, "trace")
			if res.ExitCode == 0 || !strings.Contains(string(res.Stdout), unix.EPERM.Error()) || !res.SandboxDenied {
				t.Errorf("network %s: %+v %s", network, res, res.Stdout)
			}
		}
	})
}

// TestAttackersVariables: what variables ask of the loader of every program is done in the
// sandbox, and not by what builds it.
func TestAttackersVariables(t *testing.T) {
	p := newPrison(t, "", "--ws-auth", "none")
	log := filepath.Join(p.out, "log")
	p.env["LD_DEBUG"], p.env["LD_DEBUG_OUTPUT"] = "libs", log
	p.attack("a file of the loader's", both, func() bool {
		made, err := filepath.Glob(log + ".*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range made {
			_ = os.Remove(f)
		}
		return len(made) > 0
	}, "/bin/sh", "-c", "exit 7")
}

// TestAttackerMovesTheProject: a project below another writable directory is still the
// project at the next start and the next file call, whatever lies in its place.
func TestAttackerMovesTheProject(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		p := newPrison(t, "", "--ws-auth", "none")
		project := p.dir + "/x/project"
		if err := os.MkdirAll(project, 0o755); err != nil {
			t.Fatal(err)
		}
		box := profile(special(exec.SpecialRoot, exec.AccessRead), path(p.dir, exec.AccessWrite), special(exec.SpecialProjectRoots, exec.AccessWrite))
		box.WorkspaceRoots = []string{exec.FormatURI(project)}
		move := []string{"/bin/sh", "-c", "mv x away && mkdir x && ln -s " + p.out + " x/project"}
		if res := p.run(box, move...); res.ExitCode == 0 {
			t.Errorf("the project was moved: %s%s", res.Stdout, res.Stderr)
		}
		if res := p.run(nil, move...); res.ExitCode != 0 { // another process did
			t.Fatalf("%s%s", res.Stdout, res.Stderr)
		}
		var e *execclient.Error
		if _, err := p.Start(t.Context(), exec.StartParams{ProcessID: "next", Argv: []string{"/bin/sh", "-c", "echo x > f"}, Cwd: exec.FormatURI(project), Sandbox: box}); !errors.As(err, &e) || e.Code != exec.CodeInvalidParams {
			t.Errorf("the next start: %v", err)
		}
		for _, f := range []string{project + "/f", p.out + "/f"} {
			if err := p.Call(t.Context(), exec.MethodWriteFile, exec.WriteFileParams{Path: exec.FormatURI(f), Data: "eA==", Sandbox: box}, nil); !errors.As(err, &e) || e.Code != exec.CodeInvalidParams {
				t.Errorf("fs/writeFile of %s: %v", f, err)
			}
		}
		if made(p.out + "/f")() {
			t.Error("it was written")
		}
	})
}

// TestAttackerReadsNoProcess: file calls are made by the server, whose variables and memory
// have what opens it.
func TestAttackerReadsNoProcess(t *testing.T) {
	p := newPrison(t, "", "--ws-auth", "none")
	for _, f := range []string{"/proc/self/environ", "/proc/thread-self/environ", "/proc/self/root/proc/self/environ"} {
		read := func(box *exec.Sandbox) error {
			return p.Call(t.Context(), exec.MethodReadFile, exec.PathParams{Path: exec.FormatURI(f), Sandbox: box}, nil)
		}
		if err := read(nil); err != nil {
			t.Errorf("%s cannot be read without a sandbox either: %v", f, err)
		}
		if err := read(p.box(exec.NetworkEnabled)); err == nil {
			t.Errorf("%s was read", f)
		}
	}
	open := func(box *exec.Sandbox, id string) error {
		return p.Call(t.Context(), exec.MethodOpen, exec.OpenParams{HandleID: id, Path: "file:///proc/self/mem", Sandbox: box}, nil)
	}
	if err := open(nil, "a"); err != nil {
		t.Error(err)
	}
	if err := open(p.box(exec.NetworkEnabled), "b"); err == nil {
		t.Error("the server's memory was opened")
	}
}

// TestAnotherCaseOnTheWire: the program as shipped keeps a sandbox that a member of
// the same name in another case would take away.
func TestAnotherCaseOnTheWire(t *testing.T) {
	p := newPrison(t, "", "--ws-auth", "none")
	box, err := json.Marshal(p.box(exec.NetworkRestricted))
	if err != nil {
		t.Fatal(err)
	}
	f := filepath.Join(p.out, "f")
	for i, members := range []string{`"sandbox":%s,"Sandbox":null`, `"Sandbox":null,"sandbox":%s`, `"sandbox":%s,"SANDBOX":{"permissions":{"type":"disabled"},"windowsSandboxLevel":"disabled"}`} {
		params := json.RawMessage(fmt.Sprintf(`{"processId":"c%d","argv":["/bin/sh","-c","echo x > %s"],"cwd":%q,"env":{},"tty":false,`+members+`}`,
			i, f, exec.FormatURI(p.dir), box))
		err := p.Call(t.Context(), exec.MethodProcessStart, params, nil)
		if err == nil { // started, in its sandbox: wait for its end
			var read exec.ReadResult
			for !read.Closed {
				if err := p.Call(t.Context(), exec.MethodProcessRead, json.RawMessage(fmt.Sprintf(`{"processId":"c%d","waitMs":1000}`, i)), &read); err != nil {
					t.Fatal(err)
				}
			}
		}
		if made(f)() {
			t.Errorf("%s switches the sandbox off", members)
		}
	}
}
