package view

import (
	"slices"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/commandline"
	"github.com/tholehq/thole/internal/strictjson"
)

// Always is what "always" would allow, in words for the person who decides; empty when
// the ask does not offer it.
func Always(a event.Ask) []string { return texts(alwaysRules(a)) }

// alwaysRules are the same for clients with words of their own. The rule itself has the form
// of its agent and stays here. Of a form that is not known, they say what it could at most be about.
func alwaysRules(a event.Ask) []Rule {
	if !slices.Contains(a.Decisions, event.DecisionAlways) {
		return nil
	}
	for _, read := range []func(event.Ask) []Rule{ofWords, ofSuggestions, ofPatterns, wantedRules} {
		if rules := read(a); len(rules) > 0 {
			return shownOnce(rules)
		}
	}
	return shownOnce([]Rule{atMost(a)})
}

// Wants are the rights that an ask is for, in words; empty when it is for something else.
func Wants(a event.Ask) []string { return texts(wantedRules(a)) }

func wantedRules(a event.Ask) []Rule {
	var p struct {
		Network *struct {
			Enabled bool `json:"enabled"`
		} `json:"network"`
		FileSystem *struct {
			Read    []string `json:"read"`
			Write   []string `json:"write"`
			Entries []struct {
				Access string `json:"access"`
				Path   struct {
					Path    string `json:"path"`
					Pattern string `json:"pattern"`
				} `json:"path"`
			} `json:"entries"`
		} `json:"fileSystem"`
	}
	if a.Kind != event.AskPermissions || a.Tool != nil || strictjson.Unmarshal(a.Amendment, &p) != nil {
		return nil
	}
	var rules []Rule
	if p.Network != nil && p.Network.Enabled {
		rules = append(rules, Rule{Kind: RuleNetwork})
	}
	if f := p.FileSystem; f != nil {
		for _, path := range f.Read {
			rules = append(rules, Rule{Kind: RuleRead, Subject: path})
		}
		for _, path := range f.Write {
			rules = append(rules, Rule{Kind: RuleWrite, Subject: path})
		}
		for _, e := range f.Entries {
			rules = append(rules, entryRule(e.Access, e.Path.Path+e.Path.Pattern))
		}
	}
	return shownOnce(rules)
}

// entryRule says one entry of codex's rights on files.
func entryRule(access, path string) Rule {
	switch {
	case path == "":
		return Rule{Kind: RuleSpecial, Subject: access}
	case access == "read":
		return Rule{Kind: RuleRead, Subject: path}
	case access == "write":
		return Rule{Kind: RuleWrite, Subject: path}
	}
	return Rule{Kind: RuleOther, Subject: access + " in " + path}
}

// ofWords reads codex's rule: the words that a command begins with.
func ofWords(a event.Ask) []Rule {
	var words []string
	if strictjson.Unmarshal(a.Amendment, &words) != nil || len(words) == 0 {
		return nil
	}
	return []Rule{{Kind: RuleCommandPrefix, Subject: commandline.Join(words...)}}
}

// suggestion is one change of claude's permissions.
type suggestion struct {
	Type        string   `json:"type"`
	Behavior    string   `json:"behavior"`
	Mode        string   `json:"mode"`
	Directories []string `json:"directories"`
	Rules       []struct {
		Tool    string `json:"toolName"`
		Content string `json:"ruleContent"`
	} `json:"rules"`
}

// ofSuggestions reads claude's. One that is not known is said by the ask's own subject.
func ofSuggestions(a event.Ask) []Rule {
	var all []suggestion
	if strictjson.Unmarshal(a.Amendment, &all) != nil {
		return nil
	}
	var rules []Rule
	for _, s := range all {
		switch {
		case s.Type == "addRules" && (s.Behavior == "allow" || s.Behavior == "") && len(s.Rules) > 0:
			for _, r := range s.Rules {
				rules = append(rules, toolRule(r.Tool, r.Content, a))
			}
		case s.Type == "addDirectories" && len(s.Directories) > 0:
			for _, dir := range s.Directories {
				rules = append(rules, Rule{Kind: RuleFolder, Subject: dir})
			}
		case s.Type == "setMode" && s.Mode != "":
			rules = append(rules, modeRule(s.Mode))
		default:
			rules = append(rules, atMost(a))
		}
	}
	return rules
}

