package local_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// The attacker is inside a box that the driver itself started, once with a server
// that is root and once with one that is an ordinary user.

// attack runs a script inside the box; what it prints is returned.
func (b *bench) attack(info executor.Info, script string) string {
	b.Helper()
	return b.run(info, "sim: run "+strings.ReplaceAll(script, "\n", "; "))
}

// Writing back what is there harms nobody if it succeeds.
func TestAnAgentCannotChangeKernelSettings(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		got := b.attack(b.start(), `for f in kernel/core_pattern kernel/hostname vm/drop_caches; do v=$(cat /proc/sys/$f 2>/dev/null)
test -n "$v" || v=0
(printf %s "$v" > /proc/sys/$f) 2>/dev/null && echo wrote $f
done
mount -o remount,rw /proc/sys 2>/dev/null && echo remounted
umount /proc/sys 2>/dev/null && echo unmounted
(echo h > /proc/sysrq-trigger) 2>/dev/null && echo sysrq
echo tried`)
		if got != "tried\n" {
			t.Errorf("inside the box: %q", got)
		}
	})
}

// On the host an agent is nobody: neither root nor the owner of anything beyond its
// own files.
func TestAnAgentOfRootIsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	b := setup(t, lab.Bwrap(t))
	secret := filepath.Join(lab.Open(t), "secret")
	if err := os.WriteFile(secret, []byte("of root"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Tools: func() local.Tools { return local.Tools{Readable: []string{filepath.Dir(secret)}} }})
	info := b.start()
	if got := b.attack(info, "cat "+secret+" 2>/dev/null || echo refused"); got != "refused\n" {
		t.Errorf("a file that only root may read: %q", got)
	}
	b.attack(info, "echo mine > file; mkdir -p ~/.config && echo mine > ~/.config/file; chmod 4755 file")
	owner := func(path string) uint32 {
		fi, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fi.Sys().(*syscall.Stat_t).Uid
	}
	at := filepath.Join(b.root, string(b.id))
	for _, name := range []string{"workspace/file", "home/.config/file", "workspace", "data", "home", "auth", "state", "tmp"} {
		if uid := owner(filepath.Join(at, name)); uid < 1000 || uid == 65534 {
			t.Errorf("%s belongs to %d", name, uid)
		}
	}
	if owner(at) != 0 || owner(filepath.Join(at, "spec.json")) != 0 {
		t.Error("the agent owns what the server trusts")
	}
	procs, err := exec.Command("ps", "-eo", "uid,args").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for line := range strings.Lines(string(procs)) {
		if strings.Contains(line, "executor serve") && strings.Contains(line, "/run/thole/thole") {
			seen = true
		}
		if strings.HasPrefix(strings.TrimSpace(line), "0 ") && strings.Contains(line, string(b.id)) {
			t.Errorf("runs as root: %s", line)
		}
	}
	if !seen {
		t.Fatal("no executord was found: nothing is proven")
	}
}

// traps plants links to a victim, or pipes, at every name that the server opens, in
// every directory the agent can write.
func traps(make string) string {
	return `for d in /run/thole /run/thole/run /run/thole/auth /run/thole/state /home/agent /tmp /workspace; do for n in token executord.log d.sock passwd spec.json codex; do rm -rf $d/$n 2>/dev/null
` + make + ` $d/$n 2>/dev/null
done
done
echo planted`
}

func TestTheServerOpensNothingThatAnAgentPlants(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		victim := filepath.Join(lab.Open(t), "victim")
		if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		door := filepath.Join(filepath.Dir(victim), "door")
		ln, err := net.Listen("unix", door)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		knocked := make(chan struct{}, 100)
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				knocked <- struct{}{}
				c.Close()
			}
		}()
		for name, make := range map[string]string{"links": "ln -s " + victim, "pipes": "mkfifo", "doors": "ln -s " + door, "folders": "mkdir"} {
			t.Run(name, func(t *testing.T) {
				b := setup(t, lab.Bwrap(t))
				if got := b.attack(b.start(), traps(make)); got != "planted\n" {
					t.Fatalf("nothing was tried: %q", got)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				done := result(func() error {
					_, _ = b.driver.Inspect(ctx, b.id)
					if _, err := b.driver.List(ctx); err != nil {
						return err
					}
					if err := b.driver.Stop(ctx, b.id); err != nil {
						return err
					}
					_, err := b.driver.Start(ctx, b.id)
					return err
				})
				select {
				case err := <-done:
					if err != nil {
						t.Errorf("the executor does not start again: %v", err)
					}
				case <-time.After(30 * time.Second):
					t.Fatal("the owner is stuck for good")
				}
				if got, err := os.ReadFile(victim); err != nil || string(got) != "precious" {
					t.Errorf("the server wrote into another file: %q, %v", got, err)
				}
				select {
				case <-knocked:
					t.Error("the server spoke to another socket")
				default:
				}
			})
		}
	})
}

func result(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// The box shows none of what the server keeps next to the agent's files.
func TestTheBoxShowsNoTokenAndNoLog(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		info := b.start()
		got := b.attack(info, fmt.Sprintf(`grep -rls -e %s""%s /run /home /tmp /workspace /etc 2>/dev/null
find / -xdev \( -name executord.log -o -name d.sock -o -name spec.json \) 2>/dev/null
find /run /home /tmp /workspace -type s 2>/dev/null
echo looked`, info.Token[:20], info.Token[20:]))
		if got != "looked\n" {
			t.Errorf("inside the box: %q", got)
		}
	})
}

