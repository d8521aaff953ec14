// Package tui proves the contract with the client it was made for: the real Codex
// TUI, in a real terminal, attached to thole.
package tui

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/appserver/apptest"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ready = "Scripted agent: Scripted"

// attach starts a server and a TUI with a new thread on it.
func attach(t *testing.T) (*apptest.Rig, string, *screen) {
	t.Helper()
	rig := apptest.New(t, apptest.Options{})
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "app.sock"), "")
	s := open(t, nil, "--remote", addr)
	s.wait(ready)
	return rig, addr, s
}

func TestNewThreadOverUnix(t *testing.T) {
	_, _, s := attach(t)
	s.say("sim: slow 20ms 3 ;; say hello from the scripted agent")
	s.wait("hello from the scripted agent")
}

func TestWebSocketWithToken(t *testing.T) {
	rig := apptest.New(t, apptest.Options{})
	addr := rig.Listen("ws://127.0.0.1:0", "a-token-of-this-test")
	s := open(t, []string{"TOKEN=a-token-of-this-test"}, "--remote", addr, "--remote-auth-token-env", "TOKEN")
	s.wait(ready)
	s.say("sim: say over a websocket")
	s.wait("over a websocket")
}

func TestApprovals(t *testing.T) {
	_, _, s := attach(t)
	s.say("sim: run echo first-output ;; say told %tool%")
	s.wait("echo first-output", "Yes, proceed")
	s.keys("y")
	s.wait("told first-output")
	s.say("sim: run echo second-output ;; say heard %tool%")
	s.until("the second approval", func(shown string) bool {
		return strings.Contains(shown[strings.LastIndex(shown, "heard %tool%")+1:], "Yes, proceed")
	})
	s.keys("Escape")
	s.until("the end of the turn", func(shown string) bool {
		return !strings.Contains(shown, "Yes, proceed") && !strings.Contains(shown, "heard second-output")
	})
}

func TestQuestion(t *testing.T) {
	_, _, s := attach(t)
	s.say("sim: ask Which colour? | red | green ;; say you chose %tool%")
	s.wait("Which colour?", "red", "green")
	s.keys("2")
	s.keys("Enter")
	s.wait("you chose", "green")
}

func TestPlanIsShown(t *testing.T) {
	_, _, s := attach(t)
	s.say("sim: todo [x] read the code | [~] write the test | run it ;; say planned")
	s.wait("Updated Plan", "read the code", "write the test", "run it", "planned")
}

func TestInterrupt(t *testing.T) {
	rig, _, s := attach(t)
	s.say("sim: say before ;; hang")
	s.wait("• before")
	s.keys("Escape")
	s.wait("interrupted")
	id := loaded(t, rig)
	if turns := turnsOf(t, rig, id); turns[0].Status != app.TurnInterrupted {
		t.Fatalf("the turn is %s", turns[0].Status)
	}
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
		s.until("the answer", func(shown string) bool { return strings.Count(shown, "remember "+word) >= 2 })
	}
	s.say("/quit")
	id := loaded(t, rig)
	again := open(t, nil, "resume", id, "--remote", addr)
	again.wait("remember alpha", "remember beta", "remember gamma")
	again.say("sim: say and on we go, turn %turns%")
	again.wait("and on we go, turn 4")
}

func TestReconnectAfterRestart(t *testing.T) {
	rig := apptest.New(t, apptest.Options{})
	sock := "unix://" + filepath.Join(t.TempDir(), "app.sock")
	rig.Listen(sock, "")
	s := open(t, nil, "--remote", sock)
	s.wait(ready)
	s.say("sim: say first life")
	s.until("the answer", func(shown string) bool { return strings.Count(shown, "first life") >= 2 })
	rig.Restart()
	rig.Listen(sock, "")
	s.until("the connection again", func(string) bool { return rig.Server.Connections() > 0 })
	s.say("sim: say second life")
	s.until("the answer", func(shown string) bool { return strings.Count(shown, "second life") >= 2 })
}

// Two TUIs and a script on one thread see the same.
func TestSharedThread(t *testing.T) {
	rig, addr, one := attach(t)
	one.say("sim: say the beginning")
	one.until("the answer", func(shown string) bool { return strings.Count(shown, "the beginning") >= 2 })
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

// thole tui opens the installed TUI on the home's own socket: the whole pipeline
// with the real agent behind it, and a thread that a script made.
func TestThroughTheHome(t *testing.T) {
	codex := lab.Codex(t)
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + codex}
	h.Up()
	out, errs, code := h.Run("thread", "start", "--model", "codex/default", "sim: say made by a script")
	if code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	id := strings.Fields(out)[1]
	s := show(t, []string{"THOLE_HOME=" + h.Dir}, h.Binary, "tui", "--codex", codex, id)
	s.wait("• made by a script")
	s.say("sim: escalate echo in-the-executor ;; say it printed %tool%")
	s.wait("Yes, proceed")
	s.keys("y")
	s.wait("• it printed", "in-the-executor")
	s.say("!echo by-hand | tr a-z A-Z; pwd")
	s.wait("• You ran echo by-hand", "BY-HAND", "/workspace")
	s.say("sim: say it was told: %user%")
	s.wait("• it was told: Before this message the user ran", "(exit code 0)")
	s.say("/compact")
	s.wait("• Context compacted")
	s.say("sim: say and on it goes")
	s.wait("• and on it goes")
	if out, errs, code := h.Run("thread", "show", id); code != 0 || !strings.Contains(out, "in-the-executor") {
		t.Errorf("show: %d %s%s", code, out, errs)
	}
}
