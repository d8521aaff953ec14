package turnsteer

import (
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
)

var now = time.UnixMilli(1_700_000_000_000)

func perfect() (Gate, Capability, Active, Request) {
	a := Active{Thread: "t", Attachment: "a", Epoch: 3, Turn: "u", Kind: Regular, Steerable: true, At: now.Add(-time.Second)}
	a = Classify(a, Evidence{Permissions: &attachment.PermissionSnapshot{}, Items: []string{"userMessage", "agentMessage"}, Complete: true})
	return OpenFor(LowRisk), Capability{Epoch: 3, SameTurn: true, Reconciles: true, Outcomes: true, Ordered: true, NoExtraTurn: true}, a,
		Request{Thread: "t", Attachment: "a", Epoch: 3, Policy: thole.DeliveryPolicy{ReadOnly: true}, Due: true, Now: now}
}

// Each proof alone is enough to refuse.
func TestEveryProofIsNeeded(t *testing.T) {
	if err := Eligible(perfect()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Gate, *Capability, *Active, *Request){
		"another class":  func(g *Gate, _ *Capability, _ *Active, _ *Request) { *g = OpenFor(HighRisk) },
		"gate":           func(g *Gate, _ *Capability, _ *Active, _ *Request) { *g = Gate{} },
		"old capability": func(_ *Gate, c *Capability, _ *Active, _ *Request) { c.Epoch = 2 },
		"same turn":      func(_ *Gate, c *Capability, _ *Active, _ *Request) { c.SameTurn = false },
		"reconciles":     func(_ *Gate, c *Capability, _ *Active, _ *Request) { c.Reconciles = false },
		"outcomes":       func(_ *Gate, c *Capability, _ *Active, _ *Request) { c.Outcomes = false },
		"ordered":        func(_ *Gate, c *Capability, _ *Active, _ *Request) { c.Ordered = false },
		"extra turn":     func(_ *Gate, c *Capability, _ *Active, _ *Request) { c.NoExtraTurn = false },
		"policy":         func(_ *Gate, _ *Capability, _ *Active, r *Request) { r.Policy = thole.UnknownDeliveryPolicy },
		"artifact":       func(_ *Gate, _ *Capability, _ *Active, r *Request) { r.ArtifactRead = true },
		"attempt":        func(_ *Gate, _ *Capability, _ *Active, r *Request) { r.OpenAttempt = true },
		"not due":        func(_ *Gate, _ *Capability, _ *Active, r *Request) { r.Due = false },
		"other thread":   func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Thread = "x" },
		"other session":  func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Attachment = "x" },
		"other epoch":    func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Epoch = 2 },
		"stale":          func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.At = now.Add(-time.Minute) },
		"future":         func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.At = now.Add(time.Second) },
		"never seen":     func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.At = time.Time{} },
		"no turn":        func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Turn = "" },
		"two turns":      func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Others = 1 },
		"compaction":     func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Kind = Compaction },
		"review":         func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Kind = Review },
		"unknown kind":   func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Kind = "" },
		"not steerable":  func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Steerable = false },
		"approval":       func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Approval = Needed },
		"unknown write":  func(_ *Gate, _ *Capability, a *Active, _ *Request) { a.Write = "" },
	} {
		g, c, a, r := perfect()
		spoil(&g, &c, &a, &r)
		if err := Eligible(g, c, a, r); thole.CodeOf(err) != thole.CodeUnsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClassify(t *testing.T) {
	safe := &attachment.PermissionSnapshot{}
	for name, c := range map[string]struct {
		e    Evidence
		want Risk
	}{
		"talks only":       {Evidence{Permissions: safe, Items: []string{"userMessage", "reasoning", "agentMessage"}, Complete: true}, LowRisk},
		"runs a command":   {Evidence{Permissions: safe, Items: []string{"commandExecution"}, Complete: true}, HighRisk},
		"an unknown item":  {Evidence{Permissions: safe, Items: []string{"somethingNew"}, Complete: true}, HighRisk},
		"may write":        {Evidence{Permissions: &attachment.PermissionSnapshot{Write: true}, Complete: true}, HighRisk},
		"may ask":          {Evidence{Permissions: &attachment.PermissionSnapshot{Approval: true}, Complete: true}, HighRisk},
		"asks now":         {Evidence{Permissions: safe, Asks: 1, Complete: true}, HighRisk},
		"waits for a user": {Evidence{Permissions: safe, Flags: []string{"waitingOnUserInput"}, Complete: true}, HighRisk},
		"not all seen":     {Evidence{Permissions: safe}, RiskUnknown},
		"no permissions":   {Evidence{Complete: true}, RiskUnknown},
	} {
		if got := Classify(Active{Approval: NotNeeded, Network: NotNeeded, Write: NotNeeded}, c.e).Risk(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
