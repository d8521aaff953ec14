package testprovider

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/modelsim"
)

// op is one thing the agent does.
type op struct {
	verb string
	arg  string
}

// parse reads the directives of a prompt: those of internal/modelsim, so that
// one prompt makes this provider and a real CLI on the scripted model do alike.
// A prompt without any is repeated, or in a demo taken as a wish.
func (s *session) parse(prompt string) (ops []op, rest string) {
	if ops, rest = directives(prompt); len(ops) > 0 {
		return ops, rest
	}
	if s.demo {
		return wish(rest), rest
	}
	return []op{{"say", rest}}, rest
}

// wish makes operations of what the scripted model would do.
func wish(prompt string) (ops []op) {
	add := func(verb, arg string) { ops = append(ops, op{verb, strings.ReplaceAll(arg, "\n", `\n`)}) }
	for _, step := range modelsim.Wish(prompt, modelsim.Options{Demo: true, Sample: true}).Steps {
		if step.Reasoning != "" {
			add("think", step.Reasoning)
		}
		if step.Text != "" {
			add("say", step.Text)
		}
		for _, c := range step.Calls {
			switch c.Verb {
			case modelsim.VerbRun:
				add("run", c.Command)
			case modelsim.VerbRead:
				add("read", c.Path)
			case modelsim.VerbWrite:
				add("write", c.Path+" "+c.Text)
			case modelsim.VerbEdit:
				add("edit", c.Path+" "+c.Old+" => "+c.New)
			case modelsim.VerbAsk:
				add("ask", strings.Join(append([]string{c.Text}, c.Options...), " | "))
			case modelsim.VerbTodo:
				var all []string
				for _, t := range c.Todos {
					all = append(all, map[string]string{"completed": "[x] ", "in_progress": "[~] "}[t.Status]+t.Text)
				}
				add("todo", strings.Join(all, " | "))
			}
		}
	}
	return ops
}

func directives(prompt string) (ops []op, rest string) {
	var plain []string
	for line := range strings.Lines(prompt) {
		before, body, ok := strings.Cut(line, "sim:")
		plain = append(plain, before)
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(strings.TrimSpace(body), ";;") {
			part = strings.TrimPrefix(strings.TrimSpace(part), "and ")
			verb, arg, _ := strings.Cut(part, " ")
			if verb != "" && verb != "then" {
				ops = append(ops, op{verb, strings.TrimSpace(arg)})
			}
		}
	}
	return ops, strings.TrimSpace(strings.Join(plain, ""))
}

func unescape(s string) string { return strings.ReplaceAll(s, `\n`, "\n") }

func bar(s string) []string {
	var out []string
	for p := range strings.SplitSeq(s, "|") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// todos reads "[x] done | [~] doing | [-] canceled | open".
func todos(arg string) []event.Todo {
	var out []event.Todo
	for i, p := range bar(arg) {
		state := event.TodoPending
		for mark, s := range map[string]event.TodoState{"[x]": event.TodoDone, "[~]": event.TodoDoing, "[-]": event.TodoCanceled, "[ ]": event.TodoPending} {
			if text, ok := strings.CutPrefix(p, mark); ok {
				p, state = strings.TrimSpace(text), s
				break
			}
		}
		out = append(out, event.Todo{ID: thole.TodoID(strconv.Itoa(i + 1)), Content: p, State: state, Order: i})
	}
	return out
}

// addUsage reads "in=10 cached=5 cachewrite=1 out=7 reasoning=2" into u, as one model call.
func addUsage(u *thole.Usage, arg string) error {
	before := u.Tokens()
	for _, w := range strings.Fields(arg) {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		field := map[string]*int64{"in": &u.Input, "cached": &u.CacheRead, "cachewrite": &u.CacheWrite, "out": &u.Output, "reasoning": &u.Reasoning}[key]
		if err != nil || field == nil {
			return fmt.Errorf("usage: cannot read %q", w)
		}
		*field += n
	}
	u.Last = &thole.Tokens{Input: u.Input - before.Input, Output: u.Output - before.Output, Reasoning: u.Reasoning - before.Reasoning,
		CacheRead: u.CacheRead - before.CacheRead, CacheWrite: u.CacheWrite - before.CacheWrite}
	return nil
}

// question reads "QUESTION | A | B"; a leading "multi" allows several answers.
func question(arg string) event.Question {
	q := event.Question{ID: "q1", Free: true}
	if rest, ok := strings.CutPrefix(arg, "multi "); ok {
		arg, q.Multi = rest, true
	}
	parts := bar(arg)
	if len(parts) > 0 {
		q.Text = parts[0]
		for _, p := range parts[1:] {
			q.Options = append(q.Options, event.Option{Label: p})
		}
	}
	return q
}

// slow reads "50ms [CHUNK]".
func slow(arg string) (time.Duration, int, error) {
	words := strings.Fields(arg)
	if len(words) == 0 {
		return 0, 0, fmt.Errorf("slow needs a duration")
	}
	d, err := time.ParseDuration(words[0])
	chunk := 0
	if err == nil && len(words) > 1 {
		chunk, err = strconv.Atoi(words[1])
	}
	return d, chunk, err
}
