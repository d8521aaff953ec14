package opencode

import (
	"encoding/json"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// What a server's description lacks is unavailable, and said so.
func TestDescription(t *testing.T) {
	var d description
	err := json.Unmarshal([]byte(`{"openapi":"3.1.1","paths":{
		"/event":{},"/session":{},"/session/{sessionID}":{},"/session/{id}/prompt_async":{},"/session/{sessionID}/todo":{},"/permission/{requestID}/reply":{},"/question":{}},
		"components":{"schemas":{"AssistantMessage":{"properties":{"tokens":{}}}}}}`), &d)
	if err != nil {
		t.Fatal(err)
	}
	c := capabilities(&d)
	for name, got := range map[string]provider.Capability{"resume": c.Resume, "steer": c.Steer, "approval": c.ToolApproval, "todos": c.TodoStream, "usage": c.Usage} {
		if got != provider.Validated {
			t.Errorf("%s is %s", name, got)
		}
	}
	for name, got := range map[string]provider.Capability{"fork": c.Fork, "human_loop": c.HumanLoop, "plan_mode": c.PlanMode, "cost": c.Cost} {
		if got != provider.Unavailable || c.Notes[name] == "" {
			t.Errorf("%s is %s, note %q", name, got, c.Notes[name])
		}
	}
}
