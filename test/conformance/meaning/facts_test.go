package meaning

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tholehq/thole/internal/testkit/appschema"
)

// masked are the members that two servers cannot agree on, wherever they are, with why.
var masked = map[string]string{
	"id":       "made by each server",
	"threadId": "made by each server", "turnId": "made by each server", "itemId": "made by each server", "approvalId": "made by each server",
	"startedAtMs": "time", "completedAtMs": "time", "durationMs": "time",
	"processId": "a process of the machine",
	"source":    "codex names the tool by which it ran a command when the command is over",
}

// fact is a message about a command, an edit, an ask or usage, without what is masked.
type fact struct {
	Method string
	Value  any
}

// facts are what a turn's lines say, in their order. Each kind of ask and item is kept
// apart from what else the turn may say, and repeated diffs are one.
func facts(lines []appschema.Line, dir string) []fact {
	var out, used []fact // when a call is counted depends on the agent
	for _, l := range lines {
		if l.FromClient || l.Params == nil {
			continue
		}
		var v map[string]any
		if json.Unmarshal(l.Params, &v) != nil {
			continue
		}
		switch l.Method {
		case "item/started", "item/completed":
			item, _ := v["item"].(map[string]any)
			if item["type"] != "commandExecution" && item["type"] != "fileChange" {
				continue
			}
		case "item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/permissions/requestApproval", "thread/tokenUsage/updated", "turn/diff/updated":
		default:
			continue
		}
		f := fact{l.Method, tidy(v, dir)}
		switch {
		case f.Method == "thread/tokenUsage/updated":
			if !has(used, f) {
				used = append(used, f)
			}
		case f.Method != "turn/diff/updated" || !has(out, f):
			out = append(out, f)
		}
	}
	return append(out, used...)
}

func has(list []fact, f fact) bool {
	for _, o := range list {
		if o.Method == f.Method && fmt.Sprint(o.Value) == fmt.Sprint(f.Value) {
			return true
		}
	}
	return false
}

// tidy takes away what is masked and null, and names the thread's directory.
func tidy(v any, dir string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, child := range v {
			if masked[k] == "" && child != nil {
				out[k] = tidy(child, dir)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = tidy(child, dir)
		}
		return out
	case string:
		var lines []string
		for line := range strings.Lines(strings.ReplaceAll(v, dir, "$CWD")) {
			if !strings.HasPrefix(line, "index ") { // names of contents, which only git makes
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	return v
}

// each applies change to every object of the facts.
func each(list []fact, change func(map[string]any)) []fact {
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			change(v)
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	for _, f := range list {
		walk(f.Value)
	}
	return list
}

// core is a diff without its context: agents show more or fewer lines around a change.
func core(diff string) string {
	if !strings.Contains(diff, "@@ -") {
		return diff
	}
	var b strings.Builder
	var old, now int
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "@@"):
			var rest string
			_, _ = fmt.Sscanf(line, "@@ -%d%s", &old, &rest)
			_, after, _ := strings.Cut(line, "+")
			_, _ = fmt.Sscanf(after, "%d", &now)
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "diff "):
			b.WriteString(line)
		case line[0] == '-':
			fmt.Fprintf(&b, "%d%s", old, line)
			old++
		case line[0] == '+':
			fmt.Fprintf(&b, "%d%s", now, line)
			now++
		case line[0] == ' ':
			old++
			now++
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}
