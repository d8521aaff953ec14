package codex

import "github.com/tholehq/thole/internal/provider"

// measured is what the pinned version can do, row by row of the conformance
// suite.
func measured() provider.Capabilities { return capabilities(func(string) bool { return true }) }

// capabilities derives them from the methods a server has.
func capabilities(has func(method string) bool) provider.Capabilities {
	if_ := func(methods ...string) provider.Capability {
		for _, m := range methods {
			if !has(m) {
				return provider.Unavailable
			}
		}
		return provider.Validated
	}
	c := provider.Capabilities{
		Resume: if_("thread/resume"), Fork: if_("thread/fork"), Steer: if_("turn/steer"),
		HumanLoop: if_("turn/start"), ToolApproval: if_("turn/start"), TodoStream: if_("turn/start"),
		PlanMode: if_("turn/start"), Usage: if_("turn/start"),
		AskSurvives: provider.Unavailable, Cost: provider.Unavailable, ToolInputFlow: provider.Unavailable,
	}
	c.Notes = notes(c)
	return c
}

// execCapabilities is what is left with `codex exec`.
func execCapabilities() provider.Capabilities {
	yes, no := provider.Validated, provider.Unavailable
	c := provider.Capabilities{Resume: yes, Fork: yes, Usage: yes, PlanMode: no, TodoStream: no, Steer: no, HumanLoop: no,
		AskSurvives: no, ToolApproval: no, Cost: no, ToolInputFlow: no}
	c.Notes = notes(c)
	c.Notes["todo_stream"] = "open and done only, without the one in progress"
	return c
}

func unknown() provider.Capabilities {
	u := provider.Unknown
	c := provider.Capabilities{Resume: u, Fork: u, Steer: u, HumanLoop: u, AskSurvives: u, ToolApproval: u, TodoStream: u, PlanMode: u, Usage: u, Cost: u, ToolInputFlow: u}
	c.Notes = notes(c)
	return c
}

// notes declare what happens instead of a capability that is not validated.
func notes(c provider.Capabilities) map[string]string {
	n := map[string]string{}
	add := func(field string, v provider.Capability, text string) {
		if !v.OK() {
			n[field] = text
		}
	}
	add("resume", c.Resume, "every turn starts a new conversation")
	add("fork", c.Fork, "a fork starts a new conversation from the thread's text")
	add("steer", c.Steer, "input for a running turn waits for the next one")
	add("human_loop", c.HumanLoop, "a question ends the turn: add the answer and retry")
	add("ask_survives_restart", c.AskSurvives, "a question is lost with the process: the answer is sent as a new message")
	add("tool_approval", c.ToolApproval, "what needs approval is refused")
	add("todo_stream", c.TodoStream, "no todo list")
	add("plan_mode", c.PlanMode, "plan is the read-only sandbox")
	add("usage", c.Usage, "no token counts")
	add("cost", c.Cost, "from the price table where it has the model, else unknown")
	add("tool_input_stream", c.ToolInputFlow, "tool input comes whole")
	return n
}
