package modelsim

import (
	"slices"
	"strconv"
	"strings"
)

// How a request was answered, as Request.Kind says it.
const (
	KindScript = "script" // by directives or a named script
	KindCanned = "canned" // a plain prompt
	KindSide   = "side"   // a CLI's own request, such as a title
	KindOther  = "other"  // not a model request
)

// choice is what one request gets.
type choice struct {
	kind   string
	step   Step
	n      int    // number of the step
	prompt string // the prompt that is being answered, with its directives
	origin int    // index of that prompt in the history
}

// pick decides the answer from the history alone.
func (s *Sim) pick(c *conversation) choice {
	if len(c.tools) == 0 && c.system != "" {
		return choice{kind: KindSide, step: Step{Text: title(lastPrompt(c.turns))}, origin: -1}
	}
	at, found := s.origin(c)
	if at < 0 {
		return choice{kind: KindCanned, step: Step{Text: "There is no prompt to answer."}, origin: -1}
	}
	prompt := c.turns[at].text
	ch := choice{kind: KindScript, prompt: prompt, origin: at, n: modelTurns(c.turns[at+1:])}
	var script Script
	var err error
	switch {
	case len(found) > 0:
		script, err = s.compile(found)
	case s.opts.Default != nil:
		script = *s.opts.Default
	default:
		ch.kind, script = KindCanned, Wish(prompt, s.opts)
	}
	switch {
	case err != nil:
		ch.step = Step{Text: "cannot read the directives: " + err.Error()}
	case ch.n < len(script.Steps):
		ch.step = script.Steps[ch.n]
	default:
		ch.step = Step{Text: "done"}
	}
	_, words := directives(lastPrompt(c.turns))
	fill := strings.NewReplacer("%tool%", lastTools(c.turns), "%user%", words, "%first%", firstWords(c.turns), "%prompts%", strconv.Itoa(prompts(c.turns)))
	ch.step.Text = fill.Replace(ch.step.Text)
	if strings.Contains(prompt, imagesMark) {
		seen := strings.Join(images(c.body), ", ")
		ch.step.Text = strings.ReplaceAll(ch.step.Text, imagesMark, seen)
		ch.step.Calls = slices.Clone(ch.step.Calls)
		for i := range ch.step.Calls {
			ch.step.Calls[i].Text = strings.ReplaceAll(ch.step.Calls[i].Text, imagesMark, seen)
		}
	}
	ch.step.Reasoning = fill.Replace(ch.step.Reasoning)
	return ch
}

// origin finds the prompt that the model is answering: the newest one, unless it
// is plain and came while a scripted turn was still calling tools. Such a prompt
// steers the turn and the script goes on.
func (s *Sim) origin(c *conversation) (at int, found []string) {
	at = -1
	for i := len(c.turns) - 1; i >= 0; i-- {
		t := c.turns[i]
		if t.who != user {
			continue
		}
		if t.text == interrupted {
			if at >= 0 {
				return at, nil
			}
			continue
		}
		found, _ := directives(t.text)
		if at < 0 {
			at = i
			if len(found) > 0 {
				return i, found
			}
			continue
		}
		if len(found) == 0 {
			continue
		}
		if steered(c.turns[i+1:at]) && s.unfinished(found, c.turns[i+1:at]) {
			return i, found
		}
		break
	}
	return at, nil
}

// steered reports whether the stretch before a prompt ends with a tool's result: the
// model had not had its last word.
func steered(between []turn) bool {
	n := len(between)
	return n > 0 && between[n-1].who == tool && !strings.Contains(strings.ToLower(between[n-1].text), "aborted")
}

func (s *Sim) unfinished(found []string, between []turn) bool {
	script, err := s.compile(found)
	return err == nil && modelTurns(between) < len(script.Steps)
}

// modelTurns counts the model's turns. Calls of one response may be distinguished
// from each other by their results; their ids say that they are one turn.
func modelTurns(turns []turn) int {
	n := 0
	seen := map[string]bool{}
	for _, t := range turns {
		if t.who != model {
			continue
		}
		fresh := len(t.calls) == 0
		for _, id := range t.calls {
			if resp := responseOf(id); resp == "" || !seen[resp] {
				seen[resp] = true
				fresh = true
			}
		}
		if fresh {
			n++
		}
	}
	return n
}

// callID names a call so that its response can be read back from the history.
func callID(prefix, nonce string, i int) string {
	return prefix + nonce + "x" + string(rune('a'+i%26))
}

func responseOf(id string) string {
	_, rest, ok := strings.Cut(id, "sim")
	if !ok {
		return ""
	}
	nonce, _, _ := strings.Cut(rest, "x")
	return nonce
}

func lastPrompt(turns []turn) string {
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].who == user && turns[i].text != interrupted {
			return turns[i].text
		}
	}
	return ""
}

// firstWords is the conversation's first scripted prompt without its directives:
// what a model remembers of its beginning.
func firstWords(turns []turn) string {
	for _, t := range turns {
		if found, words := directives(t.text); t.who == user && len(found) > 0 {
			return clip(words, 2000)
		}
	}
	return ""
}

// prompts counts the scripted prompts of the conversation.
func prompts(turns []turn) (n int) {
	for _, t := range turns {
		if found, _ := directives(t.text); t.who == user && len(found) > 0 {
			n++
		}
	}
	return n
}

// lastTools is the text of the results that followed the newest model turn.
func lastTools(turns []turn) string {
	var texts []string
	for i := len(turns) - 1; i >= 0 && turns[i].who != model; i-- {
		if turns[i].who == tool {
			texts = append(texts, turns[i].text)
		}
	}
	slices.Reverse(texts)
	return strings.Join(texts, "\n")
}