func modeRule(mode string) Rule {
	switch mode {
	case "acceptEdits":
		return Rule{Kind: RuleUnaskedChanges}
	case "bypassPermissions":
		return Rule{Kind: RuleEverything}
	case "default":
		return Rule{Kind: RuleAsking}
	}
	return Rule{Kind: RuleMode, Subject: mode}
}

// toolRule says one rule of claude's: a tool, and what it may be used on.
func toolRule(tool, content string, a event.Ask) Rule {
	switch {
	case tool == "":
		return atMost(a)
	case tool == "Bash":
		if head, open := strings.CutSuffix(content, ":*"); open {
			content = head + " *"
		}
		return commandRule(content)
	case content == "":
		return wholeTool(tool)
	}
	return wholeTool(tool).on(strings.TrimPrefix(content, "domain:"))
}

// ofPatterns reads opencode's: what it asks for, and the patterns it would allow.
func ofPatterns(a event.Ask) []Rule {
	var p struct {
		Permission string   `json:"permission"`
		Patterns   []string `json:"patterns"`
	}
	if strictjson.Unmarshal(a.Amendment, &p) != nil || p.Permission == "" {
		return nil
	}
	var rules []Rule
	for _, pattern := range p.Patterns {
		switch {
		case p.Permission == "bash":
			rules = append(rules, commandRule(pattern))
		case p.Permission == "edit" && pattern == "*":
			rules = append(rules, Rule{Kind: RuleEveryChange})
		case p.Permission == "edit":
			rules = append(rules, Rule{Kind: RuleChanges, Subject: pattern})
		case pattern == "*":
			rules = append(rules, wholeTool(p.Permission))
		default:
			rules = append(rules, wholeTool(p.Permission).on(pattern))
		}
	}
	return rules
}

// commandRule says a pattern of commands, in which * stands for anything.
func commandRule(pattern string) Rule {
	head, open := strings.CutSuffix(pattern, "*")
	head = strings.TrimSuffix(head, " ")
	switch {
	case head == "":
		return Rule{Kind: RuleEveryCommand}
	case strings.Contains(head, "*"):
		return Rule{Kind: RuleCommandPattern, Subject: pattern}
	case open:
		return Rule{Kind: RuleCommandPrefix, Subject: head}
	}
	return Rule{Kind: RuleCommand, Subject: pattern}
}

// wholeTool allows a tool, or with the name of a server all of its tools.
func wholeTool(name string) Rule {
	if rest, mcp := strings.CutPrefix(name, "mcp__"); mcp {
		server, tool, whole := strings.Cut(rest, "__")
		if !whole {
			return Rule{Kind: RuleEveryServerTool, Server: server}
		}
		return Rule{Kind: RuleServerTool, Subject: tool, Server: server}
	}
	return Rule{Kind: RuleTool, Subject: name}
}

// on narrows a rule of a tool.
func (r Rule) on(target string) Rule {
	r.Target = target
	switch r.Kind {
	case RuleServerTool:
		r.Kind = RuleServerToolOn
	case RuleTool:
		r.Kind = RuleToolOn
	}
	return r
}

// atMost names what an ask is about where its rule does not say.
func atMost(a event.Ask) Rule {
	ruled := len(a.Amendment) > 0 && string(a.Amendment) != "null"
	switch {
	case a.Tool != nil && a.Tool.Server != "":
		return Rule{Kind: RuleServerTool, Subject: a.Tool.Name, Server: a.Tool.Server}
	case a.Tool != nil && a.Tool.Name != "":
		return wholeTool(a.Tool.Name)
	case a.Kind == event.AskCommand && !ruled:
		return Rule{Kind: RuleThisCommand}
	case a.Kind == event.AskCommand:
		return Rule{Kind: RuleEveryCommand}
	case a.Kind == event.AskFileChange && !ruled:
		return Rule{Kind: RuleTheseChanges}
	case a.Kind == event.AskFileChange, a.Kind == event.AskPlan:
		return Rule{Kind: RuleEveryChange}
	case a.Title != "":
		return Rule{Kind: RuleOther, Subject: a.Title}
	}
	return Rule{Kind: RuleOther}
}
