package keeper_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// running lists the processes that were started for a Codex home, by their
// environment, with their command lines.
func running(t testing.TB, home string) map[int]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("processes cannot be listed here:", err)
	}
	all := map[int]string{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00CODEX_HOME="+home+"\x00")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		all[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
	}
	return all
}

// listening are those of them that are launcher and server; a server has helpers for
// moments.
func listening(t testing.TB, home string) map[int]string {
	t.Helper()
	all := running(t, home)
	maps.DeleteFunc(all, func(_ int, line string) bool { return !strings.Contains(line, " --listen ") })
	return all
}

// starter starts servers of our own; no terminal makes a thread in them.
func starter(t testing.TB, s attachment.Store, dir string) *keeper.Keeper {
	k := keeper.New(keeper.Config{
		Store: s, Dir: filepath.Join(dir, "sessions"),
		Work: func(context.Context, thole.UserID, string, thole.ThreadID) (bool, bool, error) {
			return false, false, nil
		},
		NewThread: func(ctx context.Context, _ attachment.Attachment) (thole.ThreadID, error) {
			<-ctx.Done()
			return "", ctx.Err()
		},
	})
	t.Cleanup(k.Close)
	return k
}

func terminal(dir, codex string, client int) keeper.Open {
	return keeper.Open{
		User: thole.LocalUser, Home: filepath.Join(dir, "codex"), Dir: "/", Kind: attachment.Owned, Codex: codex, Client: client,
		Env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")},
	}
}

// swept waits until sweeps, as the daemon makes them, left no process of a home and no
// open session. A process that is ending has no environment any more and is still
// alive, so the session may take one sweep longer than what is seen to run.
func swept(t testing.TB, k *keeper.Keeper, home string) {
	t.Helper()
	poll.Until(t, "the end of every process and session", func() bool {
		if err := k.Sweep(bg); err != nil {
			t.Fatal(err)
		}
		open, err := k.List(bg, false)
		if err != nil {
			t.Fatal(err)
		}
		return len(open) == 0 && len(running(t, home)) == 0
	})
}

// A server that a launcher started is the process on the socket. It outlives the
// launcher, is no second time started, and in the end nothing of both remains.
func TestLauncherIsNotTheServer(t *testing.T) {
	for name, codex := range map[string]func(testing.TB) string{"a launcher": lab.CodexLauncher, "npm's own": lab.NPMCodex} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			k := starter(t, storetest.SQLite(t).Attachments(), dir)
			home := filepath.Join(dir, "codex")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			a, err := k.Open(bg, terminal(dir, codex(t), os.Getpid()))
			if err != nil {
				t.Fatal(err)
			}
			// What the server starts looks like itself until it is another program.
			var all map[int]string
			poll.Until(t, "the launcher and the server alone", func() bool { all = listening(t, home); return len(all) == 2 })
			if line := all[a.Process.PID]; line == "" || strings.HasPrefix(line, "node ") {
				t.Fatalf("the server is process %d of %v", a.Process.PID, all)
			}
			for pid := range all {
				if pid != a.Process.PID {
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
				}
			}
			poll.Until(t, "the end of the launcher", func() bool { return len(listening(t, home)) == 1 })
			if err := k.Sweep(bg); err != nil {
				t.Fatal(err)
			}
			if b, err := k.ByID(bg, a.ID); err != nil || b.State != attachment.Pending || b.Process != a.Process {
				t.Fatalf("without its launcher the session is %+v, %v", b, err)
			}
			if _, err := k.Leave(bg, thole.LocalUser, a.ID); err != nil {
				t.Fatal(err)
			}
			swept(t, k, home)
		})
	}
}

// A session whose terminal ends before it made a thread ends its server, and one
// whose server does not begin leaves none.
func TestSessionThatNeverBegan(t *testing.T) {
	dir := t.TempDir()
	k := starter(t, storetest.SQLite(t).Attachments(), dir)
	codex := lab.CodexLauncher(t)
	home := filepath.Join(dir, "codex")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	gone, _ := process(t)
	a, err := k.Open(bg, terminal(dir, codex, gone))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Leave(bg, thole.LocalUser, a.ID); err != nil {
		t.Fatal(err)
	}
	swept(t, k, home)

	gone, kill := process(t)
	if _, err = k.Open(bg, terminal(dir, codex, gone)); err != nil {
		t.Fatal(err)
	}
	kill()
	swept(t, k, home)

	never := filepath.Join(dir, "never") // listens nowhere, and starts something
	if err := os.WriteFile(never, []byte("#!/bin/sh\nsleep 600 &\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Open(bg, terminal(dir, never, 0)); thole.CodeOf(err) != thole.CodeUnavailable {
		t.Fatalf("a program that is no server: %v", err)
	}
	if left := running(t, home); len(left) != 0 {
		t.Errorf("a server that did not begin left %v", left)
	}
	swept(t, k, home)
}

const envCodex = "THOLE_TEST_LAUNCHER"

// The daemon is killed at each step of the start of a server, durable or not. Its
// successor ends what it left: no process remains, and no session.
func TestStarterKilledAtEveryStep(t *testing.T) {
	codex := os.Getenv(envCodex) // of the parent
	if codex == "" {
		codex = lab.CodexLauncher(t)
		t.Setenv(envCodex, codex)
	}
	open := func(dir string, hook sqldb.Hook) *store.DB {
		db, err := storetest.OpenAt(bg, sqldb.Config{Path: filepath.Join(dir, "thole.db"), Hook: hook})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	crash.Sample(t, 1, func(w *crash.Work) error {
		db := open(w.Dir, w.Hook)
		if err := os.Mkdir(filepath.Join(w.Dir, "codex"), 0o700); err != nil {
			return err
		}
		k := starter(t, db.Attachments(), w.Dir)
		k.OnStep(func(name string) { w.Hook("at", name) })
		a, err := k.Open(bg, terminal(w.Dir, codex, os.Getpid()))
		if all := listening(t, filepath.Join(w.Dir, "codex")); err == nil && len(all) != 2 {
			err = fmt.Errorf("not a launcher and a server: %v", all)
		}
		w.Ack(string(a.ID))
		k.Close()
		return err // its terminal, this process, ends
	}, func(t *testing.T, dir string, _ []string, _ string) {
		db := open(dir, nil)
		defer db.Close()
		k := starter(t, db.Attachments(), dir)
		if err := k.Resume(bg); err != nil {
			t.Fatal(err)
		}
		swept(t, k, filepath.Join(dir, "codex"))
	})
}
