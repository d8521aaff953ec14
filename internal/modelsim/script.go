package modelsim

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Script is what the model does after one prompt: one Step per request.
type Script struct {
	Steps []Step `json:"steps"`
}

// Step is one model turn. Reasoning, text and calls come in that order.
type Step struct {
	Reasoning string `json:"reasoning,omitempty"`
	Text      string `json:"text,omitempty"`
	Calls     []Call `json:"calls,omitempty"`

	WaitMS  int    `json:"wait_ms,omitempty"`  // before the first byte
	DelayMS int    `json:"delay_ms,omitempty"` // between chunks
	Chunk   int    `json:"chunk,omitempty"`    // characters in a chunk
	Usage   *Usage `json:"usage,omitempty"`
	Stop    string `json:"stop,omitempty"` // "", "max_tokens", "refusal"
	Fault   *Fault `json:"fault,omitempty"`
}

// Verbs of a Call. Each maps to the tool that the request offers for it.
const (
	VerbRun    = "run"
	VerbRead   = "read"
	VerbWrite  = "write"
	VerbEdit   = "edit"
	VerbPatch  = "patch"
	VerbTodo   = "todo"
	VerbAsk    = "ask"
	VerbAgent  = "agent"
	VerbCall   = "call"
	VerbCustom = "custom"
	VerbGive   = "give"
)

// Call is one tool call in words that no CLI owns. Which fields count depends on
// the verb; VerbCall uses Name and Input as they are.
type Call struct {
	Verb     string          `json:"verb"`
	Command  string          `json:"command,omitempty"`
	Escalate bool            `json:"escalate,omitempty"`
	Path     string          `json:"path,omitempty"`
	Text     string          `json:"text,omitempty"` // content, patch, prompt or question
	Old      string          `json:"old,omitempty"`
	New      string          `json:"new,omitempty"`
	Todos    []Todo          `json:"todos,omitempty"`
	Options  []string        `json:"options,omitempty"`
	Name     string          `json:"name,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
}

// Todo is one entry of a todo call. Status is pending, in_progress or completed.
type Todo struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// Usage is counted in disjoint parts; each API adds them up in its own way.
type Usage struct {
	Input      int `json:"input,omitempty"` // neither read from nor written to a cache
	Cached     int `json:"cached,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
	Output     int `json:"output,omitempty"` // without reasoning
	Reasoning  int `json:"reasoning,omitempty"`
}

// Kinds of a Fault.
const (
	FaultHTTP = "http" // an HTTP status instead of a stream
	FaultSSE  = "sse"  // an error event inside the stream
	FaultCut  = "cut"  // the connection closes in mid-stream
	FaultHang = "hang" // silence in mid-stream
)

// Fault is what goes wrong in a step. With Times it goes wrong for that many
// attempts of the step, and then the step is answered.
type Fault struct {
	Kind       string `json:"kind"`
	Status     int    `json:"status,omitempty"`
	Type       string `json:"type,omitempty"`
	Message    string `json:"message,omitempty"`
	RetryAfter string `json:"retry_after,omitempty"`
	Times      int    `json:"times,omitempty"`
	ForMS      int    `json:"for_ms,omitempty"` // hang: 0 is for ever
}

// ParseScript reads a Script, or a single Step, from JSON. Unknown fields are
// refused, so that a misspelt script fails instead of doing nothing.
func ParseScript(data []byte) (Script, error) {
	var probe map[string]json.RawMessage
	if err := json.Unmarshal(data, &probe); err != nil {
		return Script{}, fmt.Errorf("read script: %w", err)
	}
	var script Script
	if _, whole := probe["steps"]; whole {
		err := strict(data, &script)
		return script, err
	}
	var step Step
	if err := strict(data, &step); err != nil {
		return Script{}, err
	}
	return Script{Steps: []Step{step}}, nil
}

// ParseScripts reads a script file: a JSON object of name to Script or Step.
func ParseScripts(data []byte) (map[string]Script, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("read script file: %w", err)
	}
	scripts := make(map[string]Script, len(raw))
	for name, body := range raw {
		script, err := ParseScript(body)
		if err != nil {
			return nil, fmt.Errorf("script %q: %w", name, err)
		}
		scripts[name] = script
	}
	return scripts, nil
}

func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("read script: %w", err)
	}
	return nil
}
