package pipeline

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// session is one thread as an HTTP client sees it.
type session struct {
	*rig
	t  testing.TB
	id string
}

type item struct {
	Kind    string
	Text    string
	State   string
	Command *struct{ Line, Output string }
	Content []struct{ Text string }
}

type run struct {
	ID, Phase, Outcome string
	Error              *struct{ Code, Message, Hint string }
	Usage              struct{ Input, Output int }
	Time               *spent
}

// spent is what a run waited for, in milliseconds.
type spent struct {
	Model    int `json:"model_ms"`
	Tools    int `json:"tools_ms"`
	Human    int `json:"human_ms"`
	Overhead int `json:"overhead_ms"`
}

type question struct {
	QuestionID string `json:"question_id"`
	RunID      string `json:"run_id"`
	Kind       string
	Questions  []struct{ ID string }
}

func (r *rig) session(t testing.TB, provider string) *session {
	t.Helper()
	body := map[string]any{"provider": provider, "execution_profile": "full"}
	if provider == "claude" {
		body["model"] = modelsim.ClaudeModel // it offers its todo list to no other
	}
	if provider == "codex" && r.users {
		body["model"] = "gpt-5.5" // it offers tools that a script knows to this one
	}
	var got struct{ ID string }
	r.call(t, "POST", "/sessions", body, &got)
	return &session{rig: r, t: t, id: got.ID}
}

// start begins a run; a profile holds for this run only.
func (s *session) start(prompt, profile string) string {
	s.t.Helper()
	body := map[string]any{"text": prompt}
	if profile != "" {
		body["execution_profile"], body["once"] = profile, true
	}
	var got run
	s.call(s.t, "POST", "/sessions/"+s.id+"/runs", body, &got)
	return got.ID
}

func (s *session) get(id string) (r run) {
	s.t.Helper()
	s.call(s.t, "GET", "/runs/"+id, nil, &r)
	return r
}

// settle waits until the pipeline is done with a run and checks how it ended.
func (s *session) settle(id, outcome string) run {
	s.t.Helper()
	var got run
	poll.Until(s.t, "the end of run "+id, func() bool {
		got = s.get(id)
		return got.Phase == "succeeded" || got.Phase == "failed" || got.Phase == "canceled"
	})
	if got.Outcome != outcome {
		s.t.Fatalf("run ended %q, want %q: %+v %+v; said %q", got.Outcome, outcome, got, got.Error, s.said(id))
	}
	return got
}

// play runs a prompt to its completion and returns what was said and printed.
func (s *session) play(prompt string) string {
	s.t.Helper()
	id := s.start(prompt, "")
	s.settle(id, "completed")
	return s.said(id)
}

func (s *session) items(id string) []item {
	s.t.Helper()
	var page struct{ Items []item }
	s.call(s.t, "GET", "/runs/"+id+"/items", nil, &page)
	return page.Items
}

func (s *session) said(id string) string {
	s.t.Helper()
	var b strings.Builder
	for _, it := range s.items(id) {
		if it.Kind == "message" {
			b.WriteString(it.Text + "\n")
		}
		if it.Command != nil {
			b.WriteString(it.Command.Output + "\n")
		}
	}
	return b.String()
}

// asked waits for a question of a run.
func (s *session) asked(id string) (q question) {
	s.t.Helper()
	poll.Until(s.t, "a question", func() bool {
		var page struct{ Items []question }
		s.call(s.t, "GET", "/runs/"+id+"/human-loop?state=pending", nil, &page)
		if len(page.Items) > 0 {
			q = page.Items[0]
		}
		return len(page.Items) > 0
	})
	return q
}

func (s *session) reply(q question, answer map[string]any) {
	s.t.Helper()
	s.call(s.t, "POST", "/runs/"+q.RunID+"/human-loop/"+q.QuestionID+"/reply", answer, nil)
}

// shows waits until a run has an item.
func (s *session) shows(id string, want func(item) bool) {
	s.t.Helper()
	poll.Until(s.t, "an item", func() bool {
		for _, it := range s.items(id) {
			if want(it) {
				return true
			}
		}
		return false
	})
}

func command(part string) func(item) bool {
	return func(it item) bool { return it.Command != nil && strings.Contains(it.Command.Line, part) }
}
