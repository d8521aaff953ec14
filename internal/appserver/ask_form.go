package appserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/commandline"
	"github.com/tholehq/thole/internal/strictjson"
)

// formOf is the kind of ask that one goes out as. The contract knows the questions of
// Codex; another agent's goes out as the nearest that clients can show and answer, and
// what the agent itself knows it by stays here, found again by the ask's id: a tool call
// is a command that says what would be called, a plan is a question.
func formOf(a event.Ask) event.AskKind {
	switch {
	case a.Kind == event.AskPermissions && !isProfile(a.Amendment):
		return event.AskCommand
	case a.Kind == event.AskPlan:
		return event.AskInput
	}
	return a.Kind
}

// execRule is the rule that a command ask offers to remember, nil when it offers none of
// Codex's kind: the first words of the command.
func execRule(a event.Ask) []string {
	var words []string
	if a.Kind != event.AskCommand || len(a.Amendment) == 0 || strictjson.Unmarshal(a.Amendment, &words) != nil || len(words) == 0 {
		return nil
	}
	return words
}

// isProfile reports whether permissions are of Codex's kind. A client that cannot read
// them would drop the ask.
func isProfile(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	if strictjson.Unmarshal(raw, &members) != nil || members == nil {
		return false
	}
	for name := range members {
		if name != "network" && name != "fileSystem" {
			return false
		}
	}
	var p struct {
		Network *struct {
			Enabled *bool `json:"enabled"`
		} `json:"network"`
		FileSystem *struct {
			Read    []string `json:"read"`
			Write   []string `json:"write"`
			Depth   *uint    `json:"globScanMaxDepth"`
			Entries []struct {
				Access string                     `json:"access"`
				Path   map[string]json.RawMessage `json:"path"`
			} `json:"entries"`
		} `json:"fileSystem"`
	}
	return strictjson.Unmarshal(raw, &p) == nil
}

// maxToolText bounds what a prompt shows of one argument.
const maxToolText = 2000

// toolLine is the call of a tool as a line that a client can split and quote again: the
// name, and the arguments as words.
func toolLine(a event.Ask) string {
	if a.Tool == nil {
		words := []string{cmp.Or(a.Title, string(a.Kind))}
		if a.Reason != "" {
			words = append(words, a.Reason)
		}
		return commandline.Join(words...)
	}
	name := a.Tool.Name
	if a.Tool.Server != "" {
		name = a.Tool.Server + "." + name
	}
	words := []string{cmp.Or(name, a.Title, string(a.Kind))}
	var args map[string]json.RawMessage
	if strictjson.Unmarshal(a.Tool.Input, &args) != nil {
		if len(a.Tool.Input) > 0 {
			words = append(words, fold.Clip(string(a.Tool.Input), maxToolText))
		}
		return commandline.Join(words...)
	}
	for _, k := range slices.Sorted(maps.Keys(args)) {
		words = append(words, k+"="+fold.Clip(plainText(args[k]), maxToolText))
	}
	return commandline.Join(words...)
}
