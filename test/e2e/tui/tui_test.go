// Package tui proves the contract with the client it was made for: the real Codex
// TUI, in a real terminal, attached to thole.
package tui

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ready = "Scripted agent: Scripted"

// attach starts a server and a TUI with a new thread on it.
func attach(t *testing.T) (*tholetest.Kit, string, *screen) {
	t.Helper()
	rig := tholetest.New(t)
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "app.sock"), "")
	s := open(t, nil, "--remote", addr)
	s.wait(ready)
	return rig, addr, s
}

// One user's session, from the first message to the last stop.
func TestOneThread(t *testing.T) {
	rig, _, s := attach(t)
	for _, m := range []struct {
		say   string
		shows []string
		keys  []string
		then  []string
		ends  string
	}{
		{say: "sim: slow 20ms 3 ;; say hello from the scripted agent", shows: []string{"• hello from the scripted agent"}},
		{say: "sim: run echo first-output ;; say told %tool%", shows: []string{"echo first-output", "Yes, proceed"}, keys: []string{"y"}, then: []string{"• told first-output"}},
		{say: "sim: run echo never-printed > out ;; say went on without", shows: []string{"echo never-printed", "No, continue without running it (d)"}, keys: []string{"d"}, then: []string{"• went on without"}},
		{say: "sim: run echo second-output ;; say heard %tool%", shows: []string{"$ echo second-output", "Yes, proceed"}, keys: []string{"Escape"}, ends: app.TurnInterrupted},
		{say: "sim: ask Which colour? | red | green ;; say you chose %tool%", shows: []string{"1. red", "2. green", "enter to submit answer"}, keys: []string{"2", "Enter"}, then: []string{"• you chose green"}},
		{say: "sim: todo [x] read the code | [~] write the test | run it ;; say planned", shows: []string{"Updated Plan", "read the code", "write the test", "run it", "• planned"}},
		{say: "sim: say before ;; hang", shows: []string{"• before"}, keys: []string{"Escape"}, ends: app.TurnInterrupted},
	} {
		s.say(m.say)
		s.wait(m.shows...)
		for _, k := range m.keys {
			s.keys(k)
		}
		s.wait(m.then...)
		want := app.TurnCompleted
		if m.ends != "" {
			want = m.ends
		}
		var last app.Turn
		s.until("the end of "+m.say, func(string) bool {
			last = turnsOf(t, rig, loaded(t, rig))[0]
			return last.Status != app.TurnInProgress
		})
		declined := slices.ContainsFunc(last.Items, func(i app.Item) bool { return i.Status == app.ItemDeclined })
		if last.Status != want || declined != slices.Equal(m.keys, []string{"d"}) {
			t.Fatalf("%s: the turn is %s, declined: %v: %+v", m.say, last.Status, declined, last.Items)
		}
	}
	if shown := s.text(); strings.Contains(shown, "heard second-output") || strings.Contains(shown, "Yes, proceed") {
		t.Errorf("a canceled command went on:\n%s", shown)
	}
}

func TestWebSocketWithToken(t *testing.T) {
	rig := tholetest.New(t)
	addr := rig.Listen("ws://127.0.0.1:0", "a-token-of-this-test")
	s := open(t, []string{"TOKEN=a-token-of-this-test"}, "--remote", addr, "--remote-auth-token-env", "TOKEN")
	s.wait(ready)
	s.say("sim: say over a websocket")
	s.wait("over a websocket")
}

func TestSteer(t *testing.T) {
	rig, _, s := attach(t)
	s.say("sim: say working ;; wait 2s ;; say finished the first")
	s.wait("• working")
	s.say("sim: say the steered answer")
	s.wait("• finished the first", "• the steered answer")
	id := loaded(t, rig)
	turns := turnsOf(t, rig, id)
	if len(turns) != 1 {
		t.Fatalf("steering made %d turns", len(turns))
	}
	users := 0
	for _, it := range turns[0].Items {
		if it.Type == app.ItemUserMessage {
			users++
		}
	}
	if users != 2 {
		t.Fatalf("the turn has %d user messages, want 2", users)
	}
}

func TestQuitAndResume(t *testing.T) {
	rig, addr, s := attach(t)
	for _, word := range []string{"alpha", "beta", "gamma"} {
		s.say("sim: say remember " + word)
		s.wait("• remember " + word)
	}
	s.say("/quit")
	id := loaded(t, rig)
	again := open(t, nil, "resume", id, "--remote", addr)
	again.wait("remember alpha", "remember beta", "remember gamma")
	again.say("sim: say and on we go, turn %turns%")
	again.wait("and on we go, turn 4")
}

