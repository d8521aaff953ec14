package executord_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
)

// place is an executor whose workspace is a copy with these files.
func place(t *testing.T, limit time.Duration, files map[string]string) (dir string, c *executorclient.Client) {
	t.Helper()
	dir = home(t)
	for name, text := range files {
		at := filepath.Join(dir, "workspace", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, _ = serveFull(t, dir, func(c *executord.Config) {
		c.Dirs.Data, c.Tools.Setup = dir+"/data", wire.Setup{Auto: true, Timeout: limit}
	})
	return dir, c
}

// seen is what a run showed of a setup.
type seen struct {
	commands []event.Item
	notes    string
	asked    []event.Ask
	text     string
	outcome  thole.Outcome
}

// watch takes a turn to its end, answering what it asks.
func watch(t *testing.T, c *executorclient.Client, req wire.RunRequest, decision event.Decision) (s seen) {
	t.Helper()
	run := start(t, c, req)
	events := collect(t, c, run, 0, func(ev wire.LogEvent) {
		if ev.Event.Kind == event.AskRequested {
			s.asked = append(s.asked, *ev.Event.Ask)
			if _, err := c.Reply(t.Context(), wire.ReplyRequest{Run: run, Ask: ev.Event.Ask.ID, Answer: event.Answer{Decision: decision}, Receipted: wire.Receipted{Receipt: "r"}}); err != nil {
				t.Error(err)
			}
		}
		if ev.Event.Kind == event.AskResolved && (ev.Event.Answer == nil || ev.Event.Receipt != "r") {
			t.Errorf("the answer is not the server's: %+v", ev.Event)
		}
	})
	for _, ev := range events {
		switch it := ev.Event.Item; {
		case ev.Event.Kind == event.TurnEnded:
			s.outcome = ev.Event.Outcome
		case ev.Event.Kind != event.ItemCompleted:
		case it.Kind == event.ItemCommand:
			s.commands = append(s.commands, *it)
		case it.Kind == event.ItemSystem:
			s.notes += it.Text
		}
	}
	s.text = text(events)
	return s
}

func as(profile thole.Profile, prompt string) wire.RunRequest {
	req := request(prompt)
	req.Session.Profile = profile
	return req
}

// A workspace is set up once before its first agent, as the user may see, and an agent
// hears of a setup that failed.
func TestSetupRunsOnce(t *testing.T) {
	t.Parallel()
	dir, c := place(t, 0, map[string]string{".thole/setup": "echo preparing; echo ran >> ran; exit 3\n", ".devcontainer.json": `{"postCreateCommand": "echo no > no"}`})
	first := watch(t, c, as(thole.ProfileFull, "hello"), "")
	if len(first.commands) != 1 || first.outcome != thole.OutcomeCompleted || len(first.asked) != 0 {
		t.Fatalf("%+v", first)
	}
	if it := first.commands[0]; it.State != event.StateFailed || *it.Command.ExitCode != 3 || it.Command.Output != "preparing\n" || !it.Command.User || it.Command.Line != "sh .thole/setup" {
		t.Errorf("%+v %+v", it, it.Command)
	}
	if !strings.Contains(first.text, ".thole/setup") || !strings.Contains(first.text, "preparing") || !strings.HasSuffix(first.text, "hello") {
		t.Errorf("the agent heard %q", first.text)
	}
	if second := watch(t, c, as(thole.ProfileFull, "again"), ""); len(second.commands) != 0 || second.text != "again" {
		t.Errorf("%+v", second)
	}
	// By hand it runs again, in any profile, and its success is nobody's news.
	if err := os.WriteFile(filepath.Join(dir, "workspace/.thole/setup"), []byte("#!/bin/sh\necho ran >> ran\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "workspace/.thole/setup"), 0o700); err != nil {
		t.Fatal(err)
	}
	hand := as(thole.ProfilePlan, "")
	hand.Turn.Input = thole.Setup()
	if third := watch(t, c, hand, ""); len(third.commands) != 1 || third.commands[0].State != event.StateCompleted || third.commands[0].Command.Line != "./.thole/setup" || third.outcome != thole.OutcomeCompleted {
		t.Errorf("%+v", third)
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "workspace/ran")); err != nil || string(ran) != "ran\nran\n" {
		t.Errorf("%q, %v", ran, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data/thole/setup.json")); err != nil {
		t.Error(err)
	}
}

// A setup is the repository's wish, not the user's: it needs what an agent's command
// needs.
func TestSetupByProfile(t *testing.T) {
	t.Parallel()
	script := map[string]string{".thole/setup": "echo x > made\n"}
	container := map[string]string{".devcontainer/devcontainer.json": `{"postCreateCommand": "echo x > made"}`}
	for name, c := range map[string]struct {
		files    map[string]string
		profile  thole.Profile
		decision event.Decision
		asked    int
		made     bool
		marked   bool
		outcome  thole.Outcome
		told     string
	}{
		"full":            {script, thole.ProfileFull, "", 0, true, true, thole.OutcomeCompleted, ""},
		"plan":            {script, thole.ProfilePlan, "", 0, false, false, thole.OutcomeCompleted, ""},
		"ask, allowed":    {script, thole.ProfileAsk, event.DecisionAllow, 1, true, true, thole.OutcomeCompleted, ""},
		"edit, allowed":   {script, thole.ProfileEdit, event.DecisionAllow, 1, true, true, thole.OutcomeCompleted, ""},
		"ask, denied":     {script, thole.ProfileAsk, event.DecisionDeny, 1, false, true, thole.OutcomeCompleted, "declined"},
		"ask, cancelled":  {script, thole.ProfileAsk, event.DecisionCancel, 1, false, false, thole.OutcomeInterrupted, ""},
		"container, full": {container, thole.ProfileFull, "", 0, true, true, thole.OutcomeCompleted, ""},
		"container, ask":  {container, thole.ProfileAsk, "", 0, false, true, thole.OutcomeCompleted, ""},
		"none":            {map[string]string{"README": ""}, thole.ProfileFull, "", 0, false, true, thole.OutcomeCompleted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, client := place(t, 0, c.files)
			got := watch(t, client, as(c.profile, "hello"), c.decision)
			_, made := os.Stat(filepath.Join(dir, "workspace/made"))
			_, marked := os.Stat(filepath.Join(dir, "data/thole/setup.json"))
			if len(got.asked) != c.asked || (made == nil) != c.made || (marked == nil) != c.marked || got.outcome != c.outcome || !strings.Contains(got.text, c.told) {
				t.Errorf("made %v, marked %v: %+v", made, marked, got)
			}
			if name == "container, ask" && !strings.Contains(got.notes, "thole thread setup t") {
				t.Errorf("nobody was told: %q", got.notes)
			}
			if c.asked > 0 && (got.asked[0].Kind != event.AskCommand || got.asked[0].Command != "sh .thole/setup" || !strings.Contains(got.asked[0].Reason, ".thole/setup")) {
				t.Errorf("%+v", got.asked)
			}
			// What an agent makes afterwards is not run by itself.
			if err := os.MkdirAll(filepath.Join(dir, "workspace/.thole"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "workspace/.thole/setup"), []byte("echo x > planted\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if !c.marked {
				return
			}
			watch(t, client, as(thole.ProfileFull, "again"), "")
			if _, err := os.Stat(filepath.Join(dir, "workspace/planted")); err == nil {
				t.Error("the agent's own script ran")
			}
		})
	}
}

// A setup that hangs is stopped and the turn goes on; one that is interrupted ends it and
// runs again next time.
func TestSetupThatHangs(t *testing.T) {
	t.Parallel()
	dir, c := place(t, time.Second, map[string]string{".thole/setup": "echo begun; sleep 600\n"})
	slow := watch(t, c, as(thole.ProfileFull, "hello"), "")
	if len(slow.commands) != 1 || slow.commands[0].State != event.StateFailed || !strings.Contains(slow.commands[0].Command.Output, "executor.setup_timeout") || !strings.Contains(slow.text, "stopped after 1s") || slow.outcome != thole.OutcomeCompleted {
		t.Errorf("%+v", slow)
	}
	if _, err := os.Stat(filepath.Join(dir, "data/thole/setup.json")); err != nil {
		t.Error(err)
	}
	dir, c = place(t, time.Hour, map[string]string{".thole/setup": "echo begun; sleep 600\n"})
	run := start(t, c, as(thole.ProfileFull, "hello"))
	events := collect(t, c, run, 0, func(ev wire.LogEvent) {
		if ev.Event.Kind == event.ItemDelta {
			if _, err := c.Cancel(t.Context(), wire.CancelRequest{Run: run}); err != nil {
				t.Error(err)
			}
		}
	})
	if end := events[len(events)-1].Event; end.Outcome != thole.OutcomeInterrupted {
		t.Errorf("%+v", end)
	}
	if _, err := os.Stat(filepath.Join(dir, "data/thole/setup.json")); err == nil {
		t.Error("an interrupted setup counts")
	}
}

// A workspace without a setup says so when it is asked for.
func TestNoSetupByHand(t *testing.T) {
	t.Parallel()
	_, c := place(t, 0, nil)
	req := request("")
	req.Turn.Input = thole.Setup()
	run := start(t, c, req)
	events := collect(t, c, run, 0, nil)
	if end := events[len(events)-1].Event; end.Outcome != thole.OutcomeFailed || !strings.Contains(end.Error.Message, "no setup") || !strings.Contains(end.Error.Hint, ".thole/setup") {
		t.Errorf("%+v", end.Error)
	}
}