// An executor that an earlier version made for root, with traps in it, is taken over:
// its files become the agent's, and nothing beyond them does.
func TestOldExecutorsOfRootAreTakenOver(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	b := setup(t, lab.Bwrap(t))
	at := filepath.Join(b.root, string(b.id))
	victim := filepath.Join(lab.Open(t), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	old(os.MkdirAll(filepath.Join(at, "workspace/a/b"), 0o700))
	old(os.WriteFile(filepath.Join(at, "workspace/a/b/file"), []byte("kept"), 0o600))
	old(os.Symlink(victim, filepath.Join(at, "workspace/a/link")))
	old(os.MkdirAll(filepath.Join(at, "run"), 0o700))
	old(os.Symlink(victim, filepath.Join(at, "run/token")))
	old(os.Symlink(victim, filepath.Join(at, "run/executord.log")))
	for _, sub := range []string{"workspace", "data", "state", "auth", "home", "tmp"} {
		old(os.Chown(filepath.Join(at, sub), 0, 0))
	}
	if got := b.attack(b.start(), "cat a/b/file; echo more >> a/b/file; cat a/b/file"); got != "keptkeptmore\n" {
		t.Errorf("the agent finds %q", got)
	}
	fi, err := os.Stat(victim)
	old(err)
	text, err := os.ReadFile(victim)
	old(err)
	if fi.Sys().(*syscall.Stat_t).Uid != 0 || string(text) != "precious" {
		t.Errorf("the file behind a link belongs to %d and says %q", fi.Sys().(*syscall.Stat_t).Uid, text)
	}
}

// A login that an executor changed reaches nobody: the agent cannot change the one it
// was given, and what lies in its place is neither the user's nor the next session's.
func TestAPlantedLoginReachesNobody(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		home := t.TempDir()
		mine := filepath.Join(home, ".codex", "auth.json")
		const login = `{"OPENAI_API_KEY":null,"tokens":{"id_token":"i1","access_token":"a1","refresh_token":"r1","account_id":"me"},"last_refresh":"2026-01-01T00:00:00Z"}`
		if err := os.MkdirAll(filepath.Dir(mine), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(mine, []byte(login), 0o600); err != nil {
			t.Fatal(err)
		}
		l := provider.Login{Home: home}
		given, err := l.For(t.Context(), provider.For{Provider: "codex"})
		if err != nil {
			t.Fatal(err)
		}
		b := setup(t, lab.Bwrap(t))
		info := b.start()
		auth := filepath.Join(b.root, string(b.id), "auth", "codex")
		if err := given.Place(auth); err != nil {
			t.Fatal(err)
		}
		above, err := os.Stat(filepath.Dir(auth))
		if err != nil {
			t.Fatal(err)
		}
		owner := above.Sys().(*syscall.Stat_t)
		for _, path := range []string{auth, filepath.Join(auth, "auth.json")} { // executord places them as its agent's user
			if err := os.Lchown(path, int(owner.Uid), int(owner.Gid)); err != nil {
				t.Fatal(err)
			}
		}
		got := b.attack(info, "cd /run/thole/auth/codex && { printf '%s' '"+strings.ReplaceAll(login, "a1", "a2")+"' > auth.json; rm -f auth.json; mv auth.json x; touch new; mkdir ../other; mv ../codex ../c2; } 2>/dev/null; echo $(ls -A /run/thole/auth) / $(ls -A /run/thole/auth/codex)")
		if got != "codex test / auth.json\n" {
			t.Errorf("the agent changed the directory: %q", got)
		}
		for path, want := range map[string]string{mine: login, filepath.Join(auth, "auth.json"): string(given.Files["auth.json"])} {
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", path, got, err)
			}
		}
		if next, err := l.For(t.Context(), provider.For{Provider: "codex"}); err != nil || string(next.Files["auth.json"]) != string(given.Files["auth.json"]) {
			t.Errorf("the next session gets %q, %v", next.Files["auth.json"], err)
		}
	})
}

// What is no file of the executor takes memory of the machine, which no look at disk
// or processes finds: an agent can write nothing there but a bounded /dev/shm.
func TestAnAgentWritesNoUnboundedMemory(t *testing.T) {
	t.Parallel()
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		got := b.attack(b.start(), `for d in / /dev /home /run /run/thole /etc; do (echo x > $d/x) 2>/dev/null && echo wrote $d
done
echo x > /dev/shm/x && echo shared
df -m /dev/shm | tail -1 | tr -s ' ' | cut -d' ' -f2
test -w /tmp && test -w /home/agent && test -w /workspace && echo own`)
		if got != "shared\n256\nown\n" {
			t.Errorf("inside the box: %q", got)
		}
	})
}

// Directories that an agent closed do not keep its executor from being removed.
func TestClosedDirectoriesAreRemoved(t *testing.T) {
	t.Parallel()
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		b.attack(b.start(), "mkdir -p shut/in && touch shut/in/x && chmod 000 shut/in shut")
		if err := b.driver.Remove(t.Context(), b.id); err != nil {
			t.Error(err)
		}
	})
}
