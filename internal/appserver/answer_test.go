package appserver

import (
	"encoding/json"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/jsonrpc"
)

// FuzzAnswer reads anything as an answer: it is refused or has a known verdict.
// Nothing that cannot be read may ever count as a yes.
func FuzzAnswer(f *testing.F) {
	kinds := []event.AskKind{
		event.AskCommand, event.AskFileChange, event.AskPermissions, event.AskInput, event.AskPlan, event.AskElicitation, event.AskTool,
	}
	for i, s := range []string{
		`{"decision":"accept"}`, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["a"]}}}`, `{"permissions":{"network":{}},"scope":"session"}`,
		`{"answers":{"q":{"answers":["a"]}}}`, `{"answers":{"plan":{"answers":["Approve the plan"]}}}`, `{"action":"accept","content":{}}`, `{"contentItems":[],"success":true}`, `{"decision":"allow"}`,
		`{}`, `null`, `[]`, `"accept"`, `{"decision":null}`,
	} {
		f.Add(i, []byte(s))
	}
	f.Fuzz(func(t *testing.T, n int, raw []byte) {
		kind := kinds[uint(n)%uint(len(kinds))]
		a, err := parseAnswer(event.Ask{Kind: kind}, json.RawMessage(raw))
		if err != nil {
			return
		}
		switch a.Decision {
		case "", event.DecisionAllow, event.DecisionAlways, event.DecisionDeny, event.DecisionCancel:
		default:
			t.Fatalf("%s: decision %q", kind, a.Decision)
		}
		if approval := kind == event.AskCommand || kind == event.AskFileChange; approval && a.Decision == "" {
			t.Fatalf("%s: an answer without a verdict was taken: %s", kind, raw)
		}
	})
}

func TestRequestIDs(t *testing.T) {
	th, ask := thole.ThreadID("0199aaaa-0000-7000-8000-000000000001"), thole.AskID("0199aaaa-0000-7000-8000-000000000002")
	gotT, gotA, ok := parseRequestID(jsonrpc.StringID(requestID(th, ask)))
	if !ok || gotT != th || gotA != ask {
		t.Errorf("%s %s %v", gotT, gotA, ok)
	}
	for _, id := range []jsonrpc.ID{jsonrpc.IntID(1), jsonrpc.StringID(""), jsonrpc.StringID("/"), jsonrpc.StringID("a/"), jsonrpc.StringID("/a"), jsonrpc.StringID("a")} {
		if _, _, ok := parseRequestID(id); ok {
			t.Errorf("%v names an ask", id)
		}
	}
}

// Whatever pair of words a client sends, another agent's profile never lets more
// through than the pair does.
func TestProfilesNeverWiden(t *testing.T) {
	rank := map[thole.Profile]int{thole.ProfilePlan: 0, thole.ProfileAsk: 1, thole.ProfileEdit: 2, thole.ProfileFull: 3}
	for _, approval := range []string{"untrusted", "on-request", "never"} {
		for _, sandbox := range []string{"read-only", "workspace-write", "danger-full-access"} {
			p := profile("claude", approval, sandbox)
			most := thole.ProfileFull
			switch {
			case sandbox == "read-only" && approval == "never":
				most = thole.ProfilePlan
			case sandbox == "read-only" || approval == "untrusted":
				most = thole.ProfileAsk
			case sandbox == "workspace-write":
				most = thole.ProfileEdit
			}
			if rank[p] > rank[most] {
				t.Errorf("%s/%s became %s", approval, sandbox, p)
			}
			if back := profile("codex", approval, sandbox); back != "" {
				a, s := words("codex", back)
				if a != approval || s != sandbox {
					t.Errorf("codex: %s/%s came back as %s/%s", approval, sandbox, a, s)
				}
			}
		}
	}
}

// Every method of the contract has a processor.
func TestNoHoles(t *testing.T) {
	s := &Server{catalog: &catalog{cfg: &Config{}}}
	s.register()
	for name, m := range s.methods {
		if m.run == nil {
			t.Errorf("%s has no processor", name)
		}
	}
}
