package modelsim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const marker = "sim:"

// directives splits a prompt into its directives and the remaining words.
func directives(prompt string) (found []string, rest string) {
	var plain []string
	if quoted := strings.TrimSpace(prompt); len(quoted) > 1 && quoted[0] == '"' && quoted[len(quoted)-1] == '"' {
		prompt = quoted[1 : len(quoted)-1] // opencode run quotes its argument
	}
	for line := range strings.Lines(prompt) {
		before, body, ok := cutMarker(line)
		if !ok || strings.HasPrefix(line, ">") { // a quotation asks for nothing
			plain = append(plain, line)
			continue
		}
		plain = append(plain, before)
		if strings.HasPrefix(body, "{") {
			found = append(found, body)
			continue
		}
		for part := range strings.SplitSeq(body, ";;") {
			if part = strings.TrimSpace(part); part != "" {
				found = append(found, part)
			}
		}
	}
	return found, strings.TrimSpace(strings.Join(plain, ""))
}

// cutMarker finds the marker as a word of its own.
func cutMarker(line string) (before, body string, ok bool) {
	before, body, ok = strings.Cut(line, marker)
	if !ok {
		return line, "", false
	}
	body = strings.TrimSpace(body)
	if before == "" {
		return before, body, true
	}
	last := rune(before[len(before)-1])
	if unicode.IsLetter(last) || unicode.IsDigit(last) {
		return line, "", false
	}
	return before, body, true
}

// compile turns directives into a script. An error becomes the model's answer, so
// that a mistake in a prompt is seen by its author.
func (s *Sim) compile(found []string) (Script, error) {
	var script Script
	cur := Step{}
	open := false
	flush := func() {
		if open {
			script.Steps = append(script.Steps, cur)
		}
		cur, open = Step{}, false
	}
	for _, d := range found {
		if strings.HasPrefix(d, "{") {
			flush()
			part, err := ParseScript([]byte(d))
			if err != nil {
				return Script{}, err
			}
			script.Steps = append(script.Steps, part.Steps...)
			continue
		}
		verb, arg, _ := strings.Cut(d, " ")
		arg = strings.TrimSpace(arg)
		joined := verb == "and"
		if joined {
			verb, arg, _ = strings.Cut(arg, " ")
		}
		if verb == "then" || (len(cur.Calls) > 0 && !joined) {
			flush()
		}
		if verb == "then" {
			continue
		}
		if verb == "script" {
			flush()
			part, ok := s.script(arg)
			if !ok {
				return Script{}, fmt.Errorf("no script named %q", arg)
			}
			script.Steps = append(script.Steps, part.Steps...)
			continue
		}
		if err := cur.apply(verb, arg); err != nil {
			return Script{}, err
		}
		open = true
	}
	flush()
	return script, nil
}

func (st *Step) apply(verb, arg string) error {
	switch verb {
	case "say":
		st.Text = join(st.Text, unescape(arg))
		return nil
	case "think":
		st.Reasoning = join(st.Reasoning, unescape(arg))
		return nil
	case "slow", "wait", "usage", "stop":
		return st.modify(verb, arg)
	case "http", "fail", "cut", "hang":
		fault, err := parseFault(verb, arg)
		st.Fault = fault
		return err
	}
	call, err := parseCall(verb, arg)
	if err != nil {
		return err
	}
	st.Calls = append(st.Calls, call)
	return nil
}

func (st *Step) modify(verb, arg string) error {
	words := strings.Fields(arg)
	if len(words) == 0 {
		return fmt.Errorf("directive %s needs a value", verb)
	}
	switch verb {
	case "stop":
		st.Stop = words[0]
		return nil
	case "usage":
		st.Usage = &Usage{}
		return st.Usage.parse(words)
	}
	d, err := time.ParseDuration(words[0])
	if err != nil {
		return fmt.Errorf("directive %s: %w", verb, err)
	}
	if verb == "wait" {
		st.WaitMS = int(d.Milliseconds())
		return nil
	}
	st.DelayMS = int(d.Milliseconds())
	if len(words) > 1 {
		if st.Chunk, err = strconv.Atoi(words[1]); err != nil {
			return fmt.Errorf("directive slow: %w", err)
		}
	}
	return nil
}

func (u *Usage) parse(words []string) error {
	fields := map[string]*int{"in": &u.Input, "cached": &u.Cached, "cachewrite": &u.CacheWrite, "out": &u.Output, "reasoning": &u.Reasoning}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		field, ok := fields[key]
		if !ok {
			return fmt.Errorf("directive usage: unknown key %q", key)
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("directive usage: %w", err)
		}
		*field = n
	}
	return nil
}
