package provider

// Degraded completes capabilities with what happens instead of each one that is
// not validated; own texts, by the field's JSON name, come before the general
// ones.
func Degraded(c Capabilities, own map[string]string) Capabilities {
	c.Notes = map[string]string{}
	for field, text := range own {
		c.Notes[field] = text
	}
	for _, d := range []struct {
		field string
		v     Capability
		text  string
	}{
		{"resume", c.Resume, "every turn starts a new conversation"},
		{"fork", c.Fork, "a fork starts a new conversation from the thread's text"},
		{"steer", c.Steer, "input for a running turn waits for the next one"},
		{"human_loop", c.HumanLoop, "a question ends the turn: add the answer and retry"},
		{"ask_survives_restart", c.AskSurvives, "a question is lost with the process: the answer is sent as a new message"},
		{"tool_approval", c.ToolApproval, "what needs approval is refused"},
		{"todo_stream", c.TodoStream, "no todo list"},
		{"plan_mode", c.PlanMode, "plan is an ordinary turn that may not write"},
		{"usage", c.Usage, "no token counts"},
		{"cost", c.Cost, "from the price table where it has the model, else unknown"},
		{"tool_input_stream", c.ToolInputFlow, "tool input comes whole"},
		{"compact", c.Compact, "the agent compacts by itself when its context is full, not on request"},
	} {
		if !d.v.OK() && c.Notes[d.field] == "" {
			c.Notes[d.field] = d.text
		}
	}
	return c
}

// All is every capability at one value.
func All(v Capability) Capabilities {
	return Capabilities{Resume: v, Fork: v, Steer: v, HumanLoop: v, AskSurvives: v, ToolApproval: v, TodoStream: v, PlanMode: v, Usage: v, Cost: v, ToolInputFlow: v, Compact: v}
}

// Found turns a finding of a probe into a capability.
func Found(yes bool) Capability {
	if yes {
		return Validated
	}
	return Unavailable
}
