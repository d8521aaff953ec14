package modelsim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

func parseFault(verb, arg string) (*Fault, error) {
	f := &Fault{Kind: map[string]string{"http": FaultHTTP, "fail": FaultSSE, "cut": FaultCut, "hang": FaultHang}[verb]}
	var message []string
	for _, w := range strings.Fields(arg) {
		key, value, pair := strings.Cut(w, "=")
		n, numErr := strconv.Atoi(strings.TrimPrefix(w, "x"))
		switch {
		case len(message) == 0 && strings.HasPrefix(w, "x") && numErr == nil:
			f.Times = n
		case f.Kind == FaultHTTP && f.Status == 0 && numErr == nil:
			f.Status = n
		case f.Kind == FaultHTTP && pair && key == "retry-after":
			f.RetryAfter = value
		case f.Kind == FaultHTTP && pair && key == "type":
			f.Type = value
		case f.Kind == FaultSSE && f.Type == "":
			f.Type = w
		case f.Kind == FaultHang && len(message) == 0:
			d, err := time.ParseDuration(w)
			if err != nil {
				return nil, fmt.Errorf("directive hang: %w", err)
			}
			f.ForMS = int(d.Milliseconds())
		default:
			message = append(message, w)
		}
	}
	if f.Message = strings.Join(message, " "); f.Message == "" {
		f.Message = "scripted failure"
	}
	if f.Kind == FaultHTTP && (f.Status < 400 || f.Status > 599) {
		return nil, fmt.Errorf("directive http: %q has no status from 400 to 599", arg)
	}
	return f, nil
}

func parseCall(verb, arg string) (Call, error) {
	first, rest, _ := strings.Cut(arg, " ")
	switch verb {
	case VerbRun:
		return Call{Verb: VerbRun, Command: arg}, nil
	case "escalate":
		return Call{Verb: VerbRun, Command: arg, Escalate: true}, nil
	case VerbRead:
		return Call{Verb: VerbRead, Path: arg}, nil
	case VerbWrite:
		return Call{Verb: VerbWrite, Path: first, Text: unescape(rest)}, nil
	case VerbEdit:
		before, after, ok := strings.Cut(rest, " => ")
		if !ok {
			return Call{}, fmt.Errorf("directive edit wants PATH OLD => NEW, got %q", arg)
		}
		return Call{Verb: VerbEdit, Path: first, Old: unescape(before), New: unescape(after)}, nil
	case VerbPatch, VerbAgent:
		return Call{Verb: verb, Text: unescape(arg)}, nil
	case VerbTodo:
		return Call{Verb: VerbTodo, Todos: parseTodos(arg)}, nil
	case VerbAsk:
		parts := bar(arg)
		if len(parts) == 0 {
			return Call{}, fmt.Errorf("directive ask needs a question")
		}
		return Call{Verb: VerbAsk, Text: parts[0], Options: parts[1:]}, nil
	case VerbGive:
		if !json.Valid([]byte(arg)) {
			return Call{}, fmt.Errorf("directive give wants JSON, got %q", arg)
		}
		return Call{Verb: VerbGive, Text: arg}, nil
	case VerbCustom:
		return Call{Verb: VerbCustom, Name: first, Text: unescape(rest)}, nil
	case VerbCall:
		if rest == "" {
			rest = "{}"
		}
		if !json.Valid([]byte(rest)) {
			return Call{}, fmt.Errorf("directive call %s: the input is not JSON", first)
		}
		return Call{Verb: VerbCall, Name: first, Input: json.RawMessage(rest)}, nil
	}
	return Call{}, fmt.Errorf("unknown directive %q", verb)
}

func parseTodos(arg string) []Todo {
	var todos []Todo
	for _, p := range bar(arg) {
		status := "pending"
		for mark, s := range map[string]string{"[x]": "completed", "[~]": "in_progress", "[ ]": "pending"} {
			if text, ok := strings.CutPrefix(p, mark); ok {
				p, status = strings.TrimSpace(text), s
				break
			}
		}
		todos = append(todos, Todo{Text: p, Status: status})
	}
	return todos
}

func bar(arg string) []string {
	var parts []string
	for p := range strings.SplitSeq(arg, "|") {
		if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

func unescape(s string) string { return strings.ReplaceAll(s, `\n`, "\n") }

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}
