package modelsim

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
)

// toolCall is a call as an API carries it: JSON input, or free-form text.
type toolCall struct {
	name   string
	input  json.RawMessage
	custom string
	isText bool
}

// form builds the input of one CLI's tool for a verb.
type form struct {
	tool  string
	input func(Call, *conversation) any
}

// forms lists for each verb the tools that can carry it, in order of preference.
// The tools of the three CLIs differ in name, so one list serves all.
func forms(verb string) []form {
	switch verb {
	case VerbRun:
		return []form{
			{"exec_command", func(k Call, _ *conversation) any {
				in := map[string]any{"cmd": k.Command}
				if k.Escalate {
					in["sandbox_permissions"] = "require_escalated"
					in["justification"] = "The script asks to run this outside the sandbox."
				}
				return in
			}},
			{"shell_command", func(k Call, _ *conversation) any { return map[string]any{"command": k.Command} }},
			{"Bash", described},
			{"bash", described},
		}
	case VerbRead:
		return []form{
			{"Read", func(k Call, c *conversation) any { return map[string]any{"file_path": absolute(k.Path, c)} }},
			{"read", func(k Call, c *conversation) any { return map[string]any{"filePath": absolute(k.Path, c)} }},
			{"exec_command", func(k Call, _ *conversation) any {
				return map[string]any{"cmd": "cat -- " + strconv.Quote(k.Path)}
			}},
		}
	case VerbWrite:
		return []form{
			{"Write", func(k Call, c *conversation) any {
				return map[string]any{"file_path": absolute(k.Path, c), "content": k.Text}
			}},
			{"write", func(k Call, c *conversation) any {
				return map[string]any{"filePath": absolute(k.Path, c), "content": k.Text}
			}},
			{"apply_patch", func(k Call, _ *conversation) any { return patchText(addFile(k.Path, k.Text)) }},
		}
	case VerbEdit:
		return []form{
			{"Edit", func(k Call, c *conversation) any {
				return map[string]any{"file_path": absolute(k.Path, c), "old_string": k.Old, "new_string": k.New}
			}},
			{"edit", func(k Call, c *conversation) any {
				return map[string]any{"filePath": absolute(k.Path, c), "oldString": k.Old, "newString": k.New}
			}},
			{"apply_patch", func(k Call, _ *conversation) any { return patchText(updateFile(k.Path, k.Old, k.New)) }},
		}
	case VerbPatch:
		return []form{{"apply_patch", func(k Call, _ *conversation) any { return patchText(k.Text) }}}
	case VerbTodo:
		return []form{
			{"update_plan", planInput},
			{"TodoWrite", todoInput},
			{"todowrite", todoInput},
		}
	case VerbAsk:
		return []form{{"request_user_input", askInput}, {"AskUserQuestion", askInput}, {"question", askInput}}
	case VerbAgent:
		return []form{
			{"Agent", agentInput("general-purpose")},
			{"Task", agentInput("general-purpose")},
			{"task", agentInput("general")},
		}
	}
	return nil
}

// outputTool is how claude and opencode have the model answer by a schema; codex has it say
// JSON.
const outputTool = "StructuredOutput"

// resolve turns calls into the tools the request offers. A verb without a tool
// is said in words, so that a test or a person sees it.
func resolve(step *Step, c *conversation) []toolCall {
	var out []toolCall
	for _, k := range step.Calls {
		calls := resolveOne(k, c)
		if calls == nil && k.Verb == VerbGive {
			step.Text = join(step.Text, k.Text)
		} else if calls == nil {
			step.Text = join(step.Text, "(no tool is offered for "+k.Verb+")")
		}
		out = append(out, calls...)
	}
	return out
}

func resolveOne(k Call, c *conversation) []toolCall {
	switch k.Verb {
	case VerbCall:
		input := k.Input
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		return []toolCall{{name: k.Name, input: input}}
	case VerbCustom:
		return []toolCall{{name: k.Name, custom: k.Text, isText: true}}
	}
	if _, asked := c.tools[outputTool]; k.Verb == VerbGive && asked {
		return []toolCall{{name: outputTool, input: json.RawMessage(k.Text)}}
	}
	for _, f := range forms(k.Verb) {
		freeForm, offered := c.tools[f.tool]
		if !offered {
			continue
		}
		input := f.input(k, c)
		if text, ok := input.(patchText); ok {
			if freeForm {
				return []toolCall{{name: f.tool, custom: string(text), isText: true}}
			}
			input = map[string]any{"input": string(text), "patchText": string(text)}
		}
		return []toolCall{{name: f.tool, input: encode(input)}}
	}
	if _, offered := c.tools["TaskCreate"]; offered && k.Verb == VerbTodo {
		var calls []toolCall
		for _, t := range k.Todos {
			calls = append(calls, toolCall{name: "TaskCreate", input: encode(map[string]any{
				"subject": t.Text, "description": t.Text, "activeForm": t.Text,
			})})
		}
		return calls
	}
	return nil
}

type patchText string

func described(k Call, _ *conversation) any {
	return map[string]any{"command": k.Command, "description": "Run a scripted command"}
}

func planInput(k Call, _ *conversation) any {
	plan := make([]map[string]any, 0, len(k.Todos))
	for _, t := range k.Todos {
		plan = append(plan, map[string]any{"step": t.Text, "status": t.Status})
	}
	return map[string]any{"plan": plan}
}

func todoInput(k Call, _ *conversation) any {
	todos := make([]map[string]any, 0, len(k.Todos))
	for i, t := range k.Todos {
		todos = append(todos, map[string]any{
			"id": strconv.Itoa(i + 1), "content": t.Text, "status": t.Status, "activeForm": t.Text, "priority": "medium",
		})
	}
	return map[string]any{"todos": todos}
}

// askInput fits all three CLIs: each ignores the members it does not know. A
// question needs at least two options everywhere.
func askInput(k Call, _ *conversation) any {
	labels := k.Options
	if len(labels) < 2 {
		labels = append(append([]string{}, labels...), "Yes", "No")[:2]
	}
	options := make([]map[string]any, 0, len(labels))
	for _, o := range labels {
		options = append(options, map[string]any{"label": o, "description": o})
	}
	return map[string]any{"questions": []any{map[string]any{
		"id": "choice", "header": "Choice", "question": k.Text, "multiSelect": false, "options": options,
	}}}
}

func agentInput(kind string) func(Call, *conversation) any {
	return func(k Call, _ *conversation) any {
		return map[string]any{"description": "A scripted task", "prompt": k.Text, "subagent_type": kind}
	}
}

func absolute(path string, c *conversation) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.workdir(), path)
}

func addFile(path, text string) string {
	return "*** Begin Patch\n*** Add File: " + path + "\n" + prefixed("+", text) + "*** End Patch\n"
}

func updateFile(path, before, after string) string {
	return "*** Begin Patch\n*** Update File: " + path + "\n@@\n" + prefixed("-", before) + prefixed("+", after) + "*** End Patch\n"
}

func prefixed(mark, text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSuffix(text, "\n") + "\n") {
		b.WriteString(mark + line)
	}
	return b.String()
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("modelsim: " + err.Error()) // only maps of strings, numbers and bools reach here
	}
	return data
}
