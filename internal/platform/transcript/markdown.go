package transcript

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
)

// markdown writes a document to read. Whatever a message contains, what comes after it
// is outside of it: code is fenced by more backticks than it has, and a fence that a
// message leaves open is closed.
type markdown struct{ *output }

func (m *markdown) begin(th fold.Thread, todos []view.Todo, now time.Time) {
	title := th.Title()
	if title == "" {
		title = "Untitled"
	}
	m.put("# ", line(title), "\n\n")
	facts := []string{"Thread " + string(th.ID), "started " + stamp(th.Created), "exported " + stamp(now)}
	if th.Settings.Provider != "" {
		facts = append(facts, "agent "+strings.TrimSuffix(th.Settings.Provider+"/"+th.Settings.Model, "/"))
	}
	m.put(strings.Join(facts, " · "), "\n\n")
	if th.Usage != (fold.Thread{}).Usage {
		m.put("Used in all: ", usage(view.OfUsage(th.Usage)), "\n\n")
	}
	if len(todos) > 0 {
		m.put("## Todos\n\n")
		for _, t := range todos {
			mark := " "
			if t.State == event.TodoDone {
				mark = "x"
			}
			m.put("- [", mark, "] ", line(t.Content))
			if t.State == event.TodoDoing || t.State == event.TodoCanceled {
				m.put(" (", string(t.State), ")")
			}
			m.put("\n")
		}
		m.put("\n")
	}
}

func (m *markdown) turn(t fold.Turn) {
	m.put("## Turn ", strconv.Itoa(t.Number), "\n\n", stamp(t.Created), "\n\n")
}

func (m *markdown) item(it view.Item) {
	who := ""
	if it.Parent != "" {
		who = " (of a sub-agent)"
	}
	switch it.Kind {
	case event.ItemUserMessage:
		m.put("### User\n\n")
		m.input(it.Content)
	case event.ItemMessage:
		m.put("### Agent", who, "\n\n", prose(it.Text))
	case event.ItemReasoning:
		m.put("### Reasoning", who, "\n\n")
		if it.Summary != "" {
			m.put(prose(it.Summary))
		}
		m.put(prose(it.Text))
	case event.ItemPlan:
		m.put("### Plan", who, "\n\n", prose(it.Text))
	case event.ItemCommand:
		m.put("### Command", who, "\n\n")
		m.command(it)
	case event.ItemFileChange:
		m.put("### Changed files", who, state(it.State), "\n\n")
		for _, c := range it.Changes {
			m.put(code(c.Path), ": ", c.Kind)
			if c.Move != "" {
				m.put(", moved to ", code(c.Move))
			}
			m.put("\n\n")
			if c.Diff != "" {
				m.put(fenced("diff", c.Diff))
			}
		}
	case event.ItemTool:
		m.put("### Tool", who, state(it.State), "\n\n")
		m.tool(it.Tool)
	case event.ItemCompaction:
		m.put("### Compaction\n\nThe agent shortened its context.\n\n", prose(it.Text))
	default:
		m.put("### Note\n\n", prose(it.Text))
	}
}

func (m *markdown) input(parts []view.Input) {
	for _, p := range parts {
		switch {
		case p.Type == "text":
			m.put(prose(p.Text))
		case strings.HasPrefix(p.URL, "data:image/"):
			m.put("![", p.Type, "](", p.URL, ")\n\n")
		case p.Type == thole.InputFile:
			m.put("[file] ", code(p.Name), "\n\n")
		default:
			m.put("[", p.Type, "] ", code(p.URL), "\n\n")
		}
	}
}

func (m *markdown) command(it view.Item) {
	c := it.Command
	if c == nil {
		return
	}
	m.put(fenced("sh", c.Line))
	if c.Output != "" {
		m.put(fenced("text", c.Output))
	}
	var facts []string
	if c.Dir != "" {
		facts = append(facts, "in "+code(c.Dir))
	}
	switch {
	case c.ExitCode != nil:
		facts = append(facts, "exit code "+strconv.Itoa(*c.ExitCode))
	case it.State != "" && it.State != event.StateCompleted:
		facts = append(facts, string(it.State))
	}
	if c.DurationMS > 0 {
		facts = append(facts, (time.Duration(c.DurationMS) * time.Millisecond).String())
	}
	if c.OutputDropped > 0 {
		facts = append(facts, fmt.Sprintf("%d bytes of the output were not kept", c.OutputDropped))
	}
	if c.User {
		facts = append(facts, "run by the user")
	}
	if len(facts) > 0 {
		m.put(strings.Join(facts, " · "), "\n\n")
	}
}

func (m *markdown) tool(t *view.ToolCall) {
	if t == nil {
		return
	}
	name := t.Name
	if t.Server != "" {
		name = t.Server + "/" + name
	}
	m.put(code(name), "\n\n")
	if len(t.Input) > 0 {
		m.put(fenced("json", string(t.Input)))
	}
	if len(t.Output) > 0 {
		m.put(fenced("json", string(t.Output)))
	}
	if t.Error != "" {
		m.put("Error: ", prose(t.Error))
	}
}

func (m *markdown) question(q view.Question) {
	m.put("### Question (", string(q.Kind), ")\n\n")
	for _, text := range []string{q.Title, q.Reason} {
		if text != "" && (len(q.Questions) == 0 || text != q.Questions[0].Text) {
			m.put(prose(text))
		}
	}
	if q.Command != "" {
		m.put(fenced("sh", q.Command))
	}
	for _, one := range q.Questions {
		m.put(prose(one.Text))
		for _, o := range one.Options {
			m.put("- ", line(o.Label))
			if o.Description != "" {
				m.put(": ", line(o.Description))
			}
			m.put("\n")
		}
		if len(one.Options) > 0 {
			m.put("\n")
		}
	}
	m.put("**Answer:** ", line(answerOf(q)), "\n\n")
}

// answerOf is an answer on one line. What was typed into a secret question is not there.
func answerOf(q view.Question) string {
	if q.Answer == nil {
		return string(q.State)
	}
	var parts []string
	if q.Answer.Decision != "" {
		parts = append(parts, string(q.Answer.Decision))
	}
	for _, one := range q.Questions {
		given, ok := q.Answer.Answers[one.ID]
		switch {
		case ok && one.Secret:
			parts = append(parts, "(secret)")
		case ok:
			parts = append(parts, strings.Join(given, ", "))
		}
	}
	if q.Answer.Message != "" {
		parts = append(parts, q.Answer.Message)
	}
	if len(q.Answer.Result) > 0 {
		parts = append(parts, string(q.Answer.Result))
	}
	if len(parts) == 0 {
		parts = append(parts, string(q.State))
	}
	return strings.Join(parts, "; ")
}

func (m *markdown) turnEnd(t fold.Turn) {
	outcome := string(t.Outcome)
	if outcome == "" {
		outcome = "running"
	}
	m.put("---\n\nTurn ", strconv.Itoa(t.Number), ": ", outcome, " · ", usage(view.OfUsage(t.Usage)), "\n\n")
	if t.Error != nil {
		m.put("Error: ", prose(t.Error.Message))
	}
}

func (m *markdown) end() {}
