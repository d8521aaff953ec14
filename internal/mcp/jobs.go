package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/unguarded"
)

// jobRun begins a command in the box of the thread.
func (s *Server) jobRun(ctx context.Context, a asker, raw json.RawMessage) (string, error) {
	p, err := read[struct {
		Command string `json:"command"`
		Summary string `json:"summary"`
		Timeout int64  `json:"timeout_seconds"`
	}](raw)
	if err != nil {
		return "", err
	}
	if err := a.acts("job_run"); err != nil {
		return "", err
	}
	timeout := time.Duration(p.Timeout) * time.Second
	switch {
	case !s.cfg.Inside:
		return "", thole.Errorf(thole.CodeUnsupported, "executors last for one turn here (executor.scope), so no job can outlive this one")
	case strings.TrimSpace(p.Command) == "" || len(p.Command) > maxCommand:
		return "", thole.Errorf(thole.CodeInvalid, "a command of at most %d bytes is needed", maxCommand)
	case p.Timeout < 0 || p.Timeout > int64(maxTimeout/time.Second):
		return "", thole.Errorf(thole.CodeInvalid, "timeout_seconds is at most %d", int(maxTimeout/time.Second))
	}
	summary := p.Summary
	if summary == "" {
		summary = p.Command
	}
	j, _, err := s.cfg.Jobs.Submit(ctx, a.actor(), delivery.Submit{
		ID: thole.NewID[thole.JobID](s.cfg.Now()), Owner: a.Owner, Address: delivery.Address{User: a.Owner.User, Thread: a.Thread}, Target: thole.TargetThole,
		TaskKind: "agent", Summary: oneLine(summary), Policy: thole.UnknownDeliveryPolicy,
		Command: &delivery.Command{Argv: []string{"sh", "-c", p.Command}, Timeout: timeout, Turn: a.Turn},
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Job %s runs. When it has ended, its output arrives as a message in a new turn: do not wait for it, and end your turn when there is nothing else to do.", j.ID), nil
}

// oneLine is a text as a line of a list shows it.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

const maxShown = 20

// jobStatus describes jobs of the thread.
func (s *Server) jobStatus(ctx context.Context, a asker, raw json.RawMessage) (string, error) {
	p, err := read[struct {
		ID string `json:"job_id"`
	}](raw)
	if err != nil {
		return "", err
	}
	if p.ID != "" {
		j, _, err := s.cfg.Jobs.Job(ctx, a.actor(), thole.JobID(p.ID))
		if err == nil && j.Thread != a.Thread && !unguarded.Build || thole.CodeOf(err) == thole.CodeNotFound {
			return "", thole.Errorf(thole.CodeNotFound, "this thread has no job %.64q", p.ID)
		}
		if err != nil {
			return "", err
		}
		return describe(j, true), nil
	}
	all, err := s.cfg.Jobs.Jobs(ctx, a.actor(), delivery.JobFilter{Thread: a.Thread, Limit: maxShown})
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "This thread has no jobs.", nil
	}
	lines := make([]string, len(all))
	for i, j := range all {
		lines[i] = describe(j, false)
	}
	return strings.Join(lines, "\n"), nil
}

func describe(j delivery.Job, whole bool) string {
	out := fmt.Sprintf("Job %s (%s) is %s", j.ID, j.TaskSummary, j.State)
	if j.ResultSummary != "" {
		out += ": " + j.ResultSummary
	}
	if whole && j.Inline != "" {
		out += "\n" + j.Inline
	} else if whole && j.Artifact != "" {
		out += "\nits output is longer than what is shown here, and is delivered with its result"
	}
	return out
}

// askUser makes a question an ask of the thread.
func (s *Server) askUser(ctx context.Context, a asker, raw json.RawMessage) (string, error) {
	p, err := read[struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
		Multiple bool     `json:"multiple"`
	}](raw)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(p.Question) == "" || len(p.Question) > maxQuestion || len(p.Options) > maxOptions {
		return "", thole.Errorf(thole.CodeInvalid, "a question of at most %d bytes with at most %d options is needed", maxQuestion, maxOptions)
	}
	q := event.Question{ID: "q1", Text: p.Question, Multi: p.Multiple, Free: true}
	parts := []string{"ask_user", string(a.Turn), p.Question}
	for _, o := range p.Options {
		if o == "" || len(o) > maxOption {
			return "", thole.Errorf(thole.CodeInvalid, "an option has from 1 to %d bytes", maxOption)
		}
		q.Options = append(q.Options, event.Option{Label: o})
		parts = append(parts, o)
	}
	answer, err := s.cfg.Ask(ctx, a.Turn, event.Ask{
		ID: provider.StableID[thole.AskID](parts...), Kind: event.AskInput, Questions: []event.Question{q},
		Decisions: []event.Decision{event.DecisionAllow, event.DecisionDeny, event.DecisionCancel},
	})
	if err != nil {
		return "", err
	}
	return answerText(answer), nil
}

// answerText is what the agent reads of an answer.
func answerText(a event.Answer) string {
	switch given := a.Answers["q1"]; {
	case a.Decision == event.DecisionDeny || a.Decision == event.DecisionCancel:
		if a.Message != "" {
			return "The user did not answer: " + a.Message
		}
		return "The user did not answer the question."
	case len(given) > 0:
		return "The user answered: " + strings.Join(given, ", ")
	}
	return "The user gave no answer."
}
