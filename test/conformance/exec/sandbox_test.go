//go:build linux

package exec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/protocol/exec"
)

func needBwrap(t *testing.T) {
	t.Helper()
	if err := osexec.Command("bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true").Run(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("bubblewrap: %v", err)
		}
		t.Skipf("bubblewrap does not work here: %v", err)
	}
}

func path(p, access string) exec.FSEntry {
	return exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathPath, Path: exec.FormatURI(p)}, Access: access}
}

func special(kind, access string) exec.FSEntry {
	return exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathSpecial, Value: &exec.FSSpecial{Kind: kind}}, Access: access}
}

func glob(pattern, access string) exec.FSEntry {
	return exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathGlob, Pattern: pattern}, Access: access}
}

func profile(entries ...exec.FSEntry) *exec.Sandbox {
	return &exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{Type: exec.PermissionsManaged, Network: exec.NetworkRestricted,
		FileSystem: &exec.FileSystemPolicy{Type: exec.FSRestricted, Entries: entries}}}
}

// cell is a directory tree with a secret outside and one inside of what a
// profile allows.
type cell struct {
	root, open, ro, secret, out string
	box                         *exec.Sandbox
}

func newCell(t *testing.T) cell {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := cell{root: root, open: root + "/open", ro: root + "/open/ro", secret: root + "/open/secret", out: root + "/out"}
	for _, d := range []string{c.open, c.ro, c.secret, c.out} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{c.ro + "/f", c.secret + "/f", c.out + "/f", c.open + "/f", c.open + "/key.pem"} {
		if err := os.WriteFile(f, []byte("content"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"to-out": c.out, "to-secret": c.secret, "to-ro": c.ro, "up": "../out", "abs-file": c.out + "/f", "root": "/", "proc-root": "/proc/self/root", "self": "self",
	} {
		if err := os.Symlink(target, filepath.Join(c.open, name)); err != nil {
			t.Fatal(err)
		}
	}
	c.box = profile(special(exec.SpecialMinimal, exec.AccessRead), path(c.open, exec.AccessWrite), path(c.ro, exec.AccessRead),
		path(c.secret, exec.AccessDeny), glob(c.open+"/**/*.pem", exec.AccessDeny))
	return c
}

// TestAnotherCaseDoesNotOpenTheSandbox: a member that is called like the sandbox but
// for case, or by escapes, is not the sandbox. (The same name twice is no message.)
func TestAnotherCaseDoesNotOpenTheSandbox(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	c := newCell(t)
	box, err := json.Marshal(c.box)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Sandbox", "SANDBOX", "sandBox", `sand\u0042ox`, `\u0053andbox`, "\u017fandbox", `\u017Fandbox`} {
		for _, members := range []string{`"sandbox":%s,"` + name + `":null`, `"` + name + `":null,"sandbox":%s`} {
			var got exec.ReadFileResult
			params := json.RawMessage(fmt.Sprintf(`{"path":%q,`+members+`}`, exec.FormatURI(c.out+"/f"), box))
			if err := r.Call(t.Context(), exec.MethodReadFile, params, &got); err == nil {
				t.Errorf("%s switches the sandbox off", members)
			}
		}
	}
}

// TestSandboxedFileCalls tries every way out that a path can take.
func TestSandboxedFileCalls(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	c := newCell(t)
	ctx := t.Context()
	read := func(p string) error {
		return r.Call(ctx, exec.MethodReadFile, exec.PathParams{Path: "file://" + p, Sandbox: c.box}, nil)
	}
	write := func(p string) error {
		return r.Call(ctx, exec.MethodWriteFile, exec.WriteFileParams{Path: "file://" + p, Data: "eA==", Sandbox: c.box}, nil)
	}
	for _, p := range []string{c.open + "/f", c.ro + "/f", c.open + "/to-ro/f", c.out + "/../open/f"} {
		if err := read(p); err != nil {
			t.Errorf("read %s: %v", p, err)
		}
	}
	if err := write(c.open + "/new"); err != nil {
		t.Errorf("write: %v", err)
	}
	for _, p := range []string{
		c.out + "/f", c.secret + "/f", c.open + "/to-out/f", c.open + "/to-secret/f", c.open + "/up/f", c.open + "/abs-file",
		c.open + "/root" + c.out + "/f", c.open + "/proc-root" + c.out + "/f", "/proc/self/root" + c.out + "/f", "/proc/self/cwd/../../../../.." + c.out + "/f",
		c.open + "/key.pem", c.open + "/ro/..%2F../out/f", c.open + "/self/x", c.open + "/to-secret/../secret/f", "/root/.profile", c.open + "/%2e%2e/out/f",
	} {
		if err := read(p); err == nil {
			t.Errorf("read %s was allowed", p)
		}
		if err := write(p); err == nil {
			t.Errorf("write %s was allowed", p)
		}
	}
	for _, p := range []string{c.ro + "/f", c.ro + "/new", c.open + "/to-ro/new", "/etc/thole-probe", "/tmp/thole-probe"} {
		if err := write(p); err == nil {
			t.Errorf("write %s was allowed", p)
		}
	}
	for name, params := range map[string]any{
		exec.MethodCreateDirectory: exec.CreateDirectoryParams{Path: "file://" + c.open + "/to-out/d", Sandbox: c.box},
		exec.MethodRemove:          exec.RemoveParams{Path: "file://" + c.ro, Sandbox: c.box},
		exec.MethodCopy:            exec.CopyParams{SourcePath: "file://" + c.out + "/f", DestinationPath: "file://" + c.open + "/stolen", Sandbox: c.box},
		exec.MethodReadDirectory:   exec.PathParams{Path: "file://" + c.open + "/to-out", Sandbox: c.box},
		exec.MethodGetMetadata:     exec.PathParams{Path: "file://" + c.secret + "/f", Sandbox: c.box},
		exec.MethodCanonicalize:    exec.PathParams{Path: "file://" + c.open + "/up", Sandbox: c.box},
		exec.MethodOpen:            exec.OpenParams{HandleID: "h", Path: "file://" + c.open + "/up/f", Mode: exec.OpenReplace, Sandbox: c.box},
		exec.MethodWalk:            exec.WalkParams{Path: "file://" + c.out, Options: exec.WalkOptions{MaxDepth: 1, MaxDirectories: 1, MaxEntries: 1}, Sandbox: c.box},
	} {
		if err := r.Call(ctx, name, params, nil); err == nil {
			t.Errorf("%s was allowed", name)
		}
	}
	// Removing the writable root's contents stops at what may not be removed.
	_ = r.Call(ctx, exec.MethodRemove, exec.RemoveParams{Path: "file://" + c.open, Sandbox: c.box}, nil)
	for _, f := range []string{c.out + "/f", c.secret + "/f", c.ro + "/f"} {
		if raw, err := os.ReadFile(f); err != nil || string(raw) != "content" {
			t.Errorf("%s was touched: %q, %v", f, raw, err)
		}
	}
}

// TestSandboxSwapRace exchanges a directory with a link out, tens of thousands of times,
// while files are used through it: every call meets either the directory or a refusal.
// Without the sandbox the link is followed.
func TestSandboxSwapRace(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	c := newCell(t)
	const swaps, burst, each = 30_000, 101, 5
	swap, link := c.open+"/swap", c.open+"/link"
	for _, err := range []error{os.Mkdir(swap, 0o755), os.WriteFile(swap+"/f", []byte("inside"), 0o644), os.WriteFile(c.out+"/only-outside", []byte("outside"), 0o644),
		os.WriteFile(c.out+"/doomed", []byte("outside"), 0o644), os.Symlink(c.out, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	through := func(name string) string { return exec.FormatURI(swap + "/" + name) }
	inside, err := os.OpenRoot(swap)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	into, yes, no := c.open+"/copied", true, false
	calls := map[string]func() (out string, err error){
		exec.MethodReadFile: func() (string, error) {
			var res exec.ReadFileResult
			err := r.Call(ctx, exec.MethodReadFile, exec.PathParams{Path: through("f"), Sandbox: c.box}, &res)
			return string(res.Data), err
		},
		exec.MethodOpen: func() (string, error) {
			err := r.Call(ctx, exec.MethodOpen, exec.OpenParams{HandleID: "h", Path: through("f"), Sandbox: c.box}, nil)
			if err != nil {
				return "", err
			}
			var res exec.ReadBlockResult
			err = errors.Join(r.Call(ctx, exec.MethodReadBlock, exec.ReadBlockParams{HandleID: "h", Len: 100}, &res), r.Call(ctx, exec.MethodClose, exec.HandleParams{HandleID: "h"}, nil))
			return string(res.Chunk), err
		},
		exec.MethodCopy: func() (string, error) {
			_ = os.Remove(into)
			err := r.Call(ctx, exec.MethodCopy, exec.CopyParams{SourcePath: through("f"), DestinationPath: exec.FormatURI(into), Sandbox: c.box}, nil)
			raw, _ := os.ReadFile(into)
			return string(raw), err
		},
		exec.MethodWalk: func() (string, error) {
			var res json.RawMessage
			err := r.Call(ctx, exec.MethodWalk, exec.WalkParams{Path: through(""), Options: exec.WalkOptions{MaxDepth: 3, MaxDirectories: 9, MaxEntries: 9, FollowDirectorySymlinks: true}, Sandbox: c.box}, &res)
			if err == nil && !strings.Contains(string(res), "/swap/f") {
				err = errors.New("nothing was walked")
			}
			return string(res), err
		},
		exec.MethodReadDirectory: func() (string, error) {
			var res json.RawMessage
			err := r.Call(ctx, exec.MethodReadDirectory, exec.PathParams{Path: through(""), Sandbox: c.box}, &res)
			return string(res), err
		},
		exec.MethodWriteFile: func() (string, error) {
			return "", r.Call(ctx, exec.MethodWriteFile, exec.WriteFileParams{Path: through("escaped"), Data: "eA==", Sandbox: c.box}, nil)
		},
		exec.MethodCreateDirectory: func() (string, error) {
			return "", r.Call(ctx, exec.MethodCreateDirectory, exec.CreateDirectoryParams{Path: through("escaped-dir"), Recursive: &yes, Sandbox: c.box}, nil)
		},
		exec.MethodRemove: func() (string, error) {
			if err := inside.WriteFile("doomed", nil, 0o644); err != nil {
				return "", err
			}
			return "", r.Call(ctx, exec.MethodRemove, exec.RemoveParams{Path: through("doomed"), Force: &no, Sandbox: c.box}, nil)
		},
	}
	swapped, begin := 0, make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for range begin { // of a call
			for range burst {
				if err := unix.Renameat2(unix.AT_FDCWD, swap, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
					t.Errorf("exchange: %v", err)
				}
				swapped++
			}
		}
	})
	met, refused := map[string]int{}, map[string]int{}
	enough := func() bool {
		for method := range calls {
			if met[method] < each || refused[method] < each {
				return false
			}
		}
		return true
	}
	for tries := 0; tries*burst < swaps || !enough(); {
		for method, call := range calls {
			begin <- struct{}{}
			tries++
			out, err := call()
			if strings.Contains(out, "content") || strings.Contains(out, "outside") {
				t.Errorf("%s through the link: %s", method, out)
			}
			if err == nil {
				met[method]++
			} else {
				refused[method]++
			}
		}
	}
	close(begin)
	wg.Wait()
	t.Logf("%d swaps; met %v, refused %v", swapped, met, refused)
	entries, err := os.ReadDir(c.out)
	if err != nil || len(entries) != 3 {
		t.Fatalf("outside holds %v, %v", entries, err)
	}
	// A link of its own: a late write may have kept the last swap from becoming one.
	last := c.open + "/last"
	if err := os.Symlink(c.out, last); err != nil {
		t.Fatal(err)
	}
	if err := r.Call(t.Context(), exec.MethodWriteFile, exec.WriteFileParams{Path: "file://" + last + "/escaped", Data: "eA=="}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.out + "/escaped"); err != nil {
		t.Fatalf("the link leads nowhere: %v", err)
	}
}

// TestSandboxedProcesses runs programs that try to get out.
func TestSandboxedProcesses(t *testing.T) {
	needBwrap(t)
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	c := newCell(t)
	run := func(id, script string, box *exec.Sandbox) execclient.Result {
		t.Helper()
		p := shell(id, script)
		p.Cwd, p.Sandbox = exec.FormatURI(c.open), box
		proc := mustStart(t, t.Context(), r, p)
		if proc.SandboxType != exec.SandboxLinux {
			t.Errorf("sandbox type %q", proc.SandboxType)
		}
		return mustWait(t, t.Context(), proc)
	}
	if res := run("ok", "echo hi > made && cat made ro/f && id -u", c.box); res.ExitCode != 0 || !strings.HasPrefix(string(res.Stdout), "hi\ncontent") {
		t.Errorf("allowed work failed: %+v %s", res.ExitCode, res.Stderr)
	}
	for name, script := range map[string]string{
		"write outside":     "echo x > " + c.out + "/f",
		"read outside":      "cat " + c.out + "/f",
		"through a link":    "cat to-out/f",
		"proc root":         "cat /proc/self/root" + c.out + "/f",
		"proc 1 root":       "cat /proc/1/root" + c.out + "/f",
		"write read-only":   "echo x > ro/new",
		"read denied":       "cat secret/f",
		"list denied":       "ls secret",
		"denied by glob":    "cat key.pem",
		"remount":           "mount -o remount,rw,bind " + c.ro + " " + c.ro,
		"umount the cover":  "umount " + c.secret,
		"new namespace":     "unshare -rm sh -c 'umount " + c.secret + " && cat secret/f'",
		"hard link":         "ln ro/f stolen && echo x > stolen",
		"rename the cover":  "mv secret elsewhere && cat elsewhere/f",
		"mknod":             "mknod disk b 8 0",
		"network":           "exec 3<>/dev/tcp/127.0.0.1/" + strings.TrimPrefix(url, "ws://127.0.0.1:"),
		"kill the server":   "kill -0 " + "$(cat /proc/sys/kernel/ns_last_pid 2>/dev/null || echo 999999)0",
		"write proc sys":    "cat /proc/sys/kernel/panic > /proc/sys/kernel/panic",
		"pull the plug":     "test -w /proc/sysrq-trigger",
		"read the memory":   "head -c 1 /dev/mem",
		"chmod the cover":   "chmod 777 secret && ls secret/f",
		"write below links": "echo x > up/f",
	} {
		shellName := script
		if name == "network" {
			shellName = "bash -c '" + script + "'"
		}
		if res := run(name, shellName, c.box); res.ExitCode == 0 {
			t.Errorf("%s: %q succeeded: %s", name, script, res.Stdout)
		}
	}
	for _, f := range []string{c.out + "/f", c.secret + "/f", c.ro + "/f"} {
		if raw, err := os.ReadFile(f); err != nil || string(raw) != "content" {
			t.Errorf("%s was touched: %q, %v", f, raw, err)
		}
	}
	if res := run("denied", "cat secret/f", c.box); !res.SandboxDenied {
		t.Errorf("a denial was not reported: %+v %s", res, res.Stderr)
	}
	if res := run("failed", "exit 3", c.box); res.SandboxDenied {
		t.Error("a plain failure was reported as denial")
	}
}

// TestSandboxTypeSaysWhatIsThere: a profile that confines nothing is not called a sandbox.
func TestSandboxTypeSaysWhatIsThere(t *testing.T) {
	needBwrap(t)
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	whole := profile()
	whole.Permissions.FileSystem = &exec.FileSystemPolicy{Type: exec.FSUnrestricted}
	networked := profile()
	networked.Permissions.FileSystem, networked.Permissions.Network = whole.Permissions.FileSystem, exec.NetworkEnabled
	for name, c := range map[string]struct {
		box  *exec.Sandbox
		want string
	}{
		"none":                    {nil, exec.SandboxNone},
		"disabled":                {&exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{Type: exec.PermissionsDisabled}}, exec.SandboxNone},
		"external":                {&exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{Type: exec.PermissionsExternal, Network: exec.NetworkRestricted}}, exec.SandboxNone},
		"everything and network":  {networked, exec.SandboxNone},
		"everything, no network":  {whole, exec.SandboxLinux},
		"files that are readable": {profile(special(exec.SpecialRoot, exec.AccessRead)), exec.SandboxLinux},
	} {
		p := shell(name, "true")
		p.Sandbox = c.box
		proc := mustStart(t, t.Context(), r, p)
		if mustWait(t, t.Context(), proc); proc.SandboxType != c.want {
			t.Errorf("%s: %q, want %q", name, proc.SandboxType, c.want)
		}
	}
}

// TestSandboxThatCannotBeEnforced is refused, never ignored.
func TestSandboxThatCannotBeEnforced(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	c := newCell(t)
	for name, box := range map[string]*exec.Sandbox{
		"unknown special":  profile(special("moon", exec.AccessRead)),
		"glob that allows": profile(special(exec.SpecialRoot, exec.AccessRead), glob("/tmp/*", exec.AccessWrite)),
		"link in the way":  profile(special(exec.SpecialRoot, exec.AccessRead), path(c.open, exec.AccessWrite), path(c.open+"/to-ro", exec.AccessRead)),
		"unknown access":   profile(path(c.open, "maybe")),
		"unknown type":     {WindowsLevel: "disabled", Permissions: exec.Permissions{Type: "bogus"}},
	} {
		p := shell("p", "true")
		p.Sandbox = box
		var e *execclient.Error
		if _, err := r.Start(t.Context(), p); !errors.As(err, &e) || e.Code != exec.CodeInvalidParams {
			t.Errorf("%s: %v", name, err)
		}
	}
}
