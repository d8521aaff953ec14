package system

import (
	"testing"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/thread"
)

// Each kind of ask has the policy that the configuration gives it.
func TestAskPoliciesOfTheConfiguration(t *testing.T) {
	a := config.Default().Asks
	a.InputPolicy, a.DefaultReply = "default", "go on"
	a.ApprovalPolicy, a.FileChange, a.Permissions = "cancel", "8h deny", "wait"
	got := policies(a)
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[event.AskKind]thread.AskPolicy{
		event.AskInput:       {Wait: 15 * time.Minute, OnTimeout: thread.TimeoutDefault},
		event.AskCommand:     {Wait: 24 * time.Hour, OnTimeout: thread.TimeoutCancel},
		event.AskPlan:        {Wait: 24 * time.Hour, OnTimeout: thread.TimeoutCancel},
		event.AskFileChange:  {Wait: 8 * time.Hour, OnTimeout: thread.TimeoutDefault},
		event.AskPermissions: {},
		event.AskTool:        {Wait: 5 * time.Minute, OnTimeout: thread.TimeoutDefault},
	} {
		p := got.For(kind)
		if p.Default != nil && p.Default.Decision != event.DecisionDeny && kind != event.AskInput {
			t.Errorf("%s: the default is %+v", kind, *p.Default)
		}
		if p.Default = nil; p != want {
			t.Errorf("%s: %+v, want %+v", kind, p, want)
		}
	}
}
