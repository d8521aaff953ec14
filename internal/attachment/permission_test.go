package attachment_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"pgregory.net/rapid"
)

func settings(t interface{ Fatal(...any) }, text string) attachment.Settings {
	var s attachment.Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadPermissions(t *testing.T) {
	type allows struct{ approval, network, write bool }
	for text, want := range map[string]allows{
		`{"approvalPolicy":"never","sandbox":{"type":"readOnly"}}`:                                                     {},
		`{"approvalPolicy":"on-request","sandbox":{"type":"readOnly","networkAccess":true}}`:                           {true, true, false},
		`{"approvalPolicy":{"granular":{"rules":true}},"sandbox":{"type":"workspaceWrite","networkAccess":false}}`:     {true, false, true},
		`{"approvalPolicy":"never","sandbox":{"type":"dangerFullAccess"}}`:                                             {false, true, true},
		`{"approvalPolicy":"never","sandbox":{"type":"externalSandbox","networkAccess":"enabled"}}`:                    {false, true, true},
		`{"approvalPolicy":"never","sandbox":{"type":"workspaceWrite"},"activePermissionProfile":{"id":":workspace"}}`: {false, false, true},
	} {
		got, err := attachment.Read(settings(t, text))
		if err != nil || (allows{got.Approval, got.Network, got.Write}) != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		`{"sandbox":{"type":"readOnly"}}`,
		`{"approvalPolicy":"never","sandbox":{"type":"somethingNew"}}`,
		`{"approvalPolicy":"never","sandbox":{"type":"workspaceWrite","writableRoots":["/a/../b"]}}`,
		`{"approvalPolicy":"never","sandbox":{"type":"workspaceWrite","writableRoots":["b"]}}`,
		`{"approvalPolicy":"never","sandbox":{"type":"readOnly"},"activePermissionProfile":{"id":"mine"}}`,
	} {
		if got, err := attachment.Read(settings(t, text)); err == nil {
			t.Errorf("%s was understood as %+v", text, got)
		}
	}
}

func anySnapshot(t *rapid.T, name string) attachment.PermissionSnapshot {
	s := attachment.PermissionSnapshot{
		Approval: rapid.Bool().Draw(t, name+" approval"), Network: rapid.Bool().Draw(t, name+" network"), Write: rapid.Bool().Draw(t, name+" write"),
	}
	if s.Write {
		s.All = rapid.Bool().Draw(t, name+" all")
		s.Roots = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"/a", "/a/b", "/ab", "/c"}), func(r string) string { return r }).Draw(t, name+" roots")
		slices.Sort(s.Roots)
	}
	return s
}

// writes is the independent meaning of a snapshot: may it write under this path?
func writes(s attachment.PermissionSnapshot, p string) bool {
	return s.Write && (s.All || slices.ContainsFunc(s.Roots, func(r string) bool { return p == r || strings.HasPrefix(p, r+"/") }))
}

// A delivery is allowed only where the session, whose settings it takes as they
// are, can do nothing that the cap does not allow.
func TestNothingBeyondTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, now := anySnapshot(t, "cap"), anySnapshot(t, "now")
		policy := thole.DeliveryPolicy{ReadOnly: rapid.Bool().Draw(t, "read only"), RequiresNetwork: rapid.Bool().Draw(t, "needs network")}
		trust := rapid.SampledFrom([]attachment.Trust{attachment.StrictSafe, attachment.TrustedAll}).Draw(t, "trust")
		j := attachment.Judge(trust, limit, now, policy)
		if j.Allowed && j.Held {
			t.Fatal("allowed and held")
		}
		if j.Allowed {
			for _, p := range []string{"/a", "/a/b", "/a/b/c", "/ab", "/c/d", "/z"} {
				if writes(now, p) && !writes(limit, p) {
					t.Fatalf("%s can be written now and not by the cap", p)
				}
			}
			if now.Approval && !limit.Approval || now.Network && !limit.Network || now.Write && !limit.Write {
				t.Fatal("more than the cap")
			}
			if trust == attachment.StrictSafe && (now.Approval || now.Network || now.Write || len(policy.Objections()) > 0) {
				t.Fatal("strict-safe let something pass")
			}
		}
		if trust == attachment.TrustedAll && limit.Equal(now) && !j.Allowed {
			t.Fatalf("the very same permissions were refused: %s", j.Reason)
		}
		if e := limit.Effective(now); e.Network && !(limit.Network && now.Network) || e.Write && !(limit.Write && now.Write) || e.Approval && !(limit.Approval && now.Approval) {
			t.Fatal("effective is more than both")
		}
		if drift := attachment.Drift(limit, now); (drift == "") != (len(limit.Beyond(now)) == 0 && len(now.Beyond(limit)) == 0) {
			t.Fatalf("drift %q", drift)
		}
	})
}

// Pinned settings allow nothing that the cap or the present does not, whatever can
// be said on the wire.
func TestTightenedIsWithinBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, now := anySnapshot(t, "cap"), anySnapshot(t, "now")
		tight, err := limit.Tighten(attachment.Settings{ApprovalPolicy: json.RawMessage(`"on-request"`)}, now)
		if err != nil {
			t.Fatal(err)
		}
		got, err := attachment.Read(tight)
		if err != nil {
			t.Fatal(err)
		}
		if more := limit.Beyond(got); len(more) > 0 {
			t.Fatalf("%s allows more than the cap: %v", tight.Sandbox, more)
		}
		if more := now.Beyond(got); len(more) > 0 {
			t.Fatalf("%s allows more than the session did: %v", tight.Sandbox, more)
		}
		if both := limit.Effective(now); got.Network != both.Network || got.Write != both.Write || got.Approval != both.Approval {
			t.Fatalf("%+v is not what both allow, %+v", got, both)
		}
	})
}

func TestWishes(t *testing.T) {
	now := attachment.PermissionSnapshot{Approval: true, Write: true}
	w, err := attachment.Wishes{Write: attachment.No, Network: attachment.Yes}.Check()
	if err != nil {
		t.Fatal(err)
	}
	if b := w.Bound(now); !b.Approval || !b.Network || b.Write {
		t.Errorf("%+v", b)
	}
	if _, err := (attachment.Wishes{Write: "maybe"}).Check(); thole.CodeOf(err) != thole.CodeInvalid {
		t.Error(err)
	}
}