func TestReconnectAfterRestart(t *testing.T) {
	rig := tholetest.New(t)
	sock := "unix://" + filepath.Join(t.TempDir(), "app.sock")
	rig.Listen(sock, "")
	s := open(t, nil, "--remote", sock)
	s.wait(ready)
	s.say("sim: say first life")
	s.wait("• first life")
	rig.Restart()
	rig.Listen(sock, "")
	s.until("the thread again", func(string) bool {
		ids, err := rig.Threads.Loaded(context.Background(), thole.LocalActor)
		return err == nil && len(ids) > 0
	})
	s.say("sim: say second life")
	s.until("the answer", func(shown string) bool {
		if len(turnsOf(t, rig, loaded(t, rig))) == 1 {
			s.keys("Enter") // while it draws the history again it takes none
		}
		return strings.Contains(shown, "• second life")
	})
}

// Two TUIs and a script on one thread see the same.
func TestSharedThread(t *testing.T) {
	rig, addr, one := attach(t)
	one.say("sim: say the beginning")
	one.wait("• the beginning")
	id := loaded(t, rig)
	two := open(t, nil, "resume", id, "--remote", addr)
	two.wait("the beginning")

	script := dial(t, addr)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := script.Resume(ctx, app.ThreadResumeParams{ThreadID: id, ExcludeTurns: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := script.StartTurn(ctx, app.TurnStartParams{ThreadID: id, Input: appclient.Text("sim: run echo shared-out ;; say the shared answer %tool%")}); err != nil {
		t.Fatal(err)
	}
	one.wait("echo shared-out", "Yes, proceed")
	two.wait("echo shared-out", "Yes, proceed")
	two.keys("y")
	for _, s := range []*screen{one, two} {
		s.wait("the shared answer shared-out")
		s.until("the approval gone", func(shown string) bool { return !strings.Contains(shown, "Yes, proceed") })
	}
}

func dial(t *testing.T, addr string) *appclient.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := appclient.Dial(ctx, addr, appclient.Options{Name: "script", Experimental: true, Extended: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// throughHome shows a thread that a script made in the installed TUI, with the
// whole pipeline and the real agent.
func throughHome(t *testing.T) (h *home.Home, thread string, s *screen) {
	t.Helper()
	codex := lab.Codex(t)
	h = home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + codex}
	h.Up()
	out, errs, code := h.Run("thread", "start", "--model", "codex/default", "sim: say made by a script")
	if code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	thread = strings.Fields(out)[1]
	s = show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", codex, thread)
	s.wait("• made by a script")
	return h, thread, s
}

// thole tui opens the installed TUI on the home's own socket: the whole pipeline
// with the real agent, and a thread that a script made.
func TestThroughTheHome(t *testing.T) {
	h, id, s := throughHome(t)
	s.say("sim: escalate echo in-the-executor ;; say it printed %tool%")
	s.wait("Yes, proceed")
	s.keys("y")
	s.wait("• it printed", "in-the-executor")
	s.say("!echo by-hand | tr a-z A-Z; pwd")
	s.wait("• You ran echo by-hand", "BY-HAND", "/workspace")
	s.say("sim: say it was told: %user%")
	s.wait("• it was told: Before this message the user ran", "(exit code 0)")
	s.rests("it was told: Before") // nothing is compacted during a turn
	s.say("/compact")
	s.wait("• Context compacted")
	s.say("sim: say and on it goes")
	s.wait("• and on it goes")
	if out, errs, code := h.Run("thread", "show", id); code != 0 || !strings.Contains(out, "in-the-executor") {
		t.Errorf("show: %d %s%s", code, out, errs)
	}
}

// thole tui works in the directory that the user is in: the agent of a new thread sees it
// under its own path, and so does a second terminal on the thread.
func TestTheTerminalWorksInItsDirectory(t *testing.T) {
	codex := lab.Codex(t)
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + codex}
	h.Up()
	s := show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", codex) // in a directory that the TUI trusts
	dir, err := filepath.EvalSymlinks(s.work)
	if err != nil {
		t.Fatal(err)
	}
	for up := dir; len(up) > len("/tmp"); up = filepath.Dir(up) { // agents of root are other users
		_ = os.Chmod(up, 0o755)
	}
	s.wait("Codex default")
	s.say("!touch made-by-hand")
	s.wait("• You ran touch made-by-hand")
	s.say("sim: escalate touch made-by-the-agent ;; say it is made")
	s.wait("Yes, proceed")
	s.keys("y")
	s.wait("• it is made")
	for _, name := range []string{"made-by-hand", "made-by-the-agent"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	out, _, _ := h.Run("--json", "thread", "list", "--dir", dir)
	var list []struct{ ID, Cwd string }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].Cwd != dir {
		t.Fatalf("listed by its directory: %s %v", out, err)
	}
	again := show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", codex, list[0].ID)
	again.wait("• it is made")
	again.say("!ls -d $PWD")
	again.wait("• You ran ls", "└ "+dir)
}
