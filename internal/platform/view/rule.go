package view

import "github.com/tholehq/thole/internal/plain"

// RuleKind is what a rule allows; a client says it in its own language.
type RuleKind string

const (
	RuleCommand         RuleKind = "command"
	RuleCommandPrefix   RuleKind = "command_prefix"
	RuleCommandPattern  RuleKind = "command_pattern"
	RuleThisCommand     RuleKind = "this_command"
	RuleEveryCommand    RuleKind = "every_command"
	RuleChanges         RuleKind = "changes"
	RuleTheseChanges    RuleKind = "these_changes"
	RuleEveryChange     RuleKind = "every_change"
	RuleUnaskedChanges  RuleKind = "unasked_changes"
	RuleEverything      RuleKind = "everything"
	RuleAsking          RuleKind = "asking"
	RuleMode            RuleKind = "mode"
	RuleFolder          RuleKind = "folder"
	RuleNetwork         RuleKind = "network"
	RuleRead            RuleKind = "read"
	RuleWrite           RuleKind = "write"
	RuleSpecial         RuleKind = "special"
	RuleTool            RuleKind = "tool"
	RuleToolOn          RuleKind = "tool_on"
	RuleServerTool      RuleKind = "server_tool"
	RuleServerToolOn    RuleKind = "server_tool_on"
	RuleEveryServerTool RuleKind = "every_server_tool"
	RuleOther           RuleKind = "other"
)

// Rule is one thing that an answer allows: its kind, and the names in it. English is in
// Always and Wants for clients that have no words of their own.
type Rule struct {
	Kind    RuleKind `json:"kind" enum:"command,command_prefix,command_pattern,this_command,every_command,changes,these_changes,every_change,unasked_changes,everything,asking,mode,folder,network,read,write,special,tool,tool_on,server_tool,server_tool_on,every_server_tool,other"`
	Subject string   `json:"subject,omitempty" doc:"the command, path, tool, mode or, of kind other, the words"`
	Server  string   `json:"server,omitempty" doc:"the MCP server of a tool"`
	Target  string   `json:"target,omitempty" doc:"what a tool may be used on"`
}

// Text says the rule in English.
func (r Rule) Text() string {
	switch r.Kind {
	case RuleCommand:
		return "the command " + r.Subject
	case RuleCommandPrefix:
		return "commands that begin with " + r.Subject
	case RuleCommandPattern:
		return "commands like " + r.Subject
	case RuleThisCommand:
		return "this command"
	case RuleEveryCommand:
		return "every command"
	case RuleChanges:
		return "changes of " + r.Subject
	case RuleTheseChanges:
		return "changes of these files"
	case RuleEveryChange:
		return "every change of files"
	case RuleUnaskedChanges:
		return "every change of files, without a question"
	case RuleEverything:
		return "everything, without a question"
	case RuleAsking:
		return "the mode in which it asks"
	case RuleMode:
		return "the mode " + r.Subject
	case RuleFolder:
		return "work in the folder " + r.Subject
	case RuleNetwork:
		return "use of the network"
	case RuleRead:
		return "reading in " + r.Subject
	case RuleWrite:
		return "writing in " + r.Subject
	case RuleSpecial:
		return r.Subject + " in special places of the file system"
	case RuleTool:
		return "the tool " + r.Subject
	case RuleToolOn:
		return "the tool " + r.Subject + " on " + r.Target
	case RuleServerTool:
		return "the tool " + r.Subject + " of " + r.Server
	case RuleServerToolOn:
		return "the tool " + r.Subject + " of " + r.Server + " on " + r.Target
	case RuleEveryServerTool:
		return "every tool of " + r.Server
	}
	if r.Subject != "" {
		return r.Subject
	}
	return "everything of this kind"
}

// texts are rules in English.
func texts(rules []Rule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Text())
	}
	return out
}

// shownOnce makes rules safe to show, each once.
func shownOnce(rules []Rule) []Rule {
	var out []Rule
	seen := map[Rule]bool{}
	for _, r := range rules {
		r.Subject, r.Server, r.Target = plain.Line(r.Subject), plain.Line(r.Server), plain.Line(r.Target)
		if !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	return out
}
