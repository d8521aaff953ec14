package codex

import (
	"encoding/json"
	"testing"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// An approval of a host is not one of the command that wants to reach it: people read which
// host, and no rule of the command is remembered with it.
func TestNetworkApproval(t *testing.T) {
	d := newDecoder(provider.NewEmitter(testTurn, func(event.Event) {}), "", "/workspace")
	p, ok := d.newAsk("1", "item/commandExecution/requestApproval", json.RawMessage(`{"kind":"command","threadId":"t","turnId":"u","itemId":"i","startedAtMs":1,
		"networkApprovalContext":{"host":"example.com","protocol":"https"},"command":"network-access example.com","proposedExecpolicyAmendment":["network-access"],
		"proposedNetworkPolicyAmendments":[{"host":"example.com","action":"allow"}]}`))
	if a := p.ask; !ok || a.Kind != event.AskPermissions || a.Title != "Reach example.com by https" || a.Command != "" || a.Amendment != nil {
		t.Errorf("%v %+v", ok, a)
	}
	for decision, want := range map[event.Decision]string{
		event.DecisionAllow: `{"decision":"accept"}`, event.DecisionAlways: `{"decision":"acceptForSession"}`, event.DecisionDeny: `{"decision":"decline"}`, event.DecisionCancel: `{"decision":"cancel"}`,
	} {
		if got, _ := json.Marshal(p.reply(event.Answer{Decision: decision})); string(got) != want {
			t.Errorf("%s: %s, want %s", decision, got, want)
		}
	}
}
