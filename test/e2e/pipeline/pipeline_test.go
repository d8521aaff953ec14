package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/testkit/poll"
)

var providers = []string{"codex", "claude", "opencode"}

// One conversation with each real agent goes through everything a user does:
// edit, plan, ask, approve, steer, interrupt, crash, close, wake, and a removal
// after which only the object store is left.
func TestAConversation(t *testing.T) {
	t.Parallel()
	r := up(t, "THOLE_EXECUTOR_REMOVE_AFTER=1ms")
	for _, name := range providers {
		t.Run(name, func(t *testing.T) { conversation(t, r.session(t, name), name) })
	}
}

func conversation(t *testing.T, s *session, name string) {
	first := s.start("The password is heron.\nsim: todo [x] look | [~] write | rest ;; write a.txt hello\\n ;; say written", "")
	s.settle(first, "completed")
	info, ok := s.executor(t, s.id)
	if !ok || info.State != executor.Running {
		t.Fatalf("executor %+v", info)
	}
	if got, err := os.ReadFile(filepath.Join(s.home, "x", string(info.ID), "workspace", "a.txt")); err != nil || strings.TrimSpace(string(got)) != "hello" {
		t.Errorf("a.txt holds %q, %v", got, err)
	}
	var todos struct {
		Items []struct{ Content, State string }
	}
	s.call(t, "GET", "/sessions/"+s.id+"/todos", nil, &todos)
	if len(todos.Items) != 3 || todos.Items[0].State != "done" || todos.Items[1].State != "doing" {
		t.Errorf("todos %+v", todos.Items)
	}

	s.serves(t)

	id := s.start("sim: ask Which? | red | blue ;; say heard %tool%", "")
	q := s.asked(id)
	poll.Until(t, "the phase of one who waits", func() bool { return s.get(id).Phase == "waiting_human" })
	s.reply(q, map[string]any{"answers": map[string][]string{q.Questions[0].ID: {"blue"}}})
	if s.settle(id, "completed"); !strings.Contains(s.said(id), "blue") {
		t.Errorf("the answer did not arrive: %q", s.said(id))
	}

	id = s.start("sim: run touch approved.txt ;; say touched", "ask")
	s.reply(s.asked(id), map[string]any{"decision": "allow"})
	if at := s.settle(id, "completed").Time; at == nil || at.Model <= 0 || at.Human <= 0 || at.Overhead <= 0 {
		t.Errorf("a turn that waited for an approval spent %+v", at)
	}
	if _, err := os.Stat(filepath.Join(s.home, "x", string(info.ID), "workspace", "approved.txt")); err != nil {
		t.Error(err)
	}

	id = s.start("sim: run timeout 2 tail -f /dev/null ;; say went on", "")
	s.shows(id, command("timeout 2"))
	s.call(t, "POST", "/runs/"+id+"/steer", map[string]any{"text": "mind the gap"}, nil)
	if at := s.settle(id, "completed").Time; at == nil || at.Tools < 1500 || at.Model <= 0 || at.Human != 0 {
		t.Errorf("a turn whose command took two seconds spent %+v", at)
	}
	s.shows(id, func(it item) bool {
		return it.Kind == "user_message" && (strings.Contains(it.Text, "mind the gap") || len(it.Content) > 0 && strings.Contains(it.Content[0].Text, "mind the gap"))
	})

	id = s.start("sim: run timeout 60 tail -f /dev/null ;; say never", "")
	s.shows(id, command("timeout 60"))
	s.call(t, "POST", "/runs/"+id+"/cancel", nil, nil)
	if got := s.settle(id, "interrupted"); got.Phase != "canceled" {
		t.Errorf("phase %s", got.Phase)
	}

	// The agent's process alone dies: the turn says so, and the next one works.
	id = s.start("sim: run timeout 60 tail -f /dev/null ;; say never", "")
	s.shows(id, command("timeout 60"))
	s.killAgent(t, info, name)
	if got := s.settle(id, "failed"); got.Error == nil || got.Error.Code != "provider_crashed" {
		t.Errorf("the agent was killed, the run says %+v", got.Error)
	}
	if said := s.play("sim: say back, remember: %first%"); !strings.Contains(said, "heron") {
		t.Errorf("after the agent's death it said %q", said)
	}

	id = s.start("sim: write before.txt x ;; run timeout 3 tail -f /dev/null ;; say survived", "")
	s.shows(id, command("timeout 3"))
	s.kill(t, info)
	s.settle(id, "completed")

	s.owner(t, "thole/executor/close", map[string]string{"thread_id": s.id})
	poll.Until(t, "the executor's stop", func() bool {
		got, ok := s.executor(t, s.id)
		return ok && got.State == executor.Stopped
	})
	s.age(t, info, name)
	if said := s.play("sim: run cat a.txt ;; say again %tool%, remember: %first%"); !strings.Contains(said, "hello") || !strings.Contains(said, "heron") {
		t.Errorf("after a stop it said %q", said)
	}

	s.owner(t, "thole/executor/close", map[string]string{"thread_id": s.id})
	poll.Until(t, "the executor's stop", func() bool {
		got, ok := s.executor(t, s.id)
		return ok && got.State == executor.Stopped
	})
	poll.Until(t, "the executor's removal", func() bool { // due a moment after the stop was recorded
		s.owner(t, "thole/sweep", struct{}{})
		_, ok := s.executor(t, s.id)
		return !ok
	})
	if said := s.play("sim: run cat a.txt before.txt ;; say again %tool%, remember: %first%"); !strings.Contains(said, "hello") || !strings.Contains(said, "heron") {
		t.Errorf("after a removal it said %q", said)
	}
	if again, ok := s.executor(t, s.id); !ok || again.ID == info.ID {
		t.Errorf("executor %+v", again)
	}
}

// age makes a stopped executor one of an earlier version, whose conversations were in
// the workspace and recorded there.
func (s *session) age(t *testing.T, info executor.Info, name string) {
	t.Helper()
	at := filepath.Join(s.home, "x", string(info.ID))
	old := filepath.Join(at, "workspace", ".agent_data")
	if err := os.Rename(filepath.Join(at, "data"), old); err != nil {
		t.Fatal(err)
	}
	if mark := filepath.Join(old, "codex", ".thole-home"); name == "codex" {
		if err := os.WriteFile(mark, []byte("/workspace/.agent_data/codex"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Twelve turns of real agents at once: all succeed.
func TestTwelveAtOnce(t *testing.T) {
	r := up(t)
	begun := time.Now()
	type started struct {
		s  *session
		id string
	}
	var all []started
	for i := range 12 {
		s := r.session(t, providers[i%3])
		all = append(all, started{s, s.start("sim: run echo $((40+2)) > n.txt ;; run cat n.txt ;; say it is %tool%", "")})
	}
	for _, a := range all {
		if a.s.settle(a.id, "completed"); !strings.Contains(a.s.said(a.id), "42") {
			t.Errorf("said %q", a.s.said(a.id))
		}
	}
	r.idle(t, len(all), time.Since(begun))
}
