package cli

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// dialog asks a person one thing and returns the answer. It has no default: an empty line
// answers nothing. errNobody leaves the ask open.
func (e *Env) dialog(ctx context.Context, in *typist, who string, a app.Ask) (app.Answer, error) {
	d := &prompt{env: e, in: in, ask: a, who: who}
	d.cut = e.showAsk(e.Err, who, a, false)
	in.forget()
	switch {
	case len(a.Questions) > 0 && a.Kind != string(event.AskPlan):
		return d.questions(ctx)
	case a.Kind == string(event.AskElicitation):
		return d.fields(ctx)
	}
	return d.verdict(ctx)
}

// answerable reports whether a person can answer an ask here: a tool that another client
// runs is called, and that client answers.
func answerable(a app.Ask) bool { return a.Kind != string(event.AskTool) }

type prompt struct {
	env *Env
	in  *typist
	ask app.Ask
	who string
	cut bool
}

// choice is one way to answer, by its letter.
type choice struct{ key, word, about string }

func (d *prompt) choices() []choice {
	offered := func(v event.Decision) bool {
		return len(d.ask.Decisions) == 0 || slices.Contains(d.ask.Decisions, string(v))
	}
	list := []choice{{"y", "yes", ""}}
	if offered(event.DecisionAlways) && len(d.ask.Decisions) > 0 {
		list = append(list, choice{"a", "always", "always: do not ask for the like again"})
	}
	list = append(list, choice{"n", "no", "no; n TEXT gives the agent the reason"})
	if offered(event.DecisionCancel) && len(d.ask.Decisions) > 0 {
		list = append(list, choice{"c", "cancel", "no, and stop the turn"})
	}
	if d.editable() != nil {
		list = append(list, choice{"e", "edit", "write another command"})
	}
	if d.cut {
		list = append(list, choice{"v", "view", "show all of it"})
	}
	return list
}

// editable is the input of the call that an answer may replace, nil where it may not.
func (d *prompt) editable() map[string]json.RawMessage {
	var in map[string]json.RawMessage
	if d.ask.Command == "" || strictjson.Unmarshal(d.ask.Input, &in) != nil || in["command"] == nil {
		return nil
	}
	return in
}

// line prints a prompt and reads a line. Keys that write no text, as the arrows, are not an
// answer: a terminal sends them within the line.
func (d *prompt) line(ctx context.Context, label string) (string, error) {
	for {
		d.env.paint(d.env.Err, bold, func(w io.Writer) { put(w, label, " › ") })
		said, err := d.in.line(ctx)
		if err != nil || !strings.Contains(said, "\x1b") {
			return said, err
		}
		putln(d.env.Err, "  not an answer: arrows and other such keys do nothing here; type it again")
	}
}

func (d *prompt) verdict(ctx context.Context) (app.Answer, error) {
	for {
		list := d.choices()
		keys := make([]string, len(list))
		for i, c := range list {
			keys[i] = c.key
			if c.about != "" {
				putf(d.env.Err, "  %s  %s\n", c.key, c.about)
			}
		}
		said, err := d.line(ctx, "allow? "+strings.Join(keys, "/"))
		if err != nil {
			return app.Answer{}, err
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(said), " ")
		i := slices.IndexFunc(list, func(c choice) bool { return strings.EqualFold(word, c.key) || strings.EqualFold(word, c.word) })
		if i < 0 || rest != "" && list[i].key != "n" {
			putln(d.env.Err, "  not an answer:", clip(said, 40))
			continue
		}
		switch list[i].key {
		case "y":
			return app.Answer{Decision: string(event.DecisionAllow)}, nil
		case "a":
			return app.Answer{Decision: string(event.DecisionAlways)}, nil
		case "n":
			return app.Answer{Decision: string(event.DecisionDeny), Message: strings.TrimSpace(rest)}, nil
		case "c":
			return app.Answer{Decision: string(event.DecisionCancel)}, nil
		case "v":
			d.cut = d.env.showAsk(d.env.Err, d.who, d.ask, true)
		case "e":
			if a, err := d.edit(ctx); err != nil || a.Decision != "" {
				return a, err
			}
		}
	}
}

// edit asks for another command, and returns no decision for an empty one.
func (d *prompt) edit(ctx context.Context) (app.Answer, error) {
	said, err := d.line(ctx, "run instead (empty: go back)")
	if err != nil || strings.TrimSpace(said) == "" {
		return app.Answer{}, err
	}
	in := d.editable()
	in["command"], _ = json.Marshal(said)
	raw, err := json.Marshal(in)
	return app.Answer{Decision: string(event.DecisionAllow), Input: raw}, err
}

// questions asks each of them, by number of an option or in words.
func (d *prompt) questions(ctx context.Context) (app.Answer, error) {
	out := app.Answer{Answers: map[string][]string{}}
	_, shown := askText(d.ask)
	for _, q := range d.ask.Questions {
		if lines := strings.Split(q.Question, "\n"); d.cut || !slices.Equal(lines, shown) {
			d.env.showTheirs(d.env.Err, lines, true)
		}
		for i, o := range q.Options {
			line := strconv.Itoa(i+1) + ". " + o.Label
			if o.Description != "" {
				line += " (" + o.Description + ")"
			}
			d.env.showTheirs(d.env.Err, []string{line}, true)
		}
		got, err := d.one(ctx, q)
		if err != nil {
			return app.Answer{}, err
		}
		out.Answers[q.ID] = got
	}
	return out, nil
}

func (d *prompt) one(ctx context.Context, q app.Question) ([]string, error) {
	label := "your answer"
	switch {
	case len(q.Options) > 0 && q.IsOther:
		label = "a number, or your own words"
	case len(q.Options) > 0:
		label = "a number from 1 to " + strconv.Itoa(len(q.Options))
	}
	for {
		var said string
		var err error
		if q.IsSecret {
			d.env.paint(d.env.Err, bold, func(w io.Writer) { put(w, label, " (not shown) › ") })
			said, err = d.in.secret(ctx)
			putln(d.env.Err)
		} else {
			said, err = d.line(ctx, label)
		}
		if err != nil {
			return nil, err
		}
		if said = strings.TrimSpace(said); said == "" {
			continue
		}
		if got := chosen(q, said); got != nil {
			return got, nil
		}
		if q.IsOther || len(q.Options) == 0 {
			return []string{said}, nil
		}
		putln(d.env.Err, "  not an answer:", clip(said, 40))
	}
}

// chosen are the options that a line names, by numbers or by a label; nil for none.
func chosen(q app.Question, said string) (labels []string) {
	for _, o := range q.Options {
		if strings.EqualFold(said, o.Label) {
			return []string{o.Label}
		}
	}
	for part := range strings.SplitSeq(said, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > len(q.Options) {
			return nil
		}
		labels = append(labels, q.Options[n-1].Label)
	}
	return labels
}
