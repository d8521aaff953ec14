package codex

import "github.com/tholehq/thole/internal/provider"

// measured is what the pinned version can do, row by row of the conformance
// suite.
func measured() provider.Capabilities { return capabilities(func(string) bool { return true }) }

// capabilities derives them from the names in a server's protocol: requests of
// ours, its notifications and its requests.
func capabilities(has func(name string) bool) provider.Capabilities {
	all := func(names ...string) provider.Capability {
		for _, n := range names {
			if !has(n) {
				return provider.Unavailable
			}
		}
		return provider.Validated
	}
	return provider.Degraded(provider.Capabilities{
		Resume: all("thread/resume"), Fork: all("thread/fork"), Steer: all("turn/steer"),
		HumanLoop:    all("item/tool/requestUserInput"),
		ToolApproval: all("item/commandExecution/requestApproval", "item/fileChange/requestApproval"),
		TodoStream:   all("turn/plan/updated"), PlanMode: all("collaborationMode"), Usage: all("thread/tokenUsage/updated"),
		Compact:     all("thread/compact/start"),
		AskSurvives: all("thread/resume", "turn/interrupt"), Cost: provider.Unavailable, ToolInputFlow: provider.Unavailable,
	}, nil)
}

// execCapabilities is what is left with `codex exec`.
func execCapabilities() provider.Capabilities {
	c := provider.All(provider.Unavailable)
	c.Resume, c.Fork, c.Usage = provider.Validated, provider.Validated, provider.Validated
	return provider.Degraded(c, map[string]string{"todo_stream": "open and done only, without the one in progress"})
}
